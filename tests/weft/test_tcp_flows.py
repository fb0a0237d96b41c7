"""Flows of TCP in scenarios: what a bottleneck makes of them, and what is refused."""

from typing import Any

import pytest

from tests.refusals import refused
from weft.errors import BadInputError, EnvironmentLacksError
from weft.paths import ROOT
from weft.results.flows import FLOWS
from weft.results.run_result import RunResult
from weft.results.tcp import TCP, TcpResult
from weft.run.runner import run_scenario
from weft.run.traffic_kinds.tcp import TcpTraffic
from weft.scenario import parse_scenario

FABRIC = {
    "planes": 1,
    "leaves": 2,
    "spines": 1,
    "hosts_per_leaf": 2,
    "host_rate": "1Gb/s",
    "fabric_rate": "1Gb/s",
}
TWO_FLOWS = [{"flow": "h0->h2", "duration": "100ms"}, {"flow": "h1->h3", "duration": "100ms"}]


def run(*traffic: dict[str, Any], **options: Any) -> RunResult:
    scenario = {"clock": "virtual", "fabric": FABRIC, "link_mtu": 1500, "traffic": list(traffic)}
    return run_scenario(parse_scenario(scenario | options))


def tcp(flows: list[dict[str, Any]], **keys: Any) -> TcpResult:
    (result,) = run({"tcp": flows, **keys}).of(TCP)
    assert isinstance(result, TcpResult)
    assert result.ok
    return result


@pytest.mark.parametrize("control", ["newreno", "cubic", "dctcp"])
def test_two_flows_fill_a_bottleneck(control: str) -> None:
    result = tcp(TWO_FLOWS, congestion_control=control)
    # 1,448 of 1,514 B are data. A flow that loses the end of a window waits for a timeout.
    least = 0.95 if control == "dctcp" else 0.4
    assert least * 1e9 * 1448 / 1514 < result.goodput_bps < 1e9 * 1448 / 1514
    assert (result.marked_share > 0) == (control == "dctcp")
    assert (result.retransmitted_segments > 0) == (control != "dctcp")
    if control == "dctcp":
        assert result.fairness > 0.9
    assert result.flows[0].smoothed_round_trip_ps > 0


def test_flows_that_start_together_do_not_keep_step() -> None:
    """Jain's index in two phases that lock: two and eight flows of DCTCP, each segment acknowledged."""

    def fairness(flows: int, threshold_bytes: int, **keys: Any) -> float:
        item = {
            "tcp": [{"flow": f"h{each}->h{flows}", "duration": "20ms"} for each in range(flows)],
            "congestion_control": "dctcp",
            "acknowledge_every": 1,
            "least_timeout": "10ms",
            "delayed_acknowledgement": "1ms",
        }
        links = {"host_rate": "10Gb/s", "fabric_rate": "40Gb/s", "queue_capacity": "500KB"}
        ecn = {"kmin": threshold_bytes, "kmax": threshold_bytes + 1, "pmax": 1}
        (result,) = run(item | keys, fabric=FABRIC | links | {"hosts_per_leaf": flows}, ecn=ecn).of(TCP)
        assert isinstance(result, TcpResult)
        return result.fairness

    for flows, threshold_bytes in ((2, 97_500), (8, 200_000)):
        assert fairness(flows, threshold_bytes, send_jitter=0) < 0.95
        assert fairness(flows, threshold_bytes) > 0.97


def test_parameters_of_controls() -> None:
    """A flow's own, or the item's where its control is the item's."""
    flows: list[dict[str, Any]] = [
        {"flow": "h0->h2", "duration": "50ms"},
        {"flow": "h1->h3", "duration": "50ms", "parameters": {"initial_alpha": 0.5}},
        {"flow": "h2->h0", "size": 1, "congestion_control": "newreno"},
    ]
    scenario = {"clock": "virtual", "fabric": FABRIC, "link_mtu": 1500, "traffic": []}
    item = {"tcp": flows, "congestion_control": "dctcp", "parameters": {"g": 1}, "acknowledge_every": 1}
    parsed = parse_scenario({**scenario, "traffic": [item]})
    (traffic,) = parsed.traffic
    assert isinstance(traffic, TcpTraffic)
    ends = [flow.end for flow in traffic.flows(parsed.fabric.network())]
    assert [end.parameters for end in ends] == [{"g": 1}, {"initial_alpha": 0.5}, {}]
    # Of two flows that give way alike, whose alpha follows the newest window alone gives way by jumps.
    slow, fast = (
        tcp(
            [*TWO_FLOWS[:1], {**TWO_FLOWS[1], "start": "1ms"}],
            congestion_control="dctcp",
            parameters={"g": g},
            sample="100us",
        )
        for g in (0.0625, 1)
    )
    assert len(set(fast.windows.marked_share)) < len(set(slow.windows.marked_share))
    assert all(0 <= share <= 1 for share in fast.windows.marked_share)


def test_each_segment_is_acknowledged_where_that_is_asked_for() -> None:
    def acknowledged(every: int) -> float:
        result = tcp([{"flow": "h0->h3", "size": 1_000_000}], acknowledge_every=every, congestion_control="dctcp")
        return result.flows[0].completion_ps

    assert acknowledged(1) < acknowledged(20)


def test_counters_of_flows() -> None:
    result = tcp(TWO_FLOWS, congestion_control="newreno")
    assert result.retransmitted_segments > 0
    for flow in result.flows:
        assert flow.retransmitted_segments >= flow.fast_recoveries
        assert (flow.out_of_order_segments > 0) == (flow.fast_recoveries > 0)
        assert flow.spurious_segments <= flow.retransmitted_segments + flow.tail_probes
        assert flow.duplicate_segments >= flow.spurious_segments
        assert flow.marked_segments == 0
    marked = tcp(TWO_FLOWS, congestion_control="dctcp")
    assert all(flow.marked_segments > 0 for flow in marked.flows)


def test_a_flow_of_a_size() -> None:
    (flow,) = tcp([{"flow": "h0->h3", "size": 1_000_000, "start": "1ms"}], sample="10us").flows
    assert (flow.source, flow.destination, flow.bytes, flow.start_ps) == ("h0", "h3", 1_000_000, 10**9)
    assert flow.retransmitted_segments == flow.timeouts == 0
    assert flow.completion_ps > 8 * 10**9


def test_connections_and_controls_of_flows() -> None:
    flows = [
        {"flow": "h0->h2", "size": 100_000, "connections": 3},
        {"flow": "h2->h0", "size": 1, "congestion_control": "newreno"},
    ]
    result = tcp(flows, sample="100us")
    assert [each.congestion_control for each in result.flows] == ["cubic"] * 3 + ["newreno"]
    assert set(result.windows.flow) == {0, 1, 2, 3}
    assert list(result.windows.time_ps) == sorted(result.windows.time_ps)


def test_ipv6() -> None:
    result = run({"tcp": [{"flow": "h0->h3", "size": 50_000}]}, ip_version=6)
    assert result.of(TCP)[0].bytes == 50_000


@pytest.mark.parametrize("control", ["cubic", "dctcp"])
def test_results_are_the_same_for_every_number_of_workers(control: str) -> None:
    item = {
        "tcp": [{**flow, "duration": "5ms"} for flow in TWO_FLOWS],
        "congestion_control": control,
        "sample": "1us",
    }
    one, two = (run(item, workers=workers).of(TCP)[0].as_dict() for workers in (1, 2))
    assert one == two


def test_beside_flows_of_rocev2() -> None:
    items = [
        {"tcp": [{"flow": "h0->h2", "size": 1_000_000}], "congestion_control": "dctcp"},
        {"permutation": 100_000},
    ]
    result = run({"together": items})
    assert result.ok
    assert result.of(TCP)[0].bytes == 1_000_000
    assert result.of(FLOWS)[0].bytes_delivered == 400_000


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"tcp": [{"flow": "h0->h9", "size": 1}]}, r"tcp\[0\].flow: no host 'h9'"),
        ({"tcp": [{"flow": "h0->h0", "size": 1}]}, "from h0 to itself"),
        ({"tcp": [{"flow": "h0->h1"}]}, "exactly one of size, duration"),
        ({"tcp": [{"flow": "h0->h1", "size": 1, "duration": "1ms"}]}, "exactly one of size, duration"),
        (
            {"tcp": [{"flow": "h0->h1", "size": 1}], "congestion_control": "bbr"},
            "no TCP congestion control 'bbr'",
        ),
        ({"tcp": [{"flow": "h0->h1", "size": 1, "connections": 4096}] * 2}, "8192 connections"),
        (
            {"tcp": [{"flow": "h0->h1", "size": 1}], "parameters": {"bta": 0.5}},
            r"traffic\[0\].parameters: .*bta",
        ),
        (
            {"tcp": [{"flow": "h0->h1", "size": 1, "parameters": {"beta": 2}}]},
            r"tcp\[0\].parameters: .*beta",
        ),
        ({"tcp": [{"flow": "h0->h1", "size": 1}], "acknowledge_every": 0}, "acknowledge_every"),
    ],
)
def test_refused(keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInputError, match=problem):
        run(keys)


def test_hosts_of_network_files_have_their_own_names() -> None:
    network = {"kind": "network", "path": str(ROOT / "examples" / "own_network" / "topology.json")}
    flows = {"tcp": [{"flow": "h2->h1", "size": 1}]}
    scenario = parse_scenario({"clock": "virtual", "fabric": network, "traffic": [flows]})
    (item,) = scenario.traffic
    assert isinstance(item, TcpTraffic)
    assert [(flow.source, flow.destination) for flow in item.flows(scenario.fabric.network())] == [(1, 0)]
    with refused(BadInputError, place="scenario: traffic[0].tcp[0].flow", problem="no host 'h0'; valid: h1, h2"):
        parse_scenario({"clock": "virtual", "fabric": network, "traffic": [{"tcp": [{"flow": "h0->h1", "size": 1}]}]})


def test_the_real_clock_has_the_kernels_tcp() -> None:
    for traffic in ({"tcp": TWO_FLOWS}, {"together": [{"tcp": TWO_FLOWS}]}):
        with pytest.raises(EnvironmentLacksError, match=r"traffic\[0\].*tcp: this TCP is that of hosts of the virtual"):
            run(traffic, clock="real")
