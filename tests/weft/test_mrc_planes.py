"""One queue pair of MRC over all planes of a fabric: its bandwidth, ports that fail, and what results say."""

from typing import Any

import numpy as np
import pytest

from weft import Fabric, topologies
from weft.errors import BadInputError
from weft.recording.ideal_times import IdealTimes
from weft.results.run_result import RunResult
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import FidelitySection, TransportSection, parse_scenario
from weft.traffic.schedule_nodes import ALL_PLANES

US = 10**6
RATE_BPS = 100 * 10**9
PLANES = 8
EV_PROBE_ANSWER_PS = 94 * 8 * 100  # over IPv4, at 10 Gb/s: the sender answers the receiver's once a round trip
TOPOLOGY = topologies.leaf_spine(
    planes=PLANES, leaves=2, spines=2, hosts_per_leaf=1, host_rate_bps=RATE_BPS, delay_ps=US // 2
)
MRC = TransportSection(protocol="mrc")


def made(topology: Any = TOPOLOGY, **options: Any) -> Fabric:
    return Fabric(topology, clock="virtual", int_telemetry=False, **({"transport": MRC} | options))


def totals(fabric: Fabric) -> dict[str, int]:
    each = [host["totals"] for host in fabric.hosts.stats()]
    return {name: sum(one[name] for one in each) for name in each[0]}


def sent_by_port(fabric: Fabric, host: int = 0) -> list[int]:
    return [plane["transmit"]["transmitted"]["bytes"] for plane in fabric.hosts.stats()[host]["planes"]]


def test_a_pair_of_hosts_has_one_queue_pair_over_all_planes() -> None:
    with made() as fabric:
        inputs = [np.full(400_000, rank, np.int32) for rank in range(2)]
        run = fabric.run(CollectiveRequest("allreduce", inputs, "ring"))
        assert run.result.ok
        stats = fabric.hosts.stats()
        sent = sent_by_port(fabric)
    assert [len(host["connections"]) for host in stats] == [1, 1]
    assert min(sent) > 0.9 * max(sent)
    assert [sum(states.values()) for states in stats[0]["entropy_values"]] == [20] * PLANES


def duration_ps(size_bytes: int, down: int | None = None) -> tuple[int, dict[str, int], list[bool]]:
    """Return how long a flow takes, without a port of the sender or not; from start, or in the middle."""
    with made() as fabric:
        if down is not None:
            fabric.schedule_link("h0:3", "p3l0", "down", down)
        result = fabric.permutation(size_bytes)
        (longest,) = {max(result.records["completion_ps"])}
        return int(longest), totals(fabric), [each > 0 for each in sent_by_port(fabric)]


def test_a_port_of_eight_costs_an_eighth_of_the_bandwidth_and_no_timeout() -> None:
    size_bytes = 20_000_000
    whole_ps, found, _ = duration_ps(size_bytes)
    assert whole_ps < 1.2 * size_bytes * 8 * 10**12 / (PLANES * RATE_BPS)
    assert found["timeouts"] == found["evs_to_assumed_bad"] == found["retransmitted_packets"] == 0
    less_ps, found, _ = duration_ps(size_bytes, down=0)
    assert less_ps / whole_ps == pytest.approx(8 / 7, rel=0.03)
    assert found["timeouts"] == 0
    assert found["port_updates_sent"] == found["port_updates_confirmed"] > 0


def test_an_all_reduce_goes_on_when_a_port_goes_down_and_comes_back() -> None:
    with made() as fabric:
        fabric.schedule_link("h1:5", "p5l1", "down", 60 * US)
        fabric.schedule_link("h1:5", "p5l1", "up", 150 * US)
        inputs = [np.random.default_rng(rank).integers(-99, 99, 4_000_000, np.int32) for rank in range(2)]
        run = fabric.run(CollectiveRequest("allreduce", inputs, "ring"))
        assert run.result.ok
        assert all(np.array_equal(output, np.sum(inputs, axis=0)) for output in run.buffers)
        found = totals(fabric)
        states = fabric.hosts.stats()[0]["entropy_values"]
        up = [plane["transmit"] for plane in fabric.hosts.stats()[1]["planes"]]
    assert found["timeouts"] == 0
    assert found["port_updates_confirmed"] == 2
    assert not [plane for plane, each in enumerate(states) if plane != 5 and each.get("assumed_bad")]
    assert up[5]["transmitted"]["bytes"] < min(each["transmitted"]["bytes"] for at, each in enumerate(up) if at != 5)


def run_with_events(events: list[dict[str, Any]], planes: int = 4, **traffic: Any) -> RunResult:
    tree = {
        "clock": "virtual",
        "int": False,
        "fabric": {
            "planes": planes,
            "leaves": 2,
            "spines": 2,
            "hosts_per_leaf": 1,
            "host_rate": "100Gb/s",
            "delay": "0.5us",
        },
        "transport": {"protocol": "mrc"},
        "traffic": [traffic],
        "events": events,
    }
    return run_scenario(parse_scenario(tree, units_required=True))


@pytest.mark.parametrize(
    "traffic",
    [{"permutation": "16MB", "data": "lengths"}, {"collective": "allreduce", "sizes": ["16MB"], "data": "lengths"}],
    ids=["flows", "collective"],
)
def test_packets_leave_a_plane_that_an_operator_drains(traffic: dict[str, Any]) -> None:
    """In the middle of a run: nothing is lost, and the plane is quiet while the others are busy."""
    events = [{"plane": 1, "state": "drained", "at": "40us"}]
    result = run_with_events(events, **traffic)
    assert result.retransmissions == 0
    assert result.drops == {}
    (quiet,) = [event for event in result.controller_events if event.kind == "drained"]
    # Two readings of counters that are alike, 100 us apart, the first after what was under way.
    assert quiet.duration_ps == 200 * US
    done = (result.flows or result.collectives)[0]
    assert done.time_ps > 300 * US


def test_a_plane_out_of_use_is_used_if_no_other_is_up() -> None:
    events = [
        {"plane": 1, "state": "cordoned", "at": "20us"},
        {"link": "h0<->p0l0", "state": "down", "at": "60us"},
    ]
    result = run_with_events(events, planes=2, permutation="2MB")
    assert result.flows[0].bytes_delivered == 2 * 2_000_000


def test_workloads_use_all_planes() -> None:
    with made() as fabric:
        result = fabric.workload("websearch", 0.3, 300 * US)
        sent = sent_by_port(fabric)
        found = totals(fabric)
    assert set(result.records["plane"]) == {ALL_PLANES}
    assert min(sent) > 0.7 * max(sent)
    assert found["timeouts"] == 0
    assert min(result.records["slowdown"]) >= 0.99


@pytest.mark.parametrize("planes", [1, PLANES])
@pytest.mark.parametrize("size_bytes", [100, 4000, 3_000_001])
def test_ideal_times_take_the_frames_of_mrc_and_all_planes(planes: int, size_bytes: int) -> None:
    """A lone flow without a window takes as long, but for the last packets' places among the planes."""
    spec = topologies.leaf_spine(planes=planes, leaves=2, spines=2, hosts_per_leaf=1, delay_ps=US)
    window = TransportSection(protocol="mrc", congestion_control="fixed-window", parameters={"window": 50_000_000})
    with made(spec, transport=window) as fabric:
        took_ps = int(fabric.incast("h0", size_bytes).records["completion_ps"][0])
        answers_ps = totals(fabric)["ev_probes_received"] * EV_PROBE_ANSWER_PS // planes
        ideal = IdealTimes.of_fabric(spec, fabric.lab.options)
    one, zero = np.ones(1, np.int64), np.zeros(1, np.int64)
    assert took_ps - answers_ps == pytest.approx(int(ideal.of(one, zero, zero, size_bytes * one)[0]), rel=1e-3)


def test_single_packets_take_all_planes_in_turn() -> None:
    with made(transport=TransportSection(protocol="mrc", connections="kept")) as fabric:
        for _ in range(4 * PLANES):
            fabric.permutation(100)
        sent = sent_by_port(fabric)
    assert min(sent) > 0


def test_results_do_not_depend_on_workers() -> None:
    found = []
    for workers in (1, 2):
        with made(workers=workers) as fabric:
            result = fabric.permutation(500_000)
            found.append((result.records["completion_ps"].tolist(), totals(fabric)))
    assert found[0] == found[1]


def test_results_tell_of_states_and_signals() -> None:
    with made() as fabric:
        fabric.schedule_link("p2l0", "p2s0", "down", 20 * US)
        fabric.run(CollectiveRequest("allreduce", [np.ones(2_000_000, np.int32) for _ in range(2)], "ring"))
        results = fabric.summary()
    assert [each.plane for each in results.entropy_values] == list(range(PLANES))
    assert all(each.assumed_bad == 0 for each in results.entropy_values if each.plane != 2)
    (signals,) = results.path_signals
    assert signals.sacks > 0
    assert signals.failures > 0


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda fabric: fabric.incast("h0", 1000, plane=1), "queue pairs of mrc use all planes"),
    ],
)
def test_planes_of_flows_are_refused(act: Any, words: str) -> None:
    with made() as fabric, pytest.raises(BadInputError, match=words):
        act(fabric)


def test_a_queue_pair_without_an_ev_for_each_plane_is_refused_before_the_run() -> None:
    transport: dict[str, Any] = {"protocol": "mrc", "ev_count": 7}
    fabric = {"planes": PLANES, "leaves": 2, "spines": 2, "hosts_per_leaf": 1}
    scenario = parse_scenario({"clock": "virtual", "int": False, "transport": transport, "fabric": fabric}, "s.yaml")
    with pytest.raises(BadInputError, match=r"7 EVs of a queue pair over 8 planes \(valid: 8 to 4096, one for each"):
        run_spec(scenario)
    with pytest.raises(BadInputError, match="7 EVs of a queue pair over 8 planes"):
        made(transport=TransportSection(**transport))


def test_fast_forward_is_refused_on_several_planes() -> None:
    with (
        pytest.raises(BadInputError, match="mrc on hosts with 8 NICs"),
        made(fidelity=FidelitySection(fast_forward=0.01)),
    ):
        pass
