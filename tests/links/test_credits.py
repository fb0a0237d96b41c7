"""Flow control by credits: closed forms, and that nothing is ever lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft import Fabric, topologies
from weft.clocks import environment
from weft.engine import Collector, Engine, Link, PortMac, SharedBuffer, TransmitPort
from weft.errors import BadInputError, EnvironmentLacksError
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import CreditsSection, parse_scenario
from weft.scenario.options import FabricOptions
from weft.topologies import serialisation_ps

GBPS = 10**9
RATE_BPS = 100 * GBPS
DELAY_PS = 1_000_000
FRAME_BYTES = 1024
FRAME_PS = serialisation_ps(FRAME_BYTES, RATE_BPS)
UPDATE_PS = serialisation_ps(60, RATE_BPS)
LANE = 3
FIRST_MAC, SECOND_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"


@dataclass
class Cable:
    """Two ports and the links between them; what arrives at the second goes to a node, or is collected."""

    engine: Engine
    first: TransmitPort
    first_mac: PortMac
    second: TransmitPort
    second_mac: PortMac
    there: Link
    back: Link
    collector: Collector

    def lane(self) -> Any:
        credits = self.first_mac.stats()["credits"]
        assert credits is not None
        (lane,) = credits["lanes"]
        return lane


def cable(
    buffer_bytes: int,
    *,
    node: Any = None,
    engine: Engine | None = None,
    delay_ps: int = DELAY_PS,
    loss: float = 0.0,
    back_loss: float = 0.0,
    lane: int = LANE,
    update_interval_ps: int = 20_000_000,
) -> Cable:
    engine = engine or Engine(seed=1)
    there = Link(engine, name="there", delay_ps=delay_ps, loss=loss)
    back = Link(engine, name="back", delay_ps=delay_ps, loss=back_loss)
    first = TransmitPort(engine, there, rate_bps=RATE_BPS, queue_capacity_bytes=1 << 30)
    second = TransmitPort(engine, back, rate_bps=RATE_BPS)
    collector = Collector(engine)
    first_mac = PortMac(engine, first, Collector(engine))
    second_mac = PortMac(engine, second, node if node is not None else collector, 1)
    for mac, address in ((first_mac, FIRST_MAC), (second_mac, SECOND_MAC)):
        mac.enable_credits(
            source_mac=address,
            classes=[lane],
            buffer_bytes=buffer_bytes,
            largest_frame_bytes=FRAME_BYTES,
            update_interval_ps=update_interval_ps,
        )
    there.connect(second_mac)
    back.connect(first_mac)
    return Cable(engine, first, first_mac, second, second_mac, there, back, collector)


# --- closed forms


@pytest.mark.parametrize("frames_of_credit", [1, 2, 5, 20])
def test_throughput_is_credit_over_round_trip(frames_of_credit: int) -> None:
    """A frame's credit is back after its serialisation, both ways of the link and the update's serialisation."""
    joined = cable(frames_of_credit * FRAME_BYTES)
    count = 4 * frames_of_credit + 3
    for _ in range(count):
        joined.first.enqueue(bytes(FRAME_BYTES), LANE)
    joined.engine.run()
    round_trip_ps = FRAME_PS + DELAY_PS + UPDATE_PS + DELAY_PS
    assert frames_of_credit * FRAME_PS < round_trip_ps
    expected = [
        (number // frames_of_credit) * round_trip_ps + (number % frames_of_credit + 1) * FRAME_PS + DELAY_PS
        for number in range(count)
    ]
    assert [time_ps for time_ps, _, _ in joined.collector.packets] == expected


def test_a_buffer_of_a_round_trip_keeps_the_line_busy() -> None:
    """With credit for the bandwidth-delay product no frame waits for another's credit."""
    round_trip_ps = FRAME_PS + DELAY_PS + UPDATE_PS + DELAY_PS
    frames_of_credit = -(-round_trip_ps // FRAME_PS) + 1
    joined = cable(frames_of_credit * FRAME_BYTES)
    for _ in range(200):
        joined.first.enqueue(bytes(FRAME_BYTES), LANE)
    joined.engine.run()
    times = [time_ps for time_ps, _, _ in joined.collector.packets]
    assert times == [(number + 1) * FRAME_PS + DELAY_PS for number in range(200)]
    assert joined.lane()["stalls"] == 0


def test_waiting_for_credit_is_counted() -> None:
    """One frame of credit: it is out from the start of a frame until its update comes."""
    joined = cable(FRAME_BYTES)
    for _ in range(4):
        joined.first.enqueue(bytes(FRAME_BYTES), LANE)
    joined.engine.run()
    round_trip_ps = FRAME_PS + 2 * DELAY_PS + UPDATE_PS
    lane = joined.lane()
    assert (lane["stalls"], lane["stalled_ps"]) == (4, 4 * round_trip_ps)
    assert (lane["is_stalled"], lane["available_blocks"]) == (False, FRAME_BYTES // 64)
    second = joined.second_mac.stats()["credits"]
    assert second is not None
    assert second["updates_sent"] >= 4


def test_other_classes_need_no_credit() -> None:
    joined = cable(FRAME_BYTES)
    for _ in range(3):
        joined.first.enqueue(bytes(FRAME_BYTES), LANE)
        joined.first.enqueue(bytes(FRAME_BYTES), LANE - 1)
    joined.engine.run_until(DELAY_PS + 5 * FRAME_PS)
    # The lane's first, then all of the other class, while the lane waits.
    assert len(joined.collector.packets) == 4
    joined.engine.run()
    assert len(joined.collector.packets) == 6


# --- a switch's memory


@settings(deadline=None, max_examples=40)
@given(
    buffer_frames=st.integers(1, 12),
    out_rate_bps=st.sampled_from([GBPS, 37 * GBPS, 100 * GBPS, 400 * GBPS]),
    delay_ps=st.integers(0, 2_000_000),
    sends=st.lists(st.tuples(st.integers(0, 300_000), st.integers(60, FRAME_BYTES)), min_size=1, max_size=80),
    latency_ps=st.sampled_from([0, 400_000]),
)
def test_the_memory_that_credits_report_is_never_overrun(
    buffer_frames: int, out_rate_bps: int, delay_ps: int, sends: list[tuple[int, int]], latency_ps: int
) -> None:
    """A switch between two links of any rates: nothing is dropped, and nothing stays behind."""
    engine = Engine(seed=1)
    out_link, collector = Link(engine), Collector(engine)
    out_link.connect(collector)
    output = TransmitPort(engine, out_link, rate_bps=out_rate_bps)
    memory = SharedBuffer(engine, capacity_bytes=buffer_frames * FRAME_BYTES + 1)
    for number in (1, 2):
        memory.add_port(number)
    output.set_buffer(memory, 2)
    # A port as a node queues in class 0.
    joined = cable(buffer_frames * FRAME_BYTES, node=output, lane=0, engine=engine, delay_ps=delay_ps)
    joined.second_mac.set_credit_memory(memory, 1, 0)
    joined.second_mac.set_switching(latency_ps=latency_ps)
    for gap_ps, size_bytes in sends:
        engine.run_for(gap_ps)
        joined.first.enqueue(bytes(size_bytes), 0)
        held = memory.stats()["ports"][1]["ingress"][0]["own_used_bytes"]
        assert held <= buffer_frames * FRAME_BYTES
    engine.run()
    assert [len(data) for _, _, data in collector.packets] == [size for _, size in sends]
    stats = output.stats()
    assert stats["headroom_dropped"]["packets"] == stats["tail_dropped"]["packets"] == 0
    assert memory.stats()["used_bytes"] == 0
    # Credit that is freed but not yet reported still leaves enough for a frame.
    assert joined.lane()["available_blocks"] >= FRAME_BYTES // 64


def test_the_slower_line_behind_a_switch_never_idles_with_enough_credit() -> None:
    """Memory for a round trip of the cable at the output's rate: the output sends frame after frame."""
    engine = Engine(seed=1)
    out_link, collector = Link(engine), Collector(engine)
    out_link.connect(collector)
    output = TransmitPort(engine, out_link, rate_bps=RATE_BPS // 4)
    out_frame_ps = serialisation_ps(FRAME_BYTES, RATE_BPS // 4)
    round_trip_ps = FRAME_PS + DELAY_PS + UPDATE_PS + DELAY_PS
    buffer_frames = -(-round_trip_ps // out_frame_ps) + 2
    memory = SharedBuffer(engine, capacity_bytes=buffer_frames * FRAME_BYTES + 1)
    for number in (1, 2):
        memory.add_port(number)
    output.set_buffer(memory, 2)
    joined = cable(buffer_frames * FRAME_BYTES, node=output, lane=0, engine=engine)
    joined.second_mac.set_credit_memory(memory, 1, 0)
    for _ in range(100):
        joined.first.enqueue(bytes(FRAME_BYTES), 0)
    engine.run()
    first_ps = FRAME_PS + DELAY_PS
    times = [time_ps for time_ps, _, _ in collector.packets]
    assert times == [first_ps + (number + 1) * out_frame_ps for number in range(100)]


def test_frames_are_those_of_the_description() -> None:
    """docs/spec/frames.md: 60 bytes of EtherType 0x88B6, FCTBS and FCCL of each lane."""
    engine = Engine()
    back = Link(engine)
    collector = Collector(engine)
    back.connect(collector)
    port = TransmitPort(engine, back, rate_bps=RATE_BPS)
    mac = PortMac(engine, port, Collector(engine))
    mac.enable_credits(source_mac=SECOND_MAC, classes=[LANE], buffer_bytes=4096, largest_frame_bytes=1024)
    port.enqueue(bytes(1024), LANE)
    engine.run()
    data, update = collector.packets
    assert len(data[2]) == 1024
    frame = update[2]
    assert len(frame) == 60
    assert frame[:14].hex() == "0180c2000001" + "020000000002" + "88b6"
    assert (frame[14], frame[15]) == (0, 1 << LANE)
    lane = frame[16 + 4 * LANE : 20 + 4 * LANE]
    assert (int.from_bytes(lane[:2], "big"), int.from_bytes(lane[2:], "big")) == (1024 // 64, 4096 // 64)


# --- losses


@settings(deadline=None, max_examples=25)
@given(
    loss=st.floats(0, 0.3),
    back_loss=st.floats(0, 0.3),
    sizes=st.lists(st.integers(60, FRAME_BYTES), min_size=1, max_size=120),
    frames_of_credit=st.integers(1, 6),
)
def test_credit_is_not_lost_with_frames_or_updates(
    loss: float, back_loss: float, sizes: list[int], frames_of_credit: int
) -> None:
    """Everything is sent in the end, and all credit is back."""
    joined = cable(frames_of_credit * FRAME_BYTES, loss=loss, back_loss=back_loss, update_interval_ps=3_000_000)
    for size in sizes:
        joined.first.enqueue(bytes(size), LANE)
    joined.engine.run_for(10**10)
    sent = joined.first.stats()["classes"][LANE]["transmitted"]
    assert (sent["packets"], sent["bytes"]) == (len(sizes), sum(sizes))
    arrived = sum(len(data) for _, _, data in joined.collector.packets)
    assert arrived == sum(sizes) - (joined.there.stats()["lost_bytes"] - _lost_updates(joined))
    joined.there.set_faults()
    joined.back.set_faults()
    for _ in range(2):
        joined.first.enqueue(bytes(FRAME_BYTES), LANE)
        joined.engine.run_for(10**9)
    assert joined.lane()["available_blocks"] >= FRAME_BYTES // 64
    assert not joined.lane()["is_stalled"]


def _lost_updates(joined: Cable) -> int:
    """Bytes of the first port's own frames that the link lost."""
    sent = joined.first.stats()["control_transmitted"]["bytes"]
    return sent - joined.second_mac.stats()["control_taken"]["bytes"]


@settings(deadline=None, max_examples=30)
@given(
    buffer_frames=st.integers(1, 6),
    outages=st.lists(st.tuples(st.integers(1, 4_000_000), st.integers(0, 3_000_000)), min_size=1, max_size=5),
    sizes=st.lists(st.integers(60, FRAME_BYTES), min_size=1, max_size=60),
    loss=st.sampled_from([0.0, 0.1]),
)
def test_credit_begins_anew_on_a_link_that_comes_back(
    buffer_frames: int, outages: list[tuple[int, int]], sizes: list[int], loss: float
) -> None:
    """A failure at any time, with anything in the switch, overruns no memory, and all credit is restored."""
    engine = Engine(seed=1)
    out_link, collector = Link(engine), Collector(engine)
    out_link.connect(collector)
    output = TransmitPort(engine, out_link, rate_bps=RATE_BPS // 10)
    memory = SharedBuffer(engine, capacity_bytes=buffer_frames * FRAME_BYTES + 1)
    for number in (1, 2):
        memory.add_port(number)
    output.set_buffer(memory, 2)
    joined = cable(buffer_frames * FRAME_BYTES, node=output, lane=0, engine=engine, loss=loss, back_loss=loss)
    joined.second_mac.set_credit_memory(memory, 1, 0)
    ends = ((joined.first, joined.there, joined.first_mac), (joined.second, joined.back, joined.second_mac))
    for after_ps, down_ps in outages:
        for size_bytes in sizes:
            joined.first.enqueue(bytes(size_bytes), 0)
        engine.run_for(after_ps)
        for port, link, _ in ends:
            port.set_up(False)
            link.cut()
        engine.run_for(down_ps)
        for port, _, mac in ends:
            port.set_up(True)
            mac.restart()
    for size_bytes in sizes:
        joined.first.enqueue(bytes(size_bytes), 0)
    engine.run_for(10**11)
    assert joined.first.stats()["queue_depth_packets"] == 0
    assert output.stats()["headroom_dropped"]["packets"] == output.stats()["tail_dropped"]["packets"] == 0
    assert memory.stats()["used_bytes"] == 0
    assert not joined.lane()["is_stalled"]
    assert engine.packet_conservation()["missing"] == {"packets": 0, "bytes": 0}


# --- whole fabrics

FABRIC = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 3, "host_rate": "100Gbps", "delay": "1us"}


def run(**keys: Any) -> RunResult:
    return run_scenario(
        parse_scenario(
            {
                "clock": "virtual",
                "fabric": FABRIC,
                "traffic": [{"incast": "h0", "bytes_per_sender": "512KiB"}],
                **keys,
            }
        )
    )


@pytest.mark.parametrize("ip_version", [4, 6])
@pytest.mark.parametrize("buffer", ["2KB", "20KB", "128KiB"])
def test_nothing_is_lost_whatever_the_load(ip_version: int, buffer: str) -> None:
    result = run(credits={"classes": [3], "buffer": buffer}, ip_version=ip_version)
    assert result.drops == {}
    assert (result.planes[0].tail_drops, result.link_faults) == (0, [])
    # With credit for one frame a queue pair may wait for its timeout; nothing was lost then, either.
    assert result.retransmissions == 0 or buffer == "2KB"
    assert result.flows[0].bytes_delivered == 5 * 512 * 1024
    (credits,) = result.credits
    assert credits.updates_sent > 0
    assert credits.stalls > 0
    assert credits.longest_stall_port
    assert 0 < credits.largest_buffer_bytes <= {"2KB": 2000, "20KB": 20_000, "128KiB": 1 << 17}[buffer]
    assert result.as_dict()["credits"][0]["stalls"] == credits.stalls


@settings(deadline=None, max_examples=6)
@given(
    buffer_bytes=st.integers(1300, 60_000),
    seed=st.integers(0, 1000),
    mode=st.sampled_from(["store-and-forward", "cut-through"]),
    latency=st.sampled_from(["0ns", "700ns"]),
)
def test_no_load_makes_it_lose(buffer_bytes: int, seed: int, mode: str, latency: str) -> None:
    result = run(
        credits={"classes": [3, 6], "buffer": buffer_bytes},
        switching={"mode": mode, "latency": latency},
        seed=seed,
        fabric={**FABRIC, "spines": 2, "fabric_rate": "40Gbps"},
        traffic=[{"permutation": "128KiB"}, {"incast": "h3", "bytes_per_sender": "96KiB"}],
    )
    assert result.drops == {}
    assert (result.planes[0].tail_drops, result.link_faults) == (0, [])


def test_a_small_buffer_limits_throughput_to_credit_over_round_trip() -> None:
    """Two hosts at one leaf, one frame of credit: a data frame a round trip of the link, and of the leaf's memory."""
    fabric = topologies.leaf_spine(
        planes=1, leaves=1, spines=0, hosts_per_leaf=2, host_rate_bps=RATE_BPS, delay_ps=DELAY_PS
    )
    packets = 40
    with Fabric(
        fabric, clock="virtual", int_telemetry=False, credits=CreditsSection(classes=[3], buffer=1216)
    ) as running:
        took_ps = running.incast("h1", packets * 1024).time_ps
    frame_ps, update_ps = serialisation_ps(14 + 20 + 8 + 12 + 4 + 1024, RATE_BPS), UPDATE_PS
    round_trip_ps = frame_ps + 2 * DELAY_PS + update_ps
    # The first and the last frame are larger, by RETH and immediate; the last one's way is not bound by credit.
    assert (packets - 2) * round_trip_ps < took_ps < (packets + 1) * round_trip_ps + 4 * DELAY_PS


def test_only_chosen_links_have_credits() -> None:
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
    credits = CreditsSection(classes=[3], links=["p0l*<->p0s0"])
    with Fabric(topology, clock="virtual", credits=credits) as fabric:
        fabric.incast("h0", 100_000)
        switches = fabric.lab.switch_stats()["switches"]
        hosts = fabric.hosts.stats()
    with_credits = {
        f"{name}:{number}"
        for name, switch in switches.items()
        for number, port in switch["ports"].items()
        if (port.get("mac") or {}).get("credits")
    }
    assert with_credits == {"p0l0:2", "p0l1:2", "p0s0:1", "p0s0:2"}
    assert all(host["planes"][0]["mac"] is None for host in hosts)


def test_stalls_are_recorded_as_pauses() -> None:
    result = run(credits={"classes": [3], "buffer": "4KB"}, observe={"pauses": True})
    pauses = result.observations.tables["pauses"]
    assert set(pauses["priority_class"].tolist()) == {3}
    assert (pauses["end_ps"] > pauses["begin_ps"]).all()
    assert 0 < len(pauses["end_ps"]) <= result.credits[0].stalls


@pytest.mark.parametrize("seed", [1, 2])
def test_results_do_not_depend_on_the_number_of_workers(tmp_path: Path, seed: int) -> None:
    written = []
    for workers in (1, 2, 3):
        result = run(
            seed=seed,
            workers=workers,
            credits={"classes": [3, 6], "buffer": "6KB"},
            faults={"loss": 0.001, "links": [{"link": "p0l*->p0s0", "bit_error_rate": 1e-7}]},
            switching={"mode": "cut-through", "latency": "300ns"},
            observe={"queues": "all", "flows": True, "pauses": True, "drops": True},
            traffic=[{"permutation": "64KiB"}, {"incast": "h0", "bytes_per_sender": "64KiB"}],
        )
        folder = tmp_path / str(workers)
        result.save(folder)
        written.append({path.name: path.read_bytes() for path in folder.iterdir() if path.name != "wall_times.json"})
    assert written[0] == written[1] == written[2]


# --- refusals


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"credits": {"buffer": "10KB"}}, ["credits", "which classes are virtual lanes"]),
        ({"credits": {"classes": [8]}}, ["credits.classes[0]", "valid: 0 to 7"]),
        ({"credits": {"classes": [3], "buffer": "1MB"}}, ["credits.buffer", "128KiB"]),
        ({"credits": {"classes": [3], "links": ["a->b"]}}, ["'a->b'", "<->"]),
        ({"credits": {"classes": [3]}, "pfc": {"classes": [3]}}, ["exclude each other", "one flow control"]),
        (
            {"credits": {"classes": [3]}, "faults": {"duplicate": 0.1}},
            ["duplicate", "do not go with credits"],
        ),
        (
            {
                "credits": {"classes": [3]},
                "faults": {"links": [{"link": "a<->b", "delay_probability": 0.1, "extra_delay": "1us"}]},
            },
            ["delay_probability", "do not go with credits"],
        ),
    ],
)
def test_errors_name_the_key_and_what_is_valid(keys: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_scenario(keys)
    for word in words:
        assert word in str(caught.value)


def test_a_buffer_below_a_frame_is_refused() -> None:
    with refused(BadInputError, place="scenario: credits.buffer", problem="1000 B hold no frame of"):
        run(credits={"classes": [3], "buffer": 1000})


def test_memory_that_does_not_hold_the_credits_is_refused() -> None:
    with refused(BadInputError, place="scenario: buffer", problem="200000 B of p0l0 leave nothing"):
        run(credits={"classes": [3]}, buffer={"capacity": "200KB"})


def test_links_that_are_not_there_are_refused() -> None:
    with refused(
        BadInputError,
        place="scenario: credits.links[0]",
        valid="h0<->p0l0, h1<->p0l0, h2<->p0l0, p0l0<->p0s0, … p0l1<->p0s0",
    ):
        run(credits={"classes": [3], "links": ["p0l0<->p0l1"]})


def test_bmv2_has_no_credits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "require_bmv2", lambda: None)
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    options = FabricOptions(clock="real", target="bmv2", dilation=1.0, credits=CreditsSection(classes=[3]))
    with refused(EnvironmentLacksError, problem="BMv2 does not have credits"):
        environment.require_for(topology, options)


def test_updates_leave_a_slow_link_to_data() -> None:
    """At 10 Mb/s an update each 20 µs would take more than there is."""
    engine = Engine()
    link = Link(engine, delay_ps=0)
    port = TransmitPort(engine, link, rate_bps=10**7)
    mac = PortMac(engine, port, Collector(engine))
    mac.enable_credits(source_mac=FIRST_MAC, classes=[LANE], buffer_bytes=4096, largest_frame_bytes=FRAME_BYTES)
    sink = Collector(engine)
    link.connect(sink)
    for _ in range(8):
        port.enqueue(bytes(FRAME_BYTES), LANE)
    # Four frames use up the credit; nobody answers, so the port goes on asking.
    engine.run_for(100 * serialisation_ps(FRAME_BYTES, 10**7))
    frames = [data for _, _, data in sink.packets]
    assert sum(len(data) == FRAME_BYTES for data in frames) == 4
    assert 100 // 4 - 2 <= sum(len(data) == 60 for data in frames) <= 100 // 4 + 1


def test_a_port_has_one_flow_control() -> None:
    engine = Engine()
    mac = PortMac(engine, TransmitPort(engine, Link(engine), rate_bps=GBPS), Collector(engine))
    mac.enable_pfc(source_mac=FIRST_MAC)
    credits = {"source_mac": FIRST_MAC, "classes": [3], "buffer_bytes": 4096, "largest_frame_bytes": 1024}
    with pytest.raises(RuntimeError, match="a port with PFC cannot have credits"):
        mac.enable_credits(**credits)
    other = PortMac(engine, TransmitPort(engine, Link(engine), rate_bps=GBPS), Collector(engine))
    other.enable_credits(**credits)
    with pytest.raises(RuntimeError, match="a port with credits cannot have PFC"):
        other.enable_pfc(source_mac=FIRST_MAC)
    for wrong, message in (
        ({"classes": []}, "no class"),
        ({"classes": [9]}, "class 9"),
        ({"buffer_bytes": 1000}, "a credit buffer of 1000 B"),
        ({"buffer_bytes": 1 << 18}, "a credit buffer of 262144 B"),
    ):
        third = PortMac(engine, TransmitPort(engine, Link(engine), rate_bps=GBPS), Collector(engine))
        with pytest.raises(ValueError, match=message):
            third.enable_credits(**(credits | wrong))
