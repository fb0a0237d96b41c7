"""Goals of the exercise: `weft check FOLDER` runs own.yaml."""

from pathlib import Path

from weft.exercises import Exercise, Figure, Goal, Missing, Work, at_most, kept
from weft.results.parameter_server_model import ParameterServerResult
from weft.results.parameter_servers import PARAMETER_SERVERS

OWN, LAB = "own.yaml", Path(__file__).parent / "scenario.yaml"
SAME = kept(OWN, LAB, free=["traffic.*"])
ALIKE = ("workers", "steps", "compute", "jitter", "mlp")


def result(work: Work) -> ParameterServerResult:
    SAME.check(work)
    found = work.run(OWN).of(PARAMETER_SERVERS)
    if len(found) != 1:
        raise Missing(f"{OWN} trains {len(found)} times, where the exercise has one")
    return found[0]


def same_training(work: Work) -> None:
    result(work)
    items = work.scenario(OWN).traffic
    if len(items) != 1:
        raise Missing(f"{OWN} has {len(items)} items of traffic, where the exercise has one")
    own = items[0]
    lab = work.scenario(str(LAB)).traffic[0]
    for key in ALIKE:
        found, expected = (each.model_dump(mode="json", by_alias=True).get(key) for each in (own, lab))
        if found != expected:
            raise Missing(f"{OWN}: {key} is {found}, in {LAB.name} {expected}")


def target_us(work: Work) -> float:
    same_training(work)
    convergence = result(work).convergence
    if convergence is None or convergence.target_ps is None:
        raise Missing(f"the loss of {OWN} never reaches its target")
    return convergence.target_ps / 1e6


def largest_lag(work: Work) -> float:
    lags = result(work).clock_lags
    if lags is None:
        raise Missing(f"{OWN} has no parameter server")
    return lags.largest


EXERCISE = Exercise(
    [
        SAME,
        Goal("seven workers train as in the lab", f"{', '.join(ALIKE)} stay as they are", same_training),
        at_most(
            Figure("the steps by which weights lag behind", largest_lag),
            2,
            "mode: asynchronous, with staleness",
        ),
        at_most(
            Figure("the time until the loss is 0.5", target_us, "µs"),
            11_700,
            "wait is what staleness makes shorter; what makes pull shorter? Where is the link that all share?",
        ),
    ]
)
