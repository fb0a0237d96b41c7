"""Goals of the exercise: `weft check FOLDER` places the jobs of own.yaml by its policy and compares answers.yaml."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from weft.exercises import Exercise, Figure, Missing, Work, at_most, kept, predicted
from weft.scenario.schedule import ScheduleSection, schedule_section
from weft.scheduling import cluster_of_fabric, compare
from weft.scheduling.measured import measure
from weft.scheduling.outcome import Interval
from weft.scheduling.placement import Spread
from weft.scheduling.spread import MeasuredSlowdowns
from weft.trials import TrialRunner

OWN = "own.yaml"
HERE = Path(__file__).parent
SHIPPED = str(HERE / "scenario.yaml")
SEEDS = 5
COMMUNICATION = 0.6
MOVE_S = 120.0
FREE = ["schedule.policies*", "schedule.order", "schedule.required", "schedule.patience", "schedule.migration*"]
SAME = kept(OWN, HERE / "scenario.yaml", free=FREE)


def settings_of(work: Work, file: str) -> ScheduleSection:
    found = schedule_section(work.scenario(file))
    if found is None:
        raise Missing(f"{file} has no section schedule")
    return found


@cache
def slowdowns_of(work: Work) -> MeasuredSlowdowns:
    """Return what spread costs jobs of the lab's sizes, measured with packets: own.yaml has the same fabric."""
    settings, fabric = settings_of(work, SHIPPED), work.fabric(SHIPPED)
    assert settings.slowdown is not None
    assert settings.accelerators_per_host is not None
    per_host = settings.accelerators_per_host
    hosts = {-(-each.accelerators // per_host) for each in settings.sizes}
    with TemporaryDirectory() as runs:
        return measure(
            (work.file(SHIPPED), []),
            settings.slowdown,
            cluster_of_fabric(fabric),
            per_host,
            hosts,
            TrialRunner(Path(runs)),
        )


@cache
def figures_of(work: Work) -> Mapping[str, Interval]:
    """Return the figures of the policy in own.yaml."""
    SAME.check(work)
    settings = settings_of(work, OWN)
    if settings.policies is None or len(settings.policies) != 1:
        raise Missing("schedule.policies of own.yaml does not name exactly one policy")
    if settings.migration is not None and settings.migration.cost != MOVE_S:
        raise Missing(f"schedule.migration.cost of own.yaml is {settings.migration.cost:g} s; a move takes 2 min")
    cluster = cluster_of_fabric(work.fabric(OWN), settings.accelerators_per_host)
    (outcome,) = compare(cluster, settings, slowdowns_of(work), work.scenario(OWN).seed, SEEDS).outcomes
    return outcome.figures


def slow_down(work: Work) -> float:
    return figures_of(work)["slowdown_mean"].mean


def waiting_min(work: Work) -> float:
    return figures_of(work)["wait_mean_s"].mean / 60


def spread_job(work: Work) -> float:
    """Return how many times as long a job of four hosts on four leaves takes, with 60 % of communication."""
    found = replace(slowdowns_of(work), communication=COMMUNICATION)
    return found.of_job(4 * found.accelerators_per_host, Spread(4, 4, 1))


EXERCISE = Exercise(
    [
        SAME,
        at_most(
            Figure("mean run time over that of packed jobs", slow_down, "times"),
            1.03,
            "which placement looks for a leaf, and what brings a spread job back to one?",
        ),
        at_most(
            Figure("mean time in the queue", waiting_min, "min"),
            10,
            "waiting for a leaf leaves accelerators idle (step 3): what else packs jobs, and which order uses them?",
        ),
        predicted(
            "spread_job_times",
            Figure("run time of a job with four hosts on four leaves, 60 % of it communication", spread_job, "times"),
            0.05,
            "the table of step 2 says how much longer its communication takes",
        ),
    ]
)
