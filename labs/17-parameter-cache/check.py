"""Goals of the exercise: `weft check FOLDER` runs own.yaml and reads answers.yaml."""

from pathlib import Path

from weft.exercises import Exercise, Figure, Goal, Missing, Work, at_least, at_most, kept, predicted
from weft.results.parameter_stores import PARAMETER_STORES, ParameterStoreResult

OWN, LAB = "own.yaml", Path(__file__).parent / "scenario.yaml"
SAME = kept(OWN, LAB, free=["traffic.*"])
ALIKE = ("parameter_store", "blocks", "requests", "outstanding", "skew", "pushes")
SLOW = {"fabric.host_rate": "40Gb/s", "traffic.0.cached": 0}


def result(work: Work) -> ParameterStoreResult:
    SAME.check(work)
    found = work.run(OWN).of(PARAMETER_STORES)
    if len(found) != 1:
        raise Missing(f"{OWN} has {len(found)} parameter stores, where the exercise has one")
    return found[0]


def same_requests(work: Work) -> None:
    SAME.check(work)
    items = work.scenario(OWN).traffic
    if len(items) != 1:
        raise Missing(f"{OWN} has {len(items)} items of traffic, where the exercise has one")
    own, lab = (each.model_dump(mode="json", by_alias=True) for each in (items[0], work.scenario(str(LAB)).traffic[0]))
    for key in ALIKE:
        if own.get(key) != lab[key]:
            raise Missing(f"{OWN}: {key} is {own.get(key)}, in {LAB.name} {lab[key]}")


def million_pulls_per_s(work: Work) -> float:
    same_requests(work)
    return result(work).pulls_per_s / 1e6


def slow_store(work: Work) -> float:
    same_requests(work)
    (found,) = work.run(OWN, SLOW).of(PARAMETER_STORES)
    return found.pulls_per_s / 1e6


def correct(work: Work) -> None:
    if result(work).stale or result(work).wrong:
        raise Missing("an answer is stale or wrong")


EXERCISE = Exercise(
    [
        SAME,
        Goal("one store, with the requests of the lab's first", f"{', '.join(ALIKE)} stay", same_requests),
        Goal("no answer is stale or wrong", "the module's promise", correct),
        at_most(
            Figure("blocks that the switch answers for", lambda work: result(work).cached_blocks),
            128,
            "cached: blocks are numbered by how often they are asked for",
        ),
        at_least(
            Figure("million pulls a second", million_pulls_per_s),
            28,
            "the store's link is full: it carries misses only. Which hit rate do you need, and which blocks give it?",
        ),
        predicted(
            "million_pulls_per_s_at_40_gbps",
            Figure("million pulls a second without a cache and with links of 40 Gb/s", slow_store),
            0.03,
            "the store's link carries an answer of 218 B for each",
        ),
    ]
)
