"""Collectives in NCCL's protocols: results, bytes on links, latency of steps, the choice of `auto`, and refusals."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.refusals import refused
from weft import BadInputError, Fabric, topologies
from weft.results.run_result import RunResult
from weft.run.collectives import CollectiveRequest
from weft.run.protocols import links_of_protocol
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.costs import Links, Wire
from weft.traffic.protocols import LL, LL128, NONE, PROTOCOLS, SIMPLE, ProtocolSettings

HOSTS = {"planes": 2, "leaves": 2, "spines": 1, "hosts_per_leaf": 2}
ONE_HOST = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 2, "ranks_per_host": 4}
ONE_LEAF = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 4, "host_rate": "100Gb/s"}
FREE = {f"{name}{kind}_latency": 0 for name in PROTOCOLS for kind in ("", "_scale_up")}


def run(item: dict[str, Any], fabric: dict[str, Any] = HOSTS, **more: Any) -> RunResult:
    tree = {"clock": "virtual", "fabric": fabric, "traffic": [{"algorithms": ["ring"], **item}], **more}
    return run_scenario(parse_scenario(tree, units_required=True))


def time_ps(item: dict[str, Any], fabric: dict[str, Any] = HOSTS, **more: Any) -> int:
    [found] = run(item, fabric, **more).collectives
    assert found.ok
    return found.time_ps


def suited(collective: str) -> list[str]:
    names = [each.name for each in COLLECTIVE_KINDS[collective].algorithms if not each.in_network]
    return [name for name in names if not name.startswith(("hierarchical", "nvls"))]


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("collective", [name for name in COLLECTIVE_KINDS if name != "barrier"])
def test_results_are_right_in_every_protocol(collective: str, protocol: str, dtype: str) -> None:
    """Of sizes that end within lines: chunks of an odd number of bytes."""
    item = {"collective": collective, "algorithms": suited(collective), "sizes": [20_036], "dtype": dtype}
    for found in run(item | {"protocol": protocol, "root": 3}).collectives:
        assert found.ok
        assert found.verified
        assert found.protocol == protocol


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("algorithm", ["ring", "hierarchical"])
def test_results_are_right_within_and_between_hosts(algorithm: str, protocol: str) -> None:
    item = {"collective": "allreduce", "algorithms": [algorithm], "sizes": [20_036], "protocol": protocol}
    assert all(found.ok for found in run(item, ONE_HOST).collectives)


@pytest.mark.parametrize(("retransmission", "path"), [("go-back-n", "flow"), ("selective-repeat", "spray")])
def test_losses_and_sprayed_packets_change_no_result(retransmission: str, path: str) -> None:
    item = {"collective": "allreduce", "sizes": [200_000]}
    for protocol in PROTOCOLS:
        found = run(
            item | {"protocol": protocol},
            transport={"retransmission": retransmission, "path": path},
            faults={"loss": 0.002},
        )
        assert all(each.ok for each in found.collectives)
        assert found.collectives[0].retransmissions > 0


def sent_bytes(protocol: str, size_bytes: int, data: str = "random") -> int:
    """Payload on the first link of all hosts, in whole messages: chunks are multiples of LL128's 1,920 B."""
    fabric = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=4)
    with Fabric(fabric, clock="virtual") as made:
        inputs: Any = [np.ones(size_bytes // 4, np.float32)] * 4 if data == "random" else size_bytes
        assert made.run(CollectiveRequest("allreduce", inputs, "ring", protocol=protocol)).result.ok
        return sum(host["totals"]["data_bytes_sent"] for host in made.hosts.stats())


@pytest.mark.parametrize("data", ["random", "lengths"])
def test_ll_sends_twice_the_bytes_and_ll128_a_fifteenth_more(data: str) -> None:
    size_bytes = 4 * 1920 * 4
    plain = sent_bytes(NONE, size_bytes, data)
    assert plain == 2 * 3 * size_bytes
    assert sent_bytes(SIMPLE, size_bytes, data) == plain
    assert sent_bytes(LL, size_bytes, data) == 2 * plain
    assert sent_bytes(LL128, size_bytes, data) == plain * 128 // 120


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("scale_up", [False, True], ids=["between", "within"])
def test_each_step_pays_the_latency_once(protocol: str, scale_up: bool) -> None:
    """An all-reduce of n ranks has 2(n - 1) steps; a microsecond more in each is as many microseconds.

    With short latencies the last acknowledgement would end the run, not the last step.
    """
    item = {"collective": "allreduce", "sizes": ["4KiB"], "protocol": protocol}
    fabric, ranks = (ONE_HOST if scale_up else ONE_LEAF), 4
    if scale_up:
        item["ranks"] = list(range(ranks))
    key = f"{protocol}_scale_up_latency" if scale_up else f"{protocol}_latency"
    base = time_ps(item, fabric, protocols=FREE | {key: "10us"})
    assert time_ps(item, fabric, protocols=FREE | {key: "11us"}) == base + 2 * (ranks - 1) * 10**6


def test_simple_without_latency_is_as_no_protocol() -> None:
    item = {"collective": "allreduce", "sizes": ["64KiB"]}
    assert time_ps(item | {"protocol": SIMPLE}, protocols=FREE) == time_ps(item)


def test_results_without_the_key_are_as_before() -> None:
    item = {"collective": "allreduce", "sizes": ["4KiB"]}
    plain, costly = run(item), run(item, protocols={"ll_latency": "9us"})
    assert costly.collectives == plain.collectives
    assert "protocol" not in plain.collectives[0].as_dict()
    headers = [each.as_dict() for each in (plain, costly)]
    assert ["protocols" in json.dumps(each) for each in headers] == [False, True]


@pytest.mark.parametrize("fabric", [HOSTS, ONE_HOST], ids=["hosts", "ranks"])
def test_auto_takes_protocols_in_nccls_order_as_sizes_grow(fabric: dict[str, Any]) -> None:
    sizes = [2**power for power in range(6, 26, 2)]
    item = {"collective": "allreduce", "sizes": sizes, "protocol": "auto", "data": "lengths"}
    if fabric is ONE_HOST:
        item["ranks"] = [0, 1, 2, 3]
    taken = [found.protocol for found in run(item, fabric).collectives]
    assert taken == sorted(taken, key=PROTOCOLS.index)
    assert set(taken) == set(PROTOCOLS)


def test_thresholds_decide_where_they_are_given() -> None:
    sizes = [1024, 2048, 4096, 8192, 16384]
    item = {"collective": "allreduce", "sizes": sizes, "protocol": "auto"}
    found = run(item, protocols={"ll_up_to": "2KiB", "ll128_up_to": "8KiB"})
    assert [each.protocol for each in found.collectives] == [LL, LL, LL128, LL128, SIMPLE]
    found = run(item, protocols={"ll_up_to": 0, "ll128_up_to": 0})
    assert {each.protocol for each in found.collectives} == {SIMPLE}


def test_thresholds_out_of_order_are_refused() -> None:
    item = {"collective": "allreduce", "algorithms": ["ring"], "sizes": [1024], "protocol": "auto"}
    tree = {"fabric": HOSTS, "traffic": [item], "protocols": {"ll_up_to": "64KiB", "ll128_up_to": "32KiB"}}
    with refused(
        BadInputError,
        place="scenario: protocols.ll_up_to",
        problem="64KiB is above ll128_up_to, so no size takes LL128",
        valid="0 to 32KiB, or a larger ll128_up_to",
    ):
        parse_scenario(tree)
    parse_scenario(tree | {"protocols": {"ll_up_to": "32KiB", "ll128_up_to": "32KiB"}})


def test_a_threshold_alone_leaves_the_other_to_prediction() -> None:
    predicted = {LL: 3.0, LL128: 1.0, SIMPLE: 2.0}.__getitem__
    assert ProtocolSettings().chosen(100, predicted) == LL128
    assert ProtocolSettings(ll_up_to=100).chosen(100, predicted) == LL
    assert ProtocolSettings(ll_up_to=99).chosen(100, predicted) == LL128
    assert ProtocolSettings(ll128_up_to=99).chosen(100, predicted) == SIMPLE


def test_predictions_count_latency_and_flags() -> None:
    links = Links(Wire(100, 2.0, 1.0, 1024), Wire(10, 1.0), Wire(1, 1.0))
    seen = links_of_protocol(links, ProtocolSettings(ll_latency=5, ll_scale_up_latency=3), LL)
    assert seen == Links(Wire(105, 4.0, 2.0, 512), Wire(13, 2.0), Wire(1, 1.0))


@pytest.mark.parametrize(
    ("change", "place", "said"),
    [
        ({"algorithms": ["in-network"]}, "traffic[0].protocol", "in-network sends aggregation packets"),
        ({"algorithms": ["auto"]}, "traffic[0].protocol", "auto measures algorithms without a protocol"),
        ({"algorithms": None}, "traffic[0].algorithms", "with protocol there must be one or more"),
        (
            {"collective": "barrier", "algorithms": ["dissemination"], "sizes": []},
            "traffic[0].protocol",
            "a barrier carries no data",
        ),
        ({"protocol": "ll64"}, "traffic[0].protocol", "'ll64'"),
    ],
)
def test_items_that_have_no_protocol_refuse_it(change: dict[str, Any], place: str, said: str) -> None:
    item = {"collective": "allreduce", "sizes": [4096], "protocol": "ll"} | change
    with pytest.raises(BadInputError) as caught:
        run(item)
    assert place in str(caught.value)
    assert said in str(caught.value)


def test_other_kinds_have_no_such_key() -> None:
    with pytest.raises(BadInputError, match=r"traffic\[0\]\.protocol"):
        parse_scenario({"fabric": HOSTS, "traffic": [{"incast": "h0", "size": 4096, "protocol": "ll"}]})


def test_python_refuses_as_scenarios_do() -> None:
    fabric = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    with Fabric(fabric, clock="virtual") as made:
        for algorithm, protocol, said in (
            ("ring", "ll64", "no protocol 'll64' (valid: simple, ll, ll128, auto)"),
            ("in-network", "ll", "in-network sends aggregation packets"),
            ("auto", "ll", "auto measures algorithms"),
        ):
            with pytest.raises(BadInputError) as caught:
                made.run(CollectiveRequest("allreduce", 4096, algorithm, protocol=protocol))
            assert said in str(caught.value)
