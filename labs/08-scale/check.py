"""Goals of the exercise: `weft check FOLDER` runs own.yaml and reads answers.yaml."""

from pathlib import Path

from weft.exercises import Exercise, Figure, Work, at_most, kept, predicted

OWN = "own.yaml"
HERE = Path(__file__).parent
SAME = kept(OWN, HERE / "512.yaml", free=["transport.*", "int"])


def time_us(work: Work) -> float:
    SAME.check(work)
    return work.run(OWN).flows[0].time_ps / 1e6


def retransmissions(work: Work) -> float:
    SAME.check(work)
    return work.run(OWN).retransmissions


def cables(work: Work) -> float:
    """Between switches, in the fabric of the full size with half of the spines."""
    fabric = work.fabric(str(HERE / "scenario.yaml"), {"fabric.spines": 16})
    hosts = {host.name for host in fabric.hosts}
    return sum(not {link.a.node, link.b.node} & hosts for link in fabric.links)


EXERCISE = Exercise(
    [
        SAME,
        at_most(
            Figure("the permutation's time", time_us, "µs"),
            33,
            "1 MiB alone takes 21 µs. Which links do flows share, and which are idle meanwhile?",
        ),
        at_most(
            Figure("packets sent again", retransmissions),
            0,
            "packets that overtake each other: what does a receiver of go-back-n do with them, and how late may they "
            "be for selective-repeat (reordering_window)?",
        ),
        predicted(
            "cables_with_16_spines",
            Figure("cables between switches of the full size with 16 spines a plane", cables),
            0,
            "planes, leaves of each, and a cable from each leaf to each spine",
        ),
    ]
)
