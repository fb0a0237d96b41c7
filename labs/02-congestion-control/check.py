"""Goals of the exercise: `weft check FOLDER` runs own.yaml and samples the queue of the incast's receiver."""

from pathlib import Path

import numpy as np

from weft.exercises import Exercise, Figure, Work, at_most, kept
from weft.recording.tables import integers_of
from weft.results.run_result import RunResult

OWN, LAB = "own.yaml", Path(__file__).parent / "scenario.yaml"
# Port 1 of the first leaf leads to h0, to which all others send.
SAMPLED = {"observe": {"queues": ["p0l0:1"], "interval": "10us"}}
SAME = kept(OWN, LAB, free=["transport.*", "int", "ecn*"])


def run(work: Work) -> RunResult:
    SAME.check(work)
    return work.run(OWN, SAMPLED)


def incast_us(work: Work) -> float:
    return run(work).flows[-1].time_ps / 1e6


def queue_kb(work: Work) -> float:
    """In 95 of 100 samples the queue is no longer."""
    return float(np.percentile(integers_of(run(work).observations.tables["queues"], "queue_bytes"), 95)) / 1e3


EXERCISE = Exercise(
    [
        SAME,
        at_most(
            Figure("the incast's time", incast_us, "µs"),
            5_700,
            "the link needs 5,540 µs for the frames: which algorithms leave a part of it free, and which let it idle?",
        ),
        at_most(
            Figure("the 95th percentile of the queue at p0l0:1", queue_kb, "kB"),
            30,
            "which delay does Swift aim at while fifteen windows are small? (docs/scenario.md, parameters of swift)",
        ),
    ]
)
