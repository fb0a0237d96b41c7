"""A storage network at work: storage alone uses it, training is as without it, and what follows when it fails."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from tests.refusals import refused
from weft.errors import BadInputError, CheckFailedError
from weft.paths import ROOT
from weft.quantities.yaml_files import read_mapping
from weft.results.run_result import RunResult
from weft.results.storage import STORAGE
from weft.run.lint.checked import findings_in
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

US, MS = 10**6, 10**9
FABRIC = {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "host_rate": "400Gb/s"}
NETWORK = {"host_rate": "200Gb/s", "hosts_per_leaf": 4}
QUICK = {
    "read": {"latency": "2us", "bandwidth": "8000Gb/s", "channels": 64},
    "write": {"latency": "1us", "bandwidth": "8000Gb/s", "channels": 64},
}
"""A device that bounds nothing."""
COLLECTIVE = {"collective": "allreduce", "algorithms": ["ring"], "sizes": ["16MiB"], "data": "lengths"}
STEADY = {"storage": [3, 7], "device": QUICK, "access": {"blocks": 60, "order": "sequential", "reads": 0}}


def tree(*items: dict[str, Any], network: dict[str, Any] | None = NETWORK, **keys: Any) -> dict[str, Any]:
    fabric = FABRIC if network is None else FABRIC | {"storage_network": network}
    return {"clock": "virtual", "fabric": fabric, "traffic": list(items), **keys}


def run(*items: dict[str, Any], **keys: Any) -> RunResult:
    return run_scenario(parse_scenario(tree(*items, **keys)))


def test_training_is_as_without_it() -> None:
    items = [
        {"collective": "allreduce", "algorithms": ["ring", "in-network"], "sizes": ["1MiB"]},
        {"permutation": "64KiB"},
        {"incast": "h0", "bytes_per_sender": "64KiB"},
    ]
    own, other = run(*items), run(*items, network=None)
    assert [each.time_ps for each in own.collectives] == [each.time_ps for each in other.collectives]
    for found, expected in zip(own.flows, other.flows, strict=True):
        assert found.records["completion_ps"].tolist() == expected.records["completion_ps"].tolist()
    assert [plane.largest_queue_bytes for plane in own.planes][2] == 0


def test_storage_uses_it_alone_and_reaches_its_bound() -> None:
    """Eight ranks of 200 Gb/s on it: nodes send reads at its rate, not the fabric's."""
    reads = {"storage": [3, 7], "device": QUICK, "access": {"blocks": 400, "order": "sequential", "reads": 1}}
    result = run(reads)
    (found,) = result.of(STORAGE)
    bound = found.bounds_bytes_per_s["link"]
    assert 2 * 25e9 * 0.85 < bound < 2 * 25e9
    assert 0.9 * bound < found.bytes_per_s <= bound
    assert [plane.largest_queue_bytes for plane in result.planes][:2] == [0, 0]
    assert (result.planes[2].largest_queue_bytes or 0) > 0


def events(*of: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"plane": 2, "state": state, "at": at} for state, at in of]


@pytest.fixture(scope="module")
def undisturbed() -> RunResult:
    return run({"together": [COLLECTIVE, STEADY]})


def test_when_it_fails_training_goes_on_and_storage_waits(undisturbed: RunResult) -> None:
    failed = run({"together": [COLLECTIVE, STEADY]}, events=events(("down", "100us"), ("up", "3ms")))
    (before,), (after,) = undisturbed.collectives, failed.collectives
    assert after.time_ps == before.time_ps
    (early,), (late,) = undisturbed.of(STORAGE), failed.of(STORAGE)
    assert early.time_ps < 2 * MS
    assert late.time_ps > 3 * MS
    assert late.commands == early.commands
    assert late.written_bytes == early.written_bytes


def test_without_a_way_back_the_run_says_what_waits() -> None:
    with pytest.raises(CheckFailedError, match=r"nothing joins h\d and h\d over NIC 2"):
        run({"together": [COLLECTIVE, STEADY]}, events=events(("down", "100us")))


def test_with_failover_the_fabric_carries_storage_until_it_is_back(undisturbed: RunResult) -> None:
    network = NETWORK | {"failover": True}
    failed = run({"together": [COLLECTIVE, STEADY]}, network=network, events=events(("down", "100us")))
    (before,), (after,) = undisturbed.collectives, failed.collectives
    assert after.time_ps > before.time_ps
    (early,), (late,) = undisturbed.of(STORAGE), failed.of(STORAGE)
    assert late.written_bytes == early.written_bytes
    assert sum(plane.largest_queue_bytes or 0 for plane in failed.planes[:2]) > 0


@pytest.mark.parametrize("fabric", [{"kind": "rail_only"}, {"rail_optimised": True, "scale_up": {"relay": "rails"}}])
def test_failover_to_planes_that_need_relays_is_refused(fabric: dict[str, Any]) -> None:
    hosts = {"planes": 1, "ranks_per_host": 2, "hosts_per_leaf": 2, "storage_network": NETWORK | {"failover": True}}
    reads = {"storage": [3], "clients": [0], "device": QUICK, "access": {"blocks": 2, "reads": 1}}
    with pytest.raises(BadInputError, match=r"fabric\.storage_network\.failover"):
        run(reads, fabric=fabric | hosts)
    # Without failover both work.
    hosts["storage_network"] = NETWORK
    assert run(reads, fabric=fabric | hosts).ok


def test_a_lone_plane_of_training_is_not_lost_to_others() -> None:
    lost = [{"plane": 0, "state": "down", "at": "20us"}, {"plane": 0, "state": "up", "at": "50us"}]
    result = run(COLLECTIVE, fabric=FABRIC | {"planes": 1, "storage_network": NETWORK}, events=lost)
    assert not [event for event in result.controller_events if event.kind.startswith("plane")]


def test_bounds_are_left_out_where_planes_may_change() -> None:
    assert "link" in run(STEADY).of(STORAGE)[0].bounds_bytes_per_s
    assert run(STEADY, network=NETWORK | {"failover": True}).of(STORAGE)[0].bounds_bytes_per_s == {}


def test_planes_of_training_do_not_fail_over_to_it() -> None:
    lost = [{"plane": plane, "state": "down", "at": "20us"} for plane in (0, 1)]
    with pytest.raises(CheckFailedError, match=r"over NIC [01]"):
        run(COLLECTIVE, events=lost)


def test_one_of_two_planes_is_stood_for_by_the_other_alone() -> None:
    lost = [{"plane": 0, "state": "down", "at": "20us"}]
    own, other = run(COLLECTIVE, events=lost), run(COLLECTIVE, events=lost, network=None)
    assert [each.time_ps for each in own.collectives] == [each.time_ps for each in other.collectives]


def test_queue_pairs_over_all_planes_are_refused() -> None:
    with refused(
        BadInputError,
        place="scenario: fabric.storage_network",
        valid="a protocol whose queue pairs use one, or no storage network",
    ):
        run({"permutation": "1KiB"}, transport={"protocol": "mrc"}, int=False)


@pytest.mark.parametrize(
    ("fabric", "routing"),
    [
        ({"kind": "torus", "shape": [3, 3]}, "dimension_order_valiant"),
        ({"groups": 3, "routers": 2, "global_links": 1}, "dragonfly_ugal"),
        ({"kind": "torus", "shape": [3, 3]}, "layered"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_its_routes_are_shortest_paths_whatever_the_fabric_s_are(fabric: dict[str, Any], routing: str) -> None:
    sections = {"routing": {"kind": routing}, "transport": {"retransmission": "selective-repeat"}}
    sections |= {"pfc": {"classes": [3]}, "fabric": fabric | {"planes": 1, "storage_network": {"hosts_per_leaf": 4}}}
    reads = {"storage": [1], "device": QUICK, "access": {"blocks": 5, "order": "random", "reads": 0.5}}
    result = run(COLLECTIVE | {"sizes": ["64KiB"]}, reads, **sections)
    assert result.ok
    assert result.drops == {}
    assert (result.planes[1].largest_queue_bytes or 0) > 0


def test_other_traffic_cannot_ask_for_it() -> None:
    with refused(BadInputError, place="scenario: traffic[0].plane"):
        run({"incast": "h0", "bytes_per_sender": "1KiB", "plane": 2})


def test_lint_finds_events_on_it_without_storage() -> None:
    failing = events(("down", "10us"))
    found = [
        {finding.rule for finding in findings_in(partial(parse_scenario, tree(item, events=failing)))}
        for item in (COLLECTIVE, STEADY)
    ]
    assert ["event-elsewhere" in rules for rules in found] == [True, False]


def test_it_is_not_taken_out_of_use() -> None:
    """As the only plane of a fabric is not."""
    out = {"plane": 2, "state": "cordoned", "at": "10us"}
    with pytest.raises(CheckFailedError, match=r"without plane 2 .* would be cut off"):
        run({"permutation": "64KiB"}, events=[out])


def test_the_example_shows_what_its_page_says() -> None:
    failing = read_mapping(ROOT / "examples" / "storage_network.yaml", "a scenario")
    apart = {key: value for key, value in failing.items() if key != "events"}
    shared = deepcopy(apart)
    del shared["fabric"]["storage_network"]
    failover = deepcopy(failing) | {"events": failing["events"][:1]}
    failover["fabric"]["storage_network"]["failover"] = True
    page = (ROOT / "docs" / "storage.md").read_text(encoding="utf-8")
    for scenario, travels in (
        (shared, "over the planes"),
        (apart, "over its own network"),
        (failing, "over its own, which fails from 1 to 3 ms (the example)"),
        (failover, "over its own, which fails for good, with `failover`"),
    ):
        result = run_scenario(parse_scenario(scenario))
        (step,), (saved,) = result.collectives, result.of(STORAGE)
        assert f"| {travels} | {step.time_ps / US:,.1f} µs | {saved.time_ps / MS:.2f} ms |" in page
