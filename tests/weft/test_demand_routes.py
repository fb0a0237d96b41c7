"""Routes by demand in virtual time: faster than hashes on a skewed matrix, also around failures."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import yaml

from tests.refusals import refused
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

EXAMPLE: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "demand_routes.yaml").read_text(encoding="utf-8"))
EXAMPLE["traffic"][0]["pattern"] = f"{ROOT / 'examples' / 'skewed.py'}:Skewed"
SMALL = {"fabric": EXAMPLE["fabric"] | {"leaves": 4, "spines": 4, "hosts_per_leaf": 4}}


def run(**changed: object) -> RunResult:
    return run_scenario(parse_scenario(EXAMPLE | changed))


@cache
def small(kind: str, seed: int = 1) -> RunResult:
    return run(**SMALL, seed=seed, routing={"kind": kind})


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_skewed_matrix_ends_sooner_than_with_ecmp(seed: int) -> None:
    """Every NIC sends and receives the same, no flow is larger than a link, and the fabric is not oversubscribed.

    So nothing but the choice of paths keeps the run from ending in the time that a NIC needs for its bytes.
    """
    by_demand, by_hash = (small(kind, seed).flows[0] for kind in ("demand", "shortest_paths"))
    assert by_hash.time_ps >= 1.2 * by_demand.time_ps
    assert by_demand.bytes_delivered == by_hash.bytes_delivered


@pytest.mark.slow
def test_the_example_is_near_the_bound_and_twice_as_fast_as_ecmp() -> None:
    by_demand, by_hash = (run(routing={"kind": kind}) for kind in ("demand", "shortest_paths"))
    (routes,) = by_demand.demand_routes
    assert routes.fullest_ps <= 1.02 * routes.bound_ps
    assert by_hash.flows[0].time_ps >= 2 * by_demand.flows[0].time_ps


def test_results_have_the_loads_of_the_matrix() -> None:
    (routes,) = small("demand").demand_routes
    assert routes.queue_pairs == 16 * 4
    nic_ps = (4194304 + 3 * 262144) * 80
    assert routes.bound_ps <= routes.fullest_ps <= nic_ps < routes.ecmp_ps
    assert routes.left_to_ecmp == 0
    assert 0 < routes.destinations <= 16
    assert not small("shortest_paths").demand_routes


def test_results_can_be_read_back() -> None:
    data = small("demand").as_dict()
    assert data["demand_routes"][0]["gain"] > 1.2
    assert "demand_routes" not in small("shortest_paths").as_dict()


def test_all_bytes_arrive_when_a_link_fails_and_when_a_spine_is_drained() -> None:
    events = [
        {"link": "p0l0<->p0s1", "state": "down", "at": "50us"},
        {"switch": "p0s2", "state": "drained", "at": "120us"},
    ]
    result = run(**SMALL, routing={"kind": "demand"}, events=events)
    assert result.flows[0].bytes_delivered == small("demand").flows[0].bytes_delivered
    assert [each.state for each in result.link_events] == ["down"]


@pytest.mark.parametrize(
    ("item", "queue_pairs"),
    [
        ({"collective": "allreduce", "algorithms": ["ring"], "sizes": ["64KiB"], "data": "lengths"}, 16),
        ({"collective": "alltoall", "algorithms": ["direct"], "sizes": ["64KiB"], "data": "lengths"}, 16 * 15),
        ({"permutation": "64KiB", "queue_pairs": 2}, 32),
        ({"incast": "h0", "bytes_per_sender": "64KiB"}, 15),
    ],
)
def test_the_matrix_is_that_of_the_traffic(item: dict[str, object], queue_pairs: int) -> None:
    result = run(**SMALL, traffic=[item])
    assert [each.queue_pairs for each in result.demand_routes] == [queue_pairs]


def test_items_that_run_one_after_the_other_have_routes_of_their_own() -> None:
    result = run(**SMALL, traffic=[{"permutation": "64KiB"}, {"incast": "h0", "bytes_per_sender": "64KiB"}])
    assert [each.queue_pairs for each in result.demand_routes] == [16, 15]
    alone = run(**SMALL, traffic=[{"incast": "h0", "bytes_per_sender": "64KiB"}])
    assert result.flows[1].time_ps == alone.flows[0].time_ps


def test_modes_that_spread_packets_are_refused() -> None:
    with refused(BadInputError, place="scenario: routing.load_balancing", valid="flow"):
        run(**SMALL, routing={"kind": "demand", "load_balancing": "random"})
    with refused(BadInputError, place="scenario: routing.kind", valid="shortest_paths"):
        run(**SMALL, transport={"protocol": "mrc"})
