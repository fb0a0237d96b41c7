"""Goals of the exercise: `weft check FOLDER` runs own.yaml, and compares answers.yaml with runs of the lab's incast."""

from pathlib import Path

from weft.exercises import Exercise, Figure, Work, at_most, kept, named, predicted
from weft.results.run_result import RunResult

OWN, LAB = "own.yaml", Path(__file__).parent / "scenario.yaml"
BYTES_OF_A_SENDER = 4 << 20
# Adapters stay what they are; switches are the student's.
SAME = kept(OWN, LAB, free=["ecn*"])


def run(work: Work) -> RunResult:
    SAME.check(work)
    return work.run(OWN)


def incast_us(work: Work) -> float:
    return run(work).flows[-1].time_ps / 1e6


def largest_queue_kb(work: Work) -> float:
    return max(plane.largest_queue_bytes or 0 for plane in run(work).planes) / 1e3


def congested_port(work: Work) -> str:
    (plane,) = work.run(str(LAB)).planes
    return plane.largest_queue_port or ""


def gbps_of_a_sender(work: Work) -> float:
    """Return the rate of a sender's data when nothing is marked and the link is always busy."""
    incast = work.run(str(LAB), {"transport.congestion_control": "fixed-window"}).flows[-1]
    return 8e3 * BYTES_OF_A_SENDER / incast.time_ps


EXERCISE = Exercise(
    [
        SAME,
        at_most(
            Figure("the largest queue", largest_queue_kb, "kB"),
            60,
            "from which depth on do switches mark, and when is every packet marked? (docs/scenario.md, ecn)",
        ),
        at_most(
            Figure("the incast's time", incast_us, "µs"),
            12_200,
            "too many CNPs let the link idle: how fast does DCQCN come back after a cut?",
        ),
        named(
            "congested_port",
            "the port with the largest queue",
            congested_port,
            "the largest queue stands with its port",
        ),
        predicted(
            "gbps_of_a_sender",
            Figure("what each program reports if the link is always busy", gbps_of_a_sender, "Gb/s"),
            0.05,
            "a third of the link; which part of a frame is data? (lab 21)",
        ),
    ]
)
