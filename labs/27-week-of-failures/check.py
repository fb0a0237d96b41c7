"""Goals of the exercise: `weft check FOLDER` lets the cluster of own.yaml live its weeks and compares answers.yaml."""

from pathlib import Path
from tempfile import TemporaryDirectory

from weft.drills.part_failures import measured_section
from weft.exercises import Exercise, Figure, Work, at_least, at_most, kept, predicted
from weft.goodput import cluster_of, outcome_of
from weft.goodput.formulas import efficiency
from weft.scenario.cluster import cluster_section

OWN = "own.yaml"
HERE = Path(__file__).parent
HISTORIES = 20
TWO_HOURS_S = 7200.0
SAME = kept(OWN, HERE / "scenario.yaml", free=["cluster.checkpoint.interval", "cluster.spares"])


def spares(work: Work) -> int:
    SAME.check(work)
    return cluster_section(work.scenario(OWN)).spares


def kept_percent(work: Work) -> float:
    """Return the share of the week that is kept, a mean of its histories; failures are measured with packets."""
    SAME.check(work)
    scenario, fabric = work.scenario(OWN), work.fabric(OWN)
    with TemporaryDirectory() as runs:
        settings, _ = measured_section(cluster_section(scenario), work.file(OWN), [], fabric, Path(runs))
    return 100 * outcome_of(cluster_of(settings, fabric), scenario.seed, HISTORIES).goodput.mean


def daly_percent(work: Work) -> float:
    """Return what Daly's formula says of the lab's scenario with a checkpoint each two hours."""
    file = str(HERE / "scenario.yaml")
    settings = cluster_section(work.scenario(file))
    # Measured failures do not end the job here.
    ending = [each for each in settings.failures if each.effect != "measured"]
    cluster = cluster_of(settings.model_copy(update={"failures": ending}), work.fabric(file))
    return 100 * efficiency(TWO_HOURS_S, cluster.checkpoint.cost, cluster.restart_s, cluster.interruption_rate)


EXERCISE = Exercise(
    [
        SAME,
        at_most(Figure("spare hosts", spares, ""), 3, "a spare host costs as much as one that works"),
        at_least(
            Figure("the week's kept work", kept_percent, "%"),
            93.5,
            "what does the table of step 4 say of the interval, and the notes of step 2 of the spares?",
        ),
        predicted(
            "kept_percent_for_2_hours",
            Figure("Daly's formula for a checkpoint each two hours", daly_percent, "%"),
            0.003,
            "docs/goodput.md has the formula; failures that end the job come 0.32 + 0.333 times a day",
        ),
    ]
)
