"""Goals of the exercise: `weft check FOLDER` runs own.yaml and reads answers.yaml."""

from pathlib import Path

from weft.controller.circuits import CircuitChange
from weft.exercises import Exercise, Figure, Goal, Missing, Work, at_least, at_most, kept, predicted
from weft.results.circuit_changes import CIRCUIT_CHANGES
from weft.results.collectives import CollectiveResult

OWN, LAB = "own.yaml", Path(__file__).parent / "scenario.yaml"
SAME = kept(OWN, LAB, free=["circuits.*", "traffic.*"])
LAB_DARK_PS = 10 * 10**9


def change(work: Work) -> CircuitChange:
    SAME.check(work)
    found = work.run(OWN).of(CIRCUIT_CHANGES)
    if len(found) != 1 or found[0].joined_ps is None:
        raise Missing(f"{OWN} has {len(found)} changes of circuits, where the exercise has one")
    return found[0]


def took_ps(work: Work) -> int:
    """Return the time in which the job waits for its new circuits."""
    made = change(work)
    assert made.joined_ps is not None
    return made.joined_ps - made.began_ps


def exchanges(work: Work) -> tuple[list[CollectiveResult], list[CollectiveResult]]:
    """Return the all-to-alls before and after the change."""
    took_ps(work)
    began_ps = change(work).began_ps
    # Collectives end in the order of their phases; one algorithm each.
    phases = [phase for phase in work.run(OWN).phases if phase.name.startswith("alltoall ")]
    found = [each for each in work.run(OWN).collectives if each.collective == "alltoall"]
    if len(phases) != len(found):
        raise Missing(f"all-to-alls of {OWN} are repeated: write each as an item of its own")
    before = [each for each, phase in zip(found, phases, strict=True) if phase.end_ps <= began_ps]
    after = found[len(before) :]
    if not before or not after:
        raise Missing(f"{OWN} lacks an all-to-all before or after the change")
    return before, after


def gain_ps(work: Work) -> float:
    before, after = exchanges(work)
    return sum(before[0].time_ps - each.time_ps for each in after)


def pays(work: Work) -> float:
    return gain_ps(work) / took_ps(work)


def same_size(work: Work) -> None:
    before, after = exchanges(work)
    sizes = {each.size_bytes for each in (*before, *after)}
    if sizes != {2**20}:
        raise Missing(f"all-to-alls of {OWN} have {', '.join(f'{size:,}' for size in sorted(sizes))} B")


def exchanges_to_pay(work: Work) -> float:
    """Return how many all-to-alls gain what the lab's change takes, whose mirrors need 10 ms."""
    dark_ps = work.scenario(OWN).circuits.dark_time
    _, after = exchanges(work)
    if gain_ps(work) <= 0:
        raise Missing(f"all-to-alls of {OWN} take no less time after the change")
    return (took_ps(work) - dark_ps + LAB_DARK_PS) / (gain_ps(work) / len(after))


EXERCISE = Exercise(
    [
        SAME,
        Goal(
            "all-to-alls of 1 MiB before and after the change",
            "one item of the traffic for each; repetitions as further items",
            same_size,
        ),
        at_least(
            Figure("what the all-to-alls gain by the change, over what it takes", pays),
            1,
            "circuits.dark_time, and how many all-to-alls follow: the change also waits until circuits are quiet",
        ),
        at_most(
            Figure("packets that the change loses", lambda work: change(work).lost_packets),
            0,
            "circuits.drain",
        ),
        predicted(
            "exchanges_to_pay",
            Figure(
                "how many all-to-alls must follow the lab's change, with mirrors that need 10 ms",
                exchanges_to_pay,
            ),
            0.02,
            "what one gains (the page has both times), and what the change takes: waiting and dark",
        ),
    ]
)
