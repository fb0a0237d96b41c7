"""Messages that change rails inside hosts: they arrive, by which ranks, how long they take, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.refusals import refused
from tests.weft.small_model import SMALL_MODEL
from weft import Fabric, topologies
from weft.errors import BadInputError
from weft.results.run_result import RunResult
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import TransportSection, parse_scenario
from weft.topologies import FabricSpec, TopologyError, with_scale_up
from weft.topologies.kinds.rail_only import rail_only
from weft.topologies.parts import RELAY_MODES, RelayMode
from weft.traffic.patterns import Flow

PS_PER_S = 10**12
RAILS = {"kind": "rail_only", "planes": 1, "ranks_per_host": 4, "hosts_per_leaf": 3, "host_rate": "100Gb/s"}
RANKS = 12
ALL_TO_ALL = {"collective": "alltoall", "sizes": ["1MiB"], "algorithms": ["direct"]}


def rails(relay: RelayMode = "unreachable", planes: int = 1) -> FabricSpec:
    network = rail_only(planes=planes, rails=4, hosts_per_leaf=3, host_rate_bps=100 * 10**9)
    return with_scale_up(network, 4, rail_optimised=True, relay=relay)


def run(fabric: dict[str, Any], *traffic: dict[str, Any], **keys: Any) -> RunResult:
    return run_scenario(parse_scenario({"clock": "virtual", "fabric": fabric, "traffic": list(traffic), **keys}))


def exchanged(elements: int) -> tuple[list[np.ndarray[Any, Any]], list[np.ndarray[Any, Any]]]:
    """Data before and after an all-to-all, elements to each rank."""
    sent = np.arange(RANKS * RANKS * elements, dtype=np.int32).reshape(RANKS, RANKS, elements)
    return [each.ravel() for each in sent], [each.ravel() for each in sent.transpose(1, 0, 2)]


@pytest.mark.parametrize(
    ("planes", "options"),
    [
        (1, {}),
        (2, {}),
        (2, {"transport": "mrc"}),
        (1, {"ip_version": 6}),
    ],
)
def test_a_direct_all_to_all_arrives_over_rails_that_do_not_meet(planes: int, options: dict[str, Any]) -> None:
    before, after = exchanged(elements=500)
    if "transport" in options:
        options = {"transport": TransportSection(protocol="mrc"), "int_telemetry": False}
    with Fabric(rails(planes=planes), clock="virtual", **options) as fabric:
        for _ in range(2):  # over the connections that are there then
            found = fabric.run(CollectiveRequest("alltoall", [each.copy() for each in before], "direct")).buffers
            assert all(np.array_equal(*pair) for pair in zip(found, after, strict=True))
        relays = fabric.summary().relays
    # Each of 12 ranks sends to the 3 ranks of both other hosts that are on other rails.
    assert sum(each.messages for each in relays) % (RANKS * 6) == 0
    assert sum(each.relayed_bytes for each in relays) == 2 * RANKS * 6 * 2000
    assert {each.relay for each in relays} == {f"h{rank}" for rank in range(RANKS)}


def test_a_message_takes_its_time_inside_and_its_time_between_hosts() -> None:
    size = 1_000_000
    times = {}
    for destination in (1, 4):
        with Fabric(rails(), clock="virtual", mtu_bytes=4096, int_telemetry=False) as fabric:
            found = fabric.run_flows("one", [Flow(0, destination, size)])
            times[destination] = found.largest_completion_ps
            relays = fabric.summary().relays
    # h0 and h1 are on rail 0; h3 is the neighbour of h0 on the rail of h4.
    (relay,) = relays
    assert (relay.relay, relay.messages, relay.relayed_bytes) == ("h3", 1, size)
    assert relay.inside_ps == size * 8 * PS_PER_S // (3600 * 10**9) + 500_000
    assert relay.between_ps == times[1]
    assert times[4] == relay.inside_ps + relay.between_ps


@pytest.mark.parametrize("relay", RELAY_MODES)
def test_all_messages_that_change_rails_do_so_inside_hosts_if_asked(relay: RelayMode) -> None:
    fabric = {"leaves": 4, "spines": 2, "hosts_per_leaf": 3, "ranks_per_host": 4, "rail_optimised": True}
    result = run({**fabric, "scale_up": {"relay": relay}}, ALL_TO_ALL, observe={"loads": True})
    assert result.ok
    over_spines = sum(
        each.transmitted_bytes for each in result.link_loads if "spine" in each.links and each.kind == "others"
    )
    if relay == "rails":
        assert {each.relay for each in result.relays} == {f"h{rank}" for rank in range(RANKS)}
        assert over_spines == 0
    else:
        assert not result.relays
        assert over_spines > 0


@pytest.mark.parametrize("seed", range(3))
def test_messages_arrive_though_links_lose(seed: int) -> None:
    result = run(RAILS, ALL_TO_ALL, faults={"loss": 0.01}, seed=seed)
    assert result.ok
    assert result.retransmissions > 0
    assert sum(each.messages for each in result.relays) > 0


def test_pipeline_stages_on_other_rails_exchange_activations() -> None:
    item = {"model": SMALL_MODEL | {"layers": 4}, "parallel": {"pipeline": 4, "data": 3}, "micro_batches": 2}
    result = run(RAILS, item)
    assert result.ok
    assert result.relays


def test_without_relays_ranks_of_other_rails_are_refused() -> None:
    buffers = [np.zeros(RANKS, dtype=np.int32)] * RANKS
    with (
        Fabric(rails("off"), clock="virtual") as fabric,
        refused(BadInputError, problem="have no path in plane 0"),
    ):
        fabric.run(CollectiveRequest("alltoall", buffers, "direct"))


def test_rails_are_needed_for_relays_between_all_of_them() -> None:
    with refused(
        BadInputError,
        place="scenario: fabric.scale_up.relay",
        valid="with rail_optimised: true",
        problem="the fabric has none",
    ):
        parse_scenario({"fabric": {"leaves": 2, "ranks_per_host": 2, "scale_up": {"relay": "rails"}}})
    side_by_side = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=4)
    with refused(TopologyError, valid="rail_optimised=True", problem="relay='rails' without rails"):
        with_scale_up(side_by_side, 2, relay="rails")
