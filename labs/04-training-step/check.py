"""Goals of the exercise: `weft check FOLDER` runs own.yaml."""

from pathlib import Path

from weft.exercises import Exercise, Figure, Goal, Missing, Work, at_most, kept
from weft.results.training_steps import TrainingStepResult

OWN, LAB = "own.yaml", Path(__file__).parent / "scenario.yaml"
SAME = kept(OWN, LAB, free=["traffic.*.bucket", "traffic.*.algorithms.*"])


def best(work: Work) -> TrainingStepResult:
    """Return the step that leaves least exposed."""
    SAME.check(work)
    return min(work.run(OWN).training_steps, key=lambda step: step.exposed_ps)


def of_hosts(work: Work) -> None:
    if best(work).algorithm == "in-network":
        raise Missing(f"the best step of {OWN} is that of in-network")


def exact(work: Work) -> None:
    SAME.check(work)
    for step in work.run(OWN).training_steps:
        if not step.verified or step.wrong:
            raise Missing(f"the sums of {step.algorithm} are not verified (#wrong: {step.wrong})")


EXERCISE = Exercise(
    [
        SAME,
        Goal("hosts add up the gradients", "algorithms of hosts: ring, tree, halving-doubling", of_hosts),
        Goal("all sums are verified", "no data: lengths here", exact),
        at_most(
            Figure("the exposed time of the best step", lambda work: best(work).exposed_ps / 1e6, "µs"),
            175,
            "T(a bucket) − what the backward pass hides of it + T(the last bucket): which part does a smaller bucket "
            "make shorter, and which algorithm is fast for the last one?",
        ),
    ]
)
