"""What PCIe and the adapter cost, to the picosecond; and how queue pairs share a port."""

from typing import Any

import numpy as np
import pytest

from tests.transport.rdma_pair import DELAY_PS, RATE_BPS, US, cabled_pair, fixed_window, random_bytes
from weft.engine import CompletionQueue, Engine, Link, Nic, RcQueuePair, TransmitPort, serialisation_ps

NS = 1000
OUTER, RETH, ACK_BYTES = 14 + 20 + 8 + 12 + 4, 16, 62


def completion_ps(payloads: list[int], pcie_bps: int, latency: int, message: int, packet: int) -> int:
    """Of one WRITE: each payload is fetched, sent, carried and placed, one after the other at every stage."""
    fetched = placed = sent = 0
    for index, payload in enumerate(payloads):
        transfer = packet + serialisation_ps(payload, pcie_bps)
        fetched += transfer + (message if index == 0 else 0)
        frame = OUTER + payload + (RETH if index == 0 else 0)
        sent = max(sent, fetched + latency) + serialisation_ps(frame, RATE_BPS)
        placed = max(placed, sent + DELAY_PS) + transfer
    return placed + latency + serialisation_ps(ACK_BYTES, RATE_BPS) + DELAY_PS


@pytest.mark.parametrize("pcie_bps", [0, RATE_BPS // 4, RATE_BPS * 2])
@pytest.mark.parametrize(
    ("latency", "message", "packet"),
    [(0, 0, 0), (900 * NS, 0, 0), (0, 700 * NS, 0), (0, 0, 120 * NS), (500 * NS, 300 * NS, 10 * NS)],
)
@pytest.mark.parametrize("packets", [1, 2, 60])
def test_a_write_takes_what_its_stages_take(
    packets: int, latency: int, message: int, packet: int, pcie_bps: int
) -> None:
    costs = {
        "pcie_rate_bps": pcie_bps,
        "dma_latency_ps": latency,
        "per_message_overhead_ps": message,
        "per_packet_overhead_ps": packet,
    }
    pair = cabled_pair(
        nic_costs=costs, window_bytes=1 << 30, ack_interval_packets=1000, retransmission_timeout_ps=10**10
    )
    source = random_bytes(1024 * packets)
    target = np.zeros_like(source)
    rkey = pair.b.register(target).rkey
    pair.a.queue_pair.post_write(pair.a.register(source), 0, len(source), 0, rkey)
    pair.engine.run()
    [completion] = pair.a.completions.poll()
    expected = completion_ps([1024] * packets, pcie_bps, latency, message, packet)
    assert completion["completed_ps"] - completion["posted_ps"] == expected
    assert np.array_equal(source, target)


def test_each_message_pays_its_overhead() -> None:
    pair = cabled_pair(
        nic_costs={"per_message_overhead_ps": 10 * US}, window_bytes=1 << 30, retransmission_timeout_ps=10**10
    )
    rkey = pair.b.nic.register_sink(100).rkey
    for number in range(5):
        pair.a.queue_pair.post_write(None, 0, 100, 0, rkey, work_id=number)
    pair.engine.run()
    done = [each["completed_ps"] for each in pair.a.completions.poll()]
    frame, acknowledgement = OUTER + RETH + 100, ACK_BYTES
    first = 10 * US + 2 * DELAY_PS + serialisation_ps(frame + acknowledgement, RATE_BPS)
    assert done == [first + 10 * US * number for number in range(5)]


def test_data_waits_in_the_queue_pair_and_not_behind_the_line() -> None:
    """Only as much is prefetched as the port sends meanwhile, so an acknowledgement is soon counted."""
    costs = {"pcie_rate_bps": 10 * RATE_BPS, "dma_latency_ps": US}
    pair = cabled_pair(nic_costs=costs, window_bytes=1 << 30, retransmission_timeout_ps=10**10)
    pair.a.queue_pair.post_write(None, 0, 10**6, 0, pair.b.nic.register_sink(10**6).rkey)
    pair.engine.run_for(5 * US)
    ahead = RATE_BPS * US // 8 // 10**12 + 5 * 4352
    assert pair.a.queue_pair.stats()["data_bytes_sent"] < RATE_BPS * 5 * US // 8 // 10**12 + ahead


def star(count: int, **nic_costs: int) -> tuple[Engine, Nic, Nic, list[TransmitPort]]:
    """Two adapters joined by `count` cables."""
    engine = Engine()
    nics = [Nic(engine, name, **nic_costs) for name in ("left", "right")]
    transmit_ports = []
    for number in range(count):
        ends = [Link(engine, name=f"{number} {side}", delay_ps=DELAY_PS) for side in range(2)]
        for side, nic in enumerate(nics):
            transmit_port = TransmitPort(engine, ends[side], rate_bps=RATE_BPS)
            transmit_ports.append(transmit_port)
            nic.add_port(
                transmit_port,
                mac=f"02:00:00:00:{number:02x}:0{side + 1}",
                addresses=[f"10.0.{number}.{side + 1}"],
            )
            ends[side].connect(nics[1 - side], number)
    return engine, nics[0], nics[1], transmit_ports


def queue_pair(nic: Nic, side: int, port: int, number: int, done: CompletionQueue, rate_bps: int = 0) -> RcQueuePair:
    return RcQueuePair(
        nic,
        port,
        done,
        queue_pair=number,
        remote_queue_pair=number,
        destination_mac=f"02:00:00:00:{port:02x}:0{2 - side}",
        destination_ip=f"10.0.{port}.{2 - side}",
        congestion_control=fixed_window(1 << 30, rate_bps),
        retransmission_timeout_ps=10**11,
        ack_interval_packets=1000,
    )


@pytest.mark.parametrize("ports", [1, 2, 4])
def test_ports_share_what_pcie_carries(ports: int) -> None:
    engine, left, right, _ = star(ports, pcie_rate_bps=RATE_BPS)
    done, size = CompletionQueue(engine), 1024 * 400
    sink = right.register_sink(size)
    for port in range(ports):
        queue_pair(right, 1, port, 0x20 + port, done)
        queue_pair(left, 0, port, 0x20 + port, done).post_write(None, 0, size, 0, sink.rkey)
    engine.run()
    times = [each["completed_ps"] for each in done.poll()]
    assert len(times) == ports
    whole = serialisation_ps(ports * size, RATE_BPS)
    # Beyond it: frames are longer than payloads, and both ways take turns by the packet.
    assert whole <= max(times) < 1.06 * whole + 4 * US
    assert max(times) - min(times) < 2 * US


def test_paced_queue_pairs_share_a_port_and_hold_up_nobody() -> None:
    """Hundreds at a thousandth of the line rate each, to the picosecond; another one gets the rest."""
    engine, left, right, _ = star(1)
    done, packets, count = CompletionQueue(engine), 5, 300
    size, pace = packets * 1024, RATE_BPS // 1000
    sink = right.register_sink(1 << 24)
    for number in range(count):
        queue_pair(right, 1, 0, 0x100 + number, done)
        queue_pair(left, 0, 0, 0x100 + number, done, pace).post_write(None, 0, size, 0, sink.rkey, work_id=1)
    queue_pair(right, 1, 0, 0x90, done)
    greedy = queue_pair(left, 0, 0, 0x90, done)
    greedy.post_write(None, 0, 1 << 21, 0, sink.rkey, work_id=2)
    engine.run()
    frames = [OUTER + RETH + 1024] + [OUTER + 1024] * (packets - 1)
    times: dict[Any, list[int]] = {1: [], 2: []}
    for each in done.poll():
        times[each["work_id"]].append(each["completed_ps"])
    alone = serialisation_ps(sum(frames[:-1]), pace) + serialisation_ps(frames[-1], RATE_BPS) + 2 * DELAY_PS
    round_ps = (count + 1) * serialisation_ps(frames[0], RATE_BPS)
    assert len(times[1]) == count
    assert alone <= min(times[1])
    assert max(times[1]) < alone + 2 * round_ps
    greedy_bytes = (1 << 21) + 2048 * OUTER + RETH
    paced_bytes = count * sum(frames)
    [finished] = times[2]
    assert finished < serialisation_ps(greedy_bytes + paced_bytes, RATE_BPS) + 3 * US
