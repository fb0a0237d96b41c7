"""Barriers and counters of switches, end to end in virtual time: exact, exactly once, and as fast as links allow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.refusals import refused
from weft.errors import BadInputError, CheckFailedError
from weft.jobs.host_barriers import HOST_BARRIERS, host_barrier_job
from weft.results.synchronisation import BARRIERS, COUNTERS
from weft.run.runner import run_scenario
from weft.run.synchronisation import wrong_values
from weft.scenario import parse_scenario

TWO_TIERS = {
    "leaves": 3,
    "spines": 2,
    "hosts_per_leaf": 2,
    "planes": 1,
    "host_rate": "100Gb/s",
    "delay": "300ns",
}
ONE_LEAF = {
    "leaves": 1,
    "spines": 0,
    "hosts_per_leaf": 4,
    "planes": 1,
    "host_rate": "100Gb/s",
    "delay": "300ns",
}
THREE_TIERS = {"kind": "fat_tree", "k": 4, "planes": 1, "host_rate": "25Gb/s", "delay": "200ns"}
FAULTS = {"loss": 0.05, "duplicate": 0.05}


def run(traffic: list[dict[str, Any]], fabric: dict[str, Any] = TWO_TIERS, **options: Any) -> Any:
    tree = {"clock": "virtual", "fabric": fabric, "services": ["synchronisation"], "traffic": traffic}
    return run_scenario(parse_scenario(tree | options, "test"))


@pytest.mark.parametrize("ip_version", [4, 6])
@pytest.mark.parametrize("latency", ["0ns", "450ns"])
@pytest.mark.parametrize(
    ("fabric", "hops"), [(ONE_LEAF, 1), (TWO_TIERS, 2), (THREE_TIERS, 3)], ids=["leaf", "spine", "core"]
)
def test_a_barrier_alone_takes_one_frame_up_and_one_down_to_the_picosecond(
    fabric: dict[str, Any], hops: int, latency: str, ip_version: int
) -> None:
    result = run([{"barrier": 5}], fabric, ip_version=ip_version, switching={"latency": latency})
    (found,) = result.of(BARRIERS)
    rate, delay_ps = (25, 200_000) if fabric is THREE_TIERS else (100, 300_000)
    frame_ps = {4: 98, 6: 118}[ip_version] * 8 * 1000 // rate
    switches = 2 * hops - 1
    expected_ps = 2 * hops * (frame_ps + delay_ps) + switches * int(latency[:-2]) * 1000
    assert found.unloaded_ps == expected_ps
    assert found.latency_ps.least == found.latency_ps.largest == expected_ps
    assert found.time_ps == 5 * expected_ps
    assert (found.early, found.retransmissions) == (0, 0)


def test_a_request_to_a_counter_alone_takes_one_round_trip_to_the_picosecond() -> None:
    result = run([{"counter": 4, "ranks": [5]}, {"counter": 4, "ranks": [0, 5], "counters": 2}])
    alone, both = result.of(COUNTERS)
    # Below one leaf that is the root, below several a spine.
    assert alone.unloaded_ps == 2 * (98 * 80 + 300_000)
    assert alone.latency_ps.least == alone.latency_ps.largest == alone.unloaded_ps
    assert both.unloaded_ps == both.latency_ps.least == 2 * alone.unloaded_ps
    assert (alone.wrong, both.wrong) == (0, 0)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("fabric", [ONE_LEAF, TWO_TIERS], ids=["leaf", "spine"])
def test_loss_and_duplicates_change_neither_barriers_nor_counts(fabric: dict[str, Any], seed: int) -> None:
    traffic = [
        {"barrier": 60},
        {"counter": 60, "outstanding": 8, "counters": 3, "addend": 5},
        {"counter": 20, "operation": "compare_and_swap"},
    ]
    result = run(traffic, fabric, seed=seed, faults=FAULTS)
    assert result.ok
    (barrier,) = result.of(BARRIERS)
    added, swapped = result.of(COUNTERS)
    assert (barrier.early, barrier.rounds, added.wrong, swapped.wrong) == (0, 60, 0, 0)
    assert barrier.retransmissions > 0
    assert added.retransmissions > 0
    assert swapped.attempts > swapped.additions
    lost = sum(plane.injected_losses or 0 for plane in result.planes)
    assert lost > 0
    # All but the last child of each node wait, in each round; what comes twice is no drop.
    waiting = {True: 3, False: 3 * 1 + 2}[fabric is ONE_LEAF]
    assert result.absorbed["requests"] == 60 * waiting
    assert result.absorbed["repeated_requests"] > 0
    assert not [reason for reason in result.drops if reason.startswith("service_")]


def test_runs_repeat_and_do_not_depend_on_workers_or_earlier_runs() -> None:
    traffic = [{"barrier": 20}, {"counter": 20}]
    first, again = (run(traffic, faults=FAULTS, workers=workers).as_dict() for workers in (1, 2))
    assert {key: first[key] for key in ("barriers", "switch_counters")} == {
        key: again[key] for key in ("barriers", "switch_counters")
    }
    twice = run([{"barrier": 20}, {"barrier": 20}]).of(BARRIERS)
    assert twice[0] == twice[1]


@pytest.mark.parametrize("algorithm", HOST_BARRIERS)
@pytest.mark.parametrize("ranks", [2, 3, 6])
def test_barriers_of_messages_let_nobody_go_on_early(algorithm: str, ranks: int) -> None:
    result = run([{"barrier": 8, "algorithms": [algorithm], "ranks": list(range(ranks))}])
    (found,) = result.of(BARRIERS)
    assert (found.algorithm, found.ranks, found.early) == (algorithm, ranks, 0)


@pytest.mark.parametrize("algorithm", HOST_BARRIERS)
@pytest.mark.parametrize("ranks", range(2, 18))
def test_every_rank_learns_of_every_other_before_it_goes_on(algorithm: str, ranks: int) -> None:
    """Whatever is behind a rank's end of a barrier includes the beginning of every rank."""
    known = [{rank} for rank in range(ranks)]
    steps = [HOST_BARRIERS[algorithm](rank, ranks) for rank in range(ranks)]
    sent: dict[tuple[int, int], list[set[int]]] = {}
    at, waited = [0] * ranks, [False] * ranks
    progress = True
    while progress:
        progress = False
        for rank in range(ranks):
            while at[rank] < len(steps[rank]):
                to, source = steps[rank][at[rank]]
                if to is not None and not waited[rank]:
                    sent.setdefault((rank, to), []).append(set(known[rank]))
                    waited[rank] = progress = True
                if source is not None:
                    if not sent.get((source, rank)):
                        break
                    known[rank] |= sent[source, rank].pop(0)
                at[rank], waited[rank], progress = at[rank] + 1, False, True
    assert at == [len(each) for each in steps]
    # The ring's token still goes on from who has it.
    assert known == [set(range(ranks))] * ranks


def test_a_ring_and_dissemination_send_as_many_messages_as_their_papers_say() -> None:
    for ranks in (2, 5, 8):
        sends = {
            name: sum(len(part.operations) for part in host_barrier_job(name, ranks, 1).job.parts) // 2
            for name in HOST_BARRIERS
        }
        assert sends == {"ring": 2 * ranks - 1, "dissemination": ranks * (ranks - 1).bit_length()}


def test_values_that_no_order_of_additions_gives_are_counted() -> None:
    found = np.array([[0, 2, 4], [1, 3, 5]], np.uint64)
    assert wrong_values(found, 1, 1) == 0
    assert wrong_values(found * np.uint64(7), 1, 7) == 0
    assert wrong_values(np.array([[0, 2, 2], [1, 3, 5]], np.uint64), 1, 1) == 1
    assert wrong_values(np.array([[0, 0, 1], [1, 1, 2]], np.uint64), 3, 1) == 1


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"barrier": 0}, "barrier"),
        ({"barrier": 1, "ranks": [6]}, r"traffic\[0\]\.ranks: rank 6 \(valid: 0 to 5\)"),
        ({"barrier": 1, "ranks": [1, 1]}, "rank 1 occurs twice"),
        ({"barrier": 1, "ranks": [1], "algorithms": ["ring"]}, "a single rank sends no messages"),
        ({"counter": 1, "outstanding": 3}, "a power of two"),
        ({"counter": 1, "outstanding": 2, "operation": "compare_and_swap"}, "valid: 1"),
        ({"counter": 100_000, "ranks": list(range(6))}, None),
    ],
)
def test_what_cannot_be_asked_is_refused(item: dict[str, Any], message: str | None) -> None:
    tree = {"clock": "virtual", "fabric": TWO_TIERS, "services": ["synchronisation"], "traffic": [item]}
    if message is None:
        parse_scenario(tree, "test")
        return
    with pytest.raises(BadInputError, match=message):
        parse_scenario(tree, "test")


@pytest.mark.parametrize("item", [{"barrier": 1}, {"counter": 1}])
def test_a_fabric_whose_switches_lack_the_service_says_what_has_it(item: dict[str, Any]) -> None:
    with pytest.raises(BadInputError, match=r"services: \[synchronisation\] has them"):
        run([item], services=[])
    assert run([{"barrier": 1, "algorithms": ["ring"]}], services=[]).ok


def test_a_group_whose_link_fails_ends_with_an_error_and_the_next_one_has_another_tree() -> None:
    events = [{"link": "p0l0<->p0s0", "at": "20us", "state": "down"}]
    with refused(CheckFailedError, problem="was not answered"):
        run([{"barrier": 100}], events=events, seed=1)
