"""Tenants' guaranteed shares: a victim next to a tenant that sends as fast as it can, by time, and what is refused."""

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
from weft.run.spec import run_spec
from weft.scenario import parse_scenario
from weft.scenario.tenant_shares import class_of_tenant

EXAMPLE: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "tenants.yaml").read_text(encoding="utf-8"))
TENANTS = EXAMPLE["tenants"]
VICTIM_RANKS = [0, 8, 1, 9, 2, 10, 3, 11]
VICTIMS = {"allreduce": "ring", "alltoall": "direct"}
AGGRESSORS: dict[str, dict[str, Any]] = {
    "permutation": {"permutation": "16MiB", "queue_pairs": 4},
    "incast on its own host": {"incast": "h4", "bytes_per_sender": "8MiB"},
    "incast on the victim": {"incast": "h0", "bytes_per_sender": "8MiB"},
}


def victim(kind: str) -> dict[str, Any]:
    algorithms = [VICTIMS[kind]]
    item = {"collective": kind, "algorithms": algorithms, "sizes": ["4MiB"], "data": "lengths", "ranks": VICTIM_RANKS}
    return item | {"tenant": "blue"}


def aggressor(name: str) -> dict[str, Any]:
    return AGGRESSORS[name] | {"data": "lengths", "tenant": "red"}


def run(traffic: list[dict[str, Any]], control: str = "fixed-window", **changed: object) -> RunResult:
    transport = EXAMPLE["transport"] | {"congestion_control": control}
    return run_scenario(parse_scenario(EXAMPLE | {"transport": transport, "traffic": traffic} | changed))


@cache
def share_alone_ps(kind: str, control: str) -> int:
    """The victim's time alone on a fabric with links of its share."""
    fabric = EXAMPLE["fabric"] | {"host_rate": "50Gb/s"}
    return run([victim(kind)], control, fabric=fabric).collectives[0].time_ps


@pytest.mark.parametrize("kind", VICTIMS)
@pytest.mark.parametrize("name", AGGRESSORS)
@pytest.mark.parametrize("control", ["fixed-window", "dcqcn", "swift"])
def test_a_victim_is_no_slower_than_alone_on_its_share(kind: str, name: str, control: str) -> None:
    beside = run([{"together": [victim(kind), aggressor(name)]}], control)
    assert beside.collectives[0].time_ps <= 1.05 * share_alone_ps(kind, control)


def test_without_shares_the_same_aggressor_slows_the_victim() -> None:
    def without_tenant(item: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in item.items() if key != "tenant"}

    items = [without_tenant(victim("allreduce")), without_tenant(aggressor("incast on the victim"))]
    beside = run([{"together": items}], tenants={})
    assert beside.collectives[0].time_ps > 1.15 * share_alone_ps("allreduce", "fixed-window")


def test_a_tenant_that_is_alone_has_all() -> None:
    alone = run([victim("alltoall")]).collectives[0].time_ps
    assert alone < 0.6 * share_alone_ps("alltoall", "fixed-window")


def test_shares_hold_for_memory_too() -> None:
    """An aggressor that overflows its own queues drops its own packets alone."""
    beside = run([{"together": [victim("alltoall"), aggressor("permutation")]}])
    assert beside.flows[0].retransmissions >= sum(beside.drops.values()) - beside.collectives[0].retransmissions
    options = run_spec(parse_scenario(EXAMPLE)).options
    blue, red = (class_of_tenant(options.tenants, name) for name in ("blue", "red"))
    reserved = options.buffer.reserved_by_class
    assert 0 < reserved[3] < reserved[red] < reserved[blue]


def test_each_tenant_has_a_class_with_a_weight() -> None:
    options = run_spec(parse_scenario(EXAMPLE)).options
    assert options.scheduling.data_classes == (3, 4, 5)
    quantum = options.scheduling.quantum_by_class
    assert quantum[5] / quantum[4] == pytest.approx(0.5 / 0.49, rel=0.01)
    assert quantum[3] == quantum[0] == min(each for each in quantum if each)


@pytest.mark.parametrize(
    ("changed", "place", "valid"),
    [
        ({"tenants": {f"t{each}": {"share": 0.1} for each in range(5)}}, "tenants", "up to 4"),
        ({"tenants": {"blue": {"share": 0.6}, "red": {"share": 0.4}}}, "tenants", "up to 0.99"),
        ({"scheduling": {"quantum": {3: "8KiB"}}}, "scheduling", "no classes and no quantum, or no share"),
        ({"pfc": {"classes": [3]}}, "pfc.classes", "none"),
    ],
)
def test_what_does_not_go_with_shares_is_refused(changed: dict[str, Any], place: str, valid: str) -> None:
    traffic = [] if "tenants" in changed and "blue" not in changed["tenants"] else EXAMPLE["traffic"]
    with refused(BadInputError, place=f"scenario: {place}", valid=valid):
        run_spec(parse_scenario(EXAMPLE | {"traffic": traffic} | changed))


def test_flows_of_a_tenant_without_a_share_are_refused() -> None:
    with refused(
        BadInputError, place="scenario: traffic[0].tenant", valid="leave it out, or give it a share (tenants.red.share)"
    ):
        run([aggressor("permutation")], tenants={"red": {"slots": 64}})


def test_a_tenant_s_job_has_no_other_classes() -> None:
    item = {"collective": "allreduce", "algorithms": ["in-network"], "ranks": [0, 1, 2, 3], "sizes": ["64KiB"]}
    result = run([item | {"tenant": "blue", "dtype": "int32"}])
    assert result.collectives[0].wrong == 0
