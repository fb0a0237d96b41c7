"""Goals of the exercise: `weft check FOLDER` runs own.yaml."""

import itertools
from pathlib import Path

from weft.exercises import Exercise, Figure, Goal, Missing, Work, at_most, kept
from weft.results.run_result import RunResult
from weft.topologies import FabricLink

OWN, LAB = "own.yaml", Path(__file__).parent / "maintenance.yaml"
SAME = kept(OWN, LAB, free=["events.*"])
SPINES, LEAST_US = 2, 200


def name_of(link: FabricLink) -> str:
    """Return a link's name as events have it."""
    return f"{link.a.node}<->{link.b.node}"


def dark(result: RunResult, link: str) -> list[tuple[int, int]]:
    """Return from when to when a link was down, in picoseconds."""
    times = [(event.happened_ps, event.state) for event in result.link_events if event.link == link]
    happened = sorted((time_ps, state) for time_ps, state in times if time_ps is not None)
    return [(begun, ended) for (begun, state), (ended, _) in itertools.pairwise(happened) if state == "down"]


def two_at_once(work: Work) -> None:
    """All links of two spines are down for the same 200 µs."""
    SAME.check(work)
    result = work.run(OWN)
    begin, end = 0, 10**15
    spines: set[str] = set()
    for link in work.fabric(OWN).links:
        periods = dark(result, name_of(link))
        if periods:
            spines.add(link.b.node)
            begin, end = max(begin, periods[0][0]), min(end, periods[0][1])
    if len(spines) < SPINES:
        raise Missing(f"{len(spines)} of the spines are switched off and on again in {OWN}")
    links = [link for link in work.fabric(OWN).links if link.b.node in spines and not dark(result, name_of(link))]
    if links:
        raise Missing(f"{name_of(links[0])} stays up, which is a link of a spine that is switched off")
    if end - begin < LEAST_US * 10**6:
        raise Missing(f"two spines are off together for {max(0, end - begin) / 1e6:g} µs")


def losses(work: Work) -> float:
    two_at_once(work)
    return sum(work.run(OWN).drops.values())


def time_us(work: Work) -> float:
    SAME.check(work)
    return work.run(OWN).flows[0].time_ps / 1e6


def restored(work: Work) -> None:
    two_at_once(work)
    events = work.run(OWN).controller_events
    count = sum(event.kind == "restored" for event in events)
    if count < SPINES:
        raise Missing(f"{count} switches are in use again at the end of {OWN}")


EXERCISE = Exercise(
    [
        SAME,
        Goal(
            f"two spines are switched off for the same {LEAST_US} µs",
            "cp maintenance.yaml own.yaml; an item of events for each spine, p0s0<->* down, and up again",
            two_at_once,
        ),
        at_most(
            Figure("packets dropped", losses),
            0,
            "state: drained, and enough time before the links go down: 'drained … took' in the controller's table",
        ),
        Goal("both are in use again", "state: restored, once the links are up", restored),
        at_most(
            Figure("the permutation's time", time_us, "µs"),
            1500,
            "half of the uplinks carry everything meanwhile: how long are they alone?",
        ),
    ]
)
