"""Goals of the exercise: `weft check FOLDER` runs own.yaml and reads answers.yaml."""

from pathlib import Path

from weft.exercises import Exercise, Figure, Work, at_most, kept, predicted

OWN = "own.yaml"
HERE = Path(__file__).parent
SAME = kept(OWN, HERE / "dragonfly.yaml", free=["fabric.arrangement"])
LONG = {"fabric.shape": [4, 4, 8]}


def ring_us(work: Work) -> float:
    """Return the time of the ring alone, without the other traffic."""
    SAME.check(work)
    own = {"traffic": [{"collective": "allreduce", "algorithms": ["ring"], "data": "lengths", "sizes": ["4MiB"]}]}
    return work.run(OWN, own).collectives[0].time_ps / 1e6


def bisection_gbps(work: Work) -> float:
    """Return that of a torus of 4 x 4 x 8."""
    fabric = work.fabric(str(HERE / "torus.yaml"), LONG)
    return work.cost(str(HERE / "torus.yaml"), LONG).bisection_gbps_per_accelerator * len(fabric.hosts)


EXERCISE = Exercise(
    [
        SAME,
        at_most(
            Figure("the ring's time on the dragonfly", ring_us, "µs"),
            900,
            "which link do two neighbours of the ring share? weft topology draw shows where global cables are plugged",
        ),
        predicted(
            "bisection_gbps",
            Figure(
                "the bisection bandwidth of a torus of 4 × 4 × 8 with links of 100 Gb/s",
                bisection_gbps,
                "Gb/s",
            ),
            0,
            "cut the longest dimension in the middle: how many rings go through the cut, each how often?",
        ),
    ]
)
