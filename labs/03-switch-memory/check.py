"""Goals of the exercise: `weft check FOLDER` runs own.yaml and reads answers.yaml."""

from pathlib import Path

from weft.exercises import Exercise, Figure, Work, at_most, kept, predicted

OWN = "own.yaml"
HERE = Path(__file__).parent
SAME = kept(OWN, HERE / "pfc.yaml", free=["transport.*", "int"])


def victim_us(work: Work) -> float:
    """Return what the victim takes beside the incast; it is the first flow of the second item."""
    SAME.check(work)
    return int(work.run(OWN).flows[1].records["completion_ps"][0]) / 1e6


def drops(work: Work) -> float:
    SAME.check(work)
    return sum(work.run(OWN).drops.values())


def queue_kb(work: Work) -> float:
    (plane,) = work.run(str(HERE / "shared-buffer.yaml"), {"buffer.alpha": 4}).planes
    return (plane.largest_queue_bytes or 0) / 1e3


EXERCISE = Exercise(
    [
        SAME,
        at_most(
            Figure("the victim's time beside the incast", victim_us, "µs"),
            500,
            "the senders of the incast must slow down before their leaf pauses anybody; which signal is early enough?",
        ),
        at_most(Figure("packets dropped", drops), 0, "the class stays lossless: leave pfc as it is"),
        predicted(
            "largest_queue_kb_with_alpha_4",
            Figure("the largest queue of shared-buffer.yaml with alpha: 4", queue_kb, "kB"),
            0.01,
            "alpha·B/(1 + alpha), with B = 512 KB",
        ),
    ]
)
