"""Goals of the exercise: `weft check FOLDER` builds the program of gaps.p4 into built/ and runs it."""

import importlib.util
from pathlib import Path
from textwrap import shorten

from weft.errors import CheckFailedError
from weft.exercises import Exercise, Goal, Missing, Work
from weft.results.collectives import CollectiveResult
from weft.run.runner import run_scenario
from weft.scenario import Change, load_scenario

GAPS, BUILT, SCENARIO = "gaps.p4", "built", "scenario.yaml"
SHIPPED = Path(__file__).parent


def built(work: Work) -> Path:
    """Build the student's program; return its main file."""
    spec = importlib.util.spec_from_file_location("weft_exercise_build", SHIPPED / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    program: Path = module.build(work.file(GAPS), work.folder / BUILT)
    return program


def reduced(work: Work, **faults: float | str) -> CollectiveResult:
    """Return the sum of the lab's own scenario by the student's switches."""
    settings = {"clock": "virtual", "p4": str(built(work).resolve()), "faults": faults}
    changes = [Change(key, value, "weft check") for key, value in settings.items()]
    try:
        result = run_scenario(load_scenario(SHIPPED / SCENARIO, changes))
    except CheckFailedError as error:
        raise Missing(
            f"workers ask again and again, and get no result ({shorten(str(error), 96, placeholder=' …')})"
        ) from error
    (found,) = result.collectives
    return found


def exact(work: Work, **faults: float | str) -> None:
    found = reduced(work, **faults)
    if found.wrong:
        raise Missing(f"{found.wrong:,} numbers of all workers are not the sum that NumPy has")


EXERCISE = Exercise(
    [
        Goal(
            "without faults all workers get the sum",
            "complete: who has come stands in bitmap, who must come in job.full_bitmap; a root sends results down, "
            "others send up. collect: what does a slot hold when a new round begins?",
            exact,
        ),
        Goal(
            "the sum is exact if packets come twice",
            "first: a worker's bit in bitmap says that it has been counted",
            lambda work: exact(work, duplicate=0.02),
        ),
        Goal(
            "the sum is exact if packets get lost",
            "again: a child that sends again has not got the result. Which packet was lost if the slot is "
            "SLOT_SENT_UP, which if it is SLOT_DONE?",
            lambda work: exact(work, loss=0.02),
        ),
        Goal(
            "the sum is exact if packets get lost, come twice and overtake each other",
            "newer says that a packet begins a round; nothing of the slot's last round may be left then",
            lambda work: exact(work, loss=0.02, duplicate=0.02, delay_probability=0.05, extra_delay="5us"),
        ),
    ]
)
