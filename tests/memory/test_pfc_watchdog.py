"""Storms of pauses, and the PFC watchdog of a port: detection, its three actions, restoration, by hand-made times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.memory.ports import GBPS
from weft.engine import Collector, Engine, Link, PortMac, SharedBuffer, TransmitPort

MAC = "02:01:00:00:00:00"
FRAME = 1000
FRAME_PS = 80_000  # at 100 Gb/s
DELAY_PS = 1_000_000
CLASS = 3
DETECTION_PS = 50_000_000
RESTORATION_PS = 30_000_000
QUANTA = 1000
PAUSE_PS = QUANTA * 5_120
PAUSE_FRAME_PS = 4_800  # 60 B


@dataclass
class Bench:
    """A switch's port and the NIC at its far end; `receiver` is what the NIC takes, `inside` what the switch does."""

    engine: Engine
    port: TransmitPort
    port_mac: PortMac
    nic: TransmitPort
    nic_mac: PortMac
    receiver: Collector
    inside: Collector

    def watchdog(self) -> dict[str, Any]:
        found = self.port_mac.stats()["watchdog"]
        assert found is not None
        (of_class,) = found["classes"]
        return dict(of_class)

    def events(self) -> list[tuple[int, bool]]:
        found = self.port_mac.stats()["watchdog"]
        assert found is not None
        return [(each["time_ps"], each["is_restored"]) for each in found["events"]]


def bench_with(engine: Engine, action: str | None) -> Bench:
    down, up = Link(engine, delay_ps=DELAY_PS), Link(engine, delay_ps=DELAY_PS)
    receiver, inside = Collector(engine), Collector(engine)
    port = TransmitPort(engine, down, rate_bps=100 * GBPS)
    nic = TransmitPort(engine, up, rate_bps=100 * GBPS)
    buffer = SharedBuffer(engine, capacity_bytes=1_000_000)
    buffer.add_port(0)
    port.set_buffer(buffer, 0)
    port_mac, nic_mac = PortMac(engine, port, inside), PortMac(engine, nic, receiver)
    port_mac.enable_pfc(source_mac=MAC)
    nic_mac.enable_pfc(source_mac=MAC, pause_quanta=QUANTA)
    if action is not None:
        port_mac.enable_watchdog(
            classes=[CLASS], detection_ps=DETECTION_PS, restoration_ps=RESTORATION_PS, action=action
        )
    down.connect(nic_mac)
    up.connect(port_mac)
    return Bench(engine, port, port_mac, nic, nic_mac, receiver, inside)


def storm(bench: Bench, *, until_ps: int) -> None:
    """Let the NIC storm from now on, with five packets in the queue, and run until a time."""
    bench.nic_mac.storm([CLASS])
    bench.engine.run_until(bench.engine.now_ps + DELAY_PS + 100_000)
    for _ in range(5):
        bench.port.enqueue(bytes(FRAME), CLASS)
    bench.engine.run_until(until_ps)


WAITS_FROM_PS = DELAY_PS + 100_000
DETECTED_PS = WAITS_FROM_PS + DETECTION_PS


def test_a_storm_without_a_watchdog_holds_the_class_for_ever(engine: Engine) -> None:
    bench = bench_with(engine, None)
    storm(bench, until_ps=10 * DETECTION_PS)
    assert bench.receiver.received_packets == 0
    assert bench.port_mac.stats()["watchdog"] is None
    pfc = bench.nic_mac.stats()["pfc"]
    assert pfc is not None
    # Renewed after half of each pause.
    assert pfc[CLASS]["pauses_sent"] == 10 * DETECTION_PS // (PAUSE_PS // 2) + 1
    bench.port.enqueue(bytes(FRAME), CLASS + 1)  # other classes go on
    engine.run_until(11 * DETECTION_PS)
    assert bench.receiver.received_packets == 1


def test_a_storm_that_ends_lets_its_last_pause_run_out(engine: Engine) -> None:
    bench = bench_with(engine, None)
    storm(bench, until_ps=20_000_000)
    bench.nic_mac.storm([])
    engine.run()
    last_ps = 20_000_000 // (PAUSE_PS // 2) * (PAUSE_PS // 2)
    begins_ps = last_ps + PAUSE_FRAME_PS + DELAY_PS + PAUSE_PS
    assert next(time for time, _, _ in bench.receiver.packets) == begins_ps + FRAME_PS + DELAY_PS
    assert bench.receiver.received_packets == 5


def test_drop_empties_the_queue_and_drops_what_comes_both_ways(engine: Engine) -> None:
    bench = bench_with(engine, "drop")
    storm(bench, until_ps=DETECTED_PS - 1)
    assert bench.port.stats()["queue_depth_bytes"] == 5 * FRAME
    engine.run_until(DETECTED_PS)
    assert bench.events() == [(DETECTED_PS, False)]
    assert bench.port.stats()["queue_depth_bytes"] == 0
    assert not bench.port.enqueue(bytes(FRAME), CLASS)
    assert bench.port.enqueue(bytes(FRAME), CLASS + 1)
    bench.nic.enqueue(bytes(FRAME), CLASS)
    bench.nic.enqueue(bytes(FRAME), CLASS + 1)
    engine.run_until(DETECTED_PS + 3 * DELAY_PS)
    found = bench.watchdog()
    assert (found["storms_detected"], found["storms_restored"], found["is_stormed"]) == (1, 0, True)
    assert (found["tx_dropped_packets"], found["rx_dropped_packets"]) == (6, 1)
    assert (found["tx_ok_packets"], found["rx_ok_packets"]) == (0, 0)
    stats = bench.port.stats()
    assert stats["storm_dropped"] == {"packets": 6, "bytes": 6 * FRAME}
    assert stats["storm_arrival_dropped"] == {"packets": 1, "bytes": FRAME}
    assert bench.receiver.received_packets == bench.inside.received_packets == 1


def test_forward_sends_in_spite_of_the_pauses(engine: Engine) -> None:
    bench = bench_with(engine, "forward")
    storm(bench, until_ps=DETECTED_PS + FRAME_PS + DELAY_PS)
    assert bench.receiver.received_packets == 1
    bench.nic.enqueue(bytes(FRAME), CLASS)
    engine.run_until(2 * DETECTED_PS)
    found = bench.watchdog()
    assert (found["tx_ok_packets"], found["rx_ok_packets"]) == (5, 1)
    assert (found["tx_dropped_packets"], found["rx_dropped_packets"]) == (0, 0)
    assert bench.receiver.received_packets == 5


def test_alert_only_notes_the_storm(engine: Engine) -> None:
    bench = bench_with(engine, "alert")
    storm(bench, until_ps=2 * DETECTED_PS)
    assert bench.events() == [(DETECTED_PS, False)]
    assert bench.receiver.received_packets == 0
    bench.nic_mac.storm([])
    engine.run()
    assert bench.receiver.received_packets == 5
    assert bench.watchdog()["storms_restored"] == 1


@pytest.mark.parametrize("action", ["drop", "forward", "alert"])
def test_it_is_restored_when_the_pauses_have_ended(engine: Engine, action: str) -> None:
    bench = bench_with(engine, action)
    storm(bench, until_ps=DETECTED_PS + 1_000_000)
    bench.nic_mac.storm([])
    last_ps = (DETECTED_PS + 1_000_000) // (PAUSE_PS // 2) * (PAUSE_PS // 2)
    restored_ps = last_ps + PAUSE_FRAME_PS + DELAY_PS + PAUSE_PS + RESTORATION_PS
    engine.run_until(restored_ps - 1)
    assert bench.watchdog()["is_stormed"]
    engine.run_until(restored_ps)
    assert bench.events() == [(DETECTED_PS, False), (restored_ps, True)]
    before = bench.receiver.received_packets
    assert bench.port.enqueue(bytes(FRAME), CLASS)
    bench.nic.enqueue(bytes(FRAME), CLASS)
    engine.run()
    assert bench.receiver.received_packets == before + 1
    assert bench.inside.received_packets == 1
    # Another storm is found anew.
    bench.nic_mac.storm([CLASS])
    engine.run_until(engine.now_ps + 2 * DELAY_PS)
    bench.port.enqueue(bytes(FRAME), CLASS)
    engine.run_until(engine.now_ps + 2 * DETECTION_PS)
    assert bench.watchdog()["storms_detected"] == 2


def test_a_paused_class_without_packets_is_no_storm(engine: Engine) -> None:
    bench = bench_with(engine, "drop")
    bench.nic_mac.storm([CLASS])
    engine.run_until(3 * DETECTION_PS)
    assert bench.events() == []
    bench.port.enqueue(bytes(FRAME), CLASS)
    engine.run_until(4 * DETECTION_PS - 1)
    assert bench.events() == []
    engine.run_until(4 * DETECTION_PS)
    assert bench.events() == [(4 * DETECTION_PS, False)]


def test_pauses_that_end_in_time_are_no_storm(engine: Engine) -> None:
    bench = bench_with(engine, "drop")
    for _ in range(10):
        bench.nic_mac.storm([CLASS])
        engine.run_until(engine.now_ps + DETECTION_PS // 2)
        bench.port.enqueue(bytes(FRAME), CLASS)
        bench.nic_mac.storm([])
        engine.run_until(engine.now_ps + 2 * PAUSE_PS)
    assert bench.events() == []
    assert bench.receiver.received_packets == 10


def test_classes_that_it_does_not_watch_are_left_alone(engine: Engine) -> None:
    bench = bench_with(engine, "drop")
    bench.nic_mac.storm([CLASS + 1])
    engine.run_until(2 * DELAY_PS)
    bench.port.enqueue(bytes(FRAME), CLASS + 1)
    engine.run_until(10 * DETECTION_PS)
    assert bench.events() == []
    assert bench.port.stats()["queue_depth_bytes"] == FRAME


def test_what_it_cannot_watch_is_refused(engine: Engine) -> None:
    bench = bench_with(engine, "drop")
    keys: dict[str, Any] = {"classes": [3], "detection_ps": 1, "restoration_ps": 1}
    with pytest.raises(RuntimeError, match="already"):
        bench.port_mac.enable_watchdog(**keys)
    plain = PortMac(engine, TransmitPort(engine, Link(engine), rate_bps=GBPS), Collector(engine))
    with pytest.raises(RuntimeError, match="without PFC"):
        plain.enable_watchdog(**keys)
    with pytest.raises(RuntimeError, match="without PFC"):
        plain.storm([3])
    for change, words in (
        ({"detection_ps": 0}, "detection_ps is 0"),
        ({"restoration_ps": -1}, "restoration_ps is -1"),
        ({"classes": []}, "no class"),
        ({"classes": [8]}, "class 8"),
        ({"action": "pray"}, "drop, forward, alert"),
    ):
        with pytest.raises(ValueError, match=words):
            bench.nic_mac.enable_watchdog(**keys | change)
    with pytest.raises(ValueError, match="class -1"):
        bench.nic_mac.storm([-1])
