"""Goals of the exercise: `weft check FOLDER` prices and runs own.yaml, and lets its cluster live its months."""

from pathlib import Path
from tempfile import TemporaryDirectory

from weft.cost import cost_figures, read_prices
from weft.drills.part_failures import measured_section
from weft.exercises import Exercise, Figure, Goal, Missing, Work, at_least, at_most, kept, predicted
from weft.goodput import cluster_of, outcome_of
from weft.results.training_jobs import TRAINING_JOBS
from weft.scenario.cluster import cluster_section

OWN = "own.yaml"
HERE = Path(__file__).parent
PRESETS = ("roce-dcqcn", "ultra-ethernet", "infiniband-xdr")
FREE = ["fabric.spines", "fabric.host_rate"]
HISTORIES = 20
ACCELERATOR = "H100"
STEPS = 1e6
PS_PER_HOUR = 3600e12


def same(work: Work) -> None:
    """Compare with the lab's scenario of the same preset, so that no other key of the fabric's design differs."""
    preset = work.answers(OWN).get("preset")
    if preset not in PRESETS:
        raise Missing(f"{OWN}: preset is {preset}, not one of {', '.join(PRESETS)}")
    kept(OWN, HERE / "scenario.yaml", free=FREE, settings={"preset": preset}).check(work)


def price(work: Work) -> float:
    same(work)
    return work.cost(OWN).bill.price


def step_ms(work: Work) -> float:
    same(work)
    return work.run(OWN).of(TRAINING_JOBS)[0].step_ps / 1e9


def kept_share(work: Work) -> float:
    """Return the share of the months that is kept, a mean of histories; failures are measured with packets."""
    same(work)
    scenario, fabric = work.scenario(OWN), work.fabric(OWN)
    with TemporaryDirectory() as runs:
        settings, _ = measured_section(cluster_section(scenario), work.file(OWN), [], fabric, Path(runs))
    return outcome_of(cluster_of(settings, fabric), scenario.seed, HISTORIES).goodput.mean


def kept_percent(work: Work) -> float:
    return 100 * kept_share(work)


def dollars(work: Work) -> float:
    """Return what a million steps on own.yaml's fabric cost, kept or not, with network, servers and accelerators."""
    same(work)
    costs = cost_figures(OWN, work.fabric(OWN), read_prices(), ACCELERATOR)
    hours = work.run(OWN).of(TRAINING_JOBS)[0].step_ps / PS_PER_HOUR
    return STEPS * hours * costs.accelerators * costs.whole_per_accelerator_hour


EXERCISE = Exercise(
    [
        Goal(
            f"{OWN} has everything of scenario.yaml but for preset, {', '.join(FREE)}",
            f"cp scenario.yaml {OWN}, and change what the page asks for",
            same,
        ),
        at_most(
            Figure("the network's price", price, "$"),
            150_000,
            "weft cost own.yaml --set cluster=null: what do a spine and a step in rate cost?",
        ),
        at_most(
            Figure("the step", step_ms, "ms"),
            3.2,
            "which fabrics use all of their uplinks alike, and how much bandwidth does each spine add?",
        ),
        at_least(
            Figure("kept work", kept_percent, "%"),
            94.5,
            "weft goodput own.yaml: what share of the uplinks does one failure take?",
        ),
        predicted(
            "dollars_for_a_million_steps",
            Figure(f"what a million steps of {OWN} cost with 16 x {ACCELERATOR}", dollars, "$"),
            0.02,
            f"weft cost {OWN} --accelerator {ACCELERATOR} --set cluster=null has an accelerator's hour",
        ),
    ]
)
