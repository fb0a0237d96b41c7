"""A parameter store whose switch answers in its place, in virtual time: never stale, as fast as links allow."""

from __future__ import annotations

from typing import Any

import pytest

from tests.refusals import refused
from weft.errors import BadInputError
from weft.results.parameter_stores import PARAMETER_STORES, ParameterStoreResult
from weft.run.parameter_stores import Answers
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.traffic.answers import ParameterRecords, StoreCounts
from weft.traffic.commands.parameters import ParameterRequests
from weft.traffic.host_parameters import drawn_requests

FABRIC = {"leaves": 2, "spines": 2, "hosts_per_leaf": 3, "planes": 1, "host_rate": "25Gb/s", "delay": "300ns"}
NOBODY = 0xFFFFFFFF


def tree(*items: dict[str, Any], **options: Any) -> dict[str, Any]:
    return {
        "clock": "virtual",
        "fabric": FABRIC,
        "services": ["parameter_cache"],
        "traffic": list(items),
    } | options


def run(*items: dict[str, Any], **options: Any) -> list[ParameterStoreResult]:
    return run_scenario(parse_scenario(tree(*items, **options), "test")).of(PARAMETER_STORES)


@pytest.mark.parametrize("ip_version", [4, 6])
@pytest.mark.parametrize("latency", [0, 450_000])
def test_a_pull_alone_goes_to_the_store_once_and_then_to_its_switch_to_the_picosecond(
    ip_version: int, latency: int
) -> None:
    asked = {"parameter_store": 5, "clients": [0], "blocks": 1, "cached": 1, "requests": 5}
    (found,) = run(asked, ip_version=ip_version, switching={"latency": f"{latency}ps"})
    pull, value = ((90, 218), (110, 238))[ip_version == 6]
    each_way_ps = [size * 8 * 40 + 300_000 for size in (pull, value)]
    # Leaf, spine, leaf; the store is a link further on.
    assert (found.hits, found.store_pulls) == (4, 1)
    assert found.hit_ps == 3 * sum(each_way_ps) + 5 * latency
    assert found.miss_ps == 4 * sum(each_way_ps) + 6 * latency


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("pushes", [0.05, 0.5])
def test_no_answer_is_stale_whatever_is_lost_repeated_or_late(seed: int, pushes: float) -> None:
    faults = {"loss": 0.02, "duplicate": 0.05, "delay_probability": 0.1, "extra_delay": "5us"}
    asked = {
        "parameter_store": 5, "blocks": 20, "cached": 15, "requests": 200, "pushes": pushes, "skew": 0.9,
        "outstanding": 4,
    }  # fmt: skip
    (found,) = run(asked, seed=seed, faults=faults)
    assert (found.stale, found.wrong, found.ok) == (0, 0, True)
    assert found.retransmissions > 0
    assert found.hits > 0
    assert found.store_pushes == found.pushes > 0
    assert found.pulls + found.pushes == 5 * 200


def test_the_cache_relieves_the_stores_link_and_pulls_are_faster() -> None:
    asked = {"parameter_store": 5, "blocks": 256, "requests": 300, "skew": 1.0, "outstanding": 16}
    without, some, whole = run(asked, asked | {"cached": 16}, asked | {"cached": 256})
    assert (without.hits, without.store_pulls) == (0, without.pulls)
    assert without.store_link_load > 0.95
    assert 0.3 < some.hit_rate < whole.hit_rate
    assert whole.pulls_per_s > 1.5 * without.pulls_per_s
    assert all(each.hits + each.store_pulls == each.pulls for each in (without, some, whole))


def test_runs_repeat_and_do_not_depend_on_workers() -> None:
    asked = {"parameter_store": 5, "blocks": 50, "cached": 50, "requests": 100, "pushes": 0.1}
    faults = {"loss": 0.02}
    first, again = (run(asked, faults=faults, workers=workers) for workers in (1, 2))
    assert first == again


def test_blocks_are_drawn_by_zipfs_law() -> None:
    asked = ParameterRequests(200_000, blocks=4, skew=1.0, push_share=0.25, seed=3)
    blocks, pushes = drawn_requests(asked, 0)
    shares = [float((blocks == block).mean()) for block in range(4)]
    assert shares == pytest.approx([12 / 25, 6 / 25, 4 / 25, 3 / 25], abs=0.005)
    assert pushes.mean() == pytest.approx(0.25, abs=0.005)
    assert (drawn_requests(asked, 1)[0] != blocks).any()


def records(*rows: tuple[bool, int, int, int, int, int]) -> ParameterRecords:
    """Of rows of push or not, start, end, version, writer and number of its push, all of block 0."""
    columns = [tuple(column) for column in zip(*rows, strict=True)]
    is_push, started, finished, version, writer, sequence = columns
    return ParameterRecords(
        1, (0,) * len(rows), is_push, started, finished, version, writer, sequence, (0,) * len(rows)
    )  # type: ignore[arg-type]


PUSHED = (True, 0, 10, 2, 7, 0)


@pytest.mark.parametrize(
    ("pull", "stale", "wrong"),
    [
        ((False, 10, 20, 2, 7, 0), 0, 0),
        ((False, 9, 20, 1, NOBODY, 0), 0, 0),  # began before the push was over
        ((False, 10, 20, 1, NOBODY, 0), 1, 0),
        ((False, 10, 20, 2, NOBODY, 0), 0, 1),
        ((False, 10, 20, 2, 7, 1), 0, 1),
        ((False, 10, 20, 3, 7, 0), 0, 1),
    ],
)
def test_what_is_stale_or_wrong_is_counted(pull: tuple[Any, ...], stale: int, wrong: int) -> None:
    answers = Answers([records(PUSHED), records(pull)])
    assert (answers.stale(), answers.wrong(StoreCounts(1, 1, 0))) == (stale, wrong)
    assert answers.wrong(StoreCounts(1, 2, 0)) == wrong + 1


def test_pulls_that_go_back_to_an_older_version_are_stale() -> None:
    later, earlier = (False, 30, 40, 1, NOBODY, 0), (False, 10, 20, 2, 7, 0)
    assert Answers([records((True, 0, 99, 2, 7, 0)), records(earlier), records(later)]).stale() == 1


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"parameter_store": 6}, "rank 6"),
        ({"parameter_store": 5, "clients": [5]}, "rank 5 is among parameter_store"),
        ({"parameter_store": 5, "outstanding": 3}, "a power of two"),
        ({"parameter_store": 5, "blocks": 3, "cached": 4}, "4 of 3 blocks"),
        ({"parameter_store": 5, "pushes": 1.5}, "pushes"),
    ],
)
def test_what_cannot_be_asked_is_refused(item: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        parse_scenario(tree(item), "test")


def test_a_fabric_whose_switches_have_no_cache_says_what_has_one() -> None:
    with refused(BadInputError, place="test: traffic[0].parameter_store", problem="services: [synchronisation"):
        run({"parameter_store": 5}, services=["synchronisation"])
