"""Goals of the exercise: `weft check FOLDER` runs own.yaml."""

from pathlib import Path

from weft.exercises import Exercise, Figure, Goal, Missing, Work, at_most, kept
from weft.results.training_runs import TRAINING_RUNS, TrainingRunResult

OWN, LAB = "own.yaml", Path(__file__).parent / "scenario.yaml"
SAME = kept(OWN, LAB, free=["traffic.*.bucket", "traffic.*.algorithms.*"])


def result(work: Work) -> TrainingRunResult:
    SAME.check(work)
    found = work.run(OWN).of(TRAINING_RUNS)
    if len(found) != 1:
        raise Missing(f"{OWN} trains {len(found)} times, where the exercise has one algorithm")
    return found[0]


def of_hosts(work: Work) -> None:
    if result(work).algorithm == "in-network":
        raise Missing(f"{OWN} has the algorithm in-network")


def as_one_process(work: Work) -> None:
    found = result(work)
    if found.wrong or not found.loss_difference <= found.loss_bound:
        raise Missing(f"losses differ from those of one process by {found.loss_difference:.2g}")


def target_us(work: Work) -> float:
    found = result(work)
    if found.target_ps is None:
        raise Missing(f"the loss of {OWN} never reaches its target")
    return found.target_ps / 1e6


EXERCISE = Exercise(
    [
        SAME,
        Goal("hosts add up the gradients", "algorithms: one of ring, tree, halving-doubling", of_hosts),
        Goal("the losses are those of one process", "data are the gradients: nothing to change", as_one_process),
        at_most(
            Figure("the exposed time of a step", lambda work: result(work).exposed_ps / 1e6, "µs"),
            110,
            "14 steps of a ring for 76,840 B: does latency or bandwidth decide? And what do buckets hide?",
        ),
        at_most(
            Figure("the time until the loss is 0.5", target_us, "µs"),
            6_800,
            "21 steps; what of a step is not computing?",
        ),
    ]
)
