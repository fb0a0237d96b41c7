"""Goals of the exercise: `weft check FOLDER` runs own.yaml and reads answers.yaml."""

from pathlib import Path

from weft.exercises import Exercise, Figure, Goal, Missing, Work, at_most, kept, predicted

OWN, LAB = "own.yaml", Path(__file__).parent / "hosts.yaml"
SAME = kept(OWN, LAB, free=["traffic.*", "transport.*"])
SIZES = {"256 KiB": 2**18, "4 MiB": 2**22, "16 MiB": 2**24}
SLOW_INSIDE = {
    "fabric.scale_up.rate": "200Gbps",
    "traffic": [{"collective": "allreduce", "algorithms": ["ring"], "data": "lengths", "sizes": ["16MiB"]}],
}


def each_once(work: Work) -> None:
    sizes = [each.size_bytes for each in work.run(OWN).collectives if each.collective == "allreduce"]
    for name, size in SIZES.items():
        if sizes.count(size) != 1:
            raise Missing(f"{OWN} has {sizes.count(size)} all-reduces of {name}")


def total_us(work: Work) -> float:
    SAME.check(work)
    each_once(work)
    return sum(each.time_ps for each in work.run(OWN).collectives) / 1e6


def slow_ring_us(work: Work) -> float:
    return work.run(str(LAB), SLOW_INSIDE).collectives[0].time_ps / 1e6


EXERCISE = Exercise(
    [
        SAME,
        Goal(
            f"an all-reduce each of {', '.join(SIZES)}",
            "an item of the traffic for each, with one algorithm and one size",
            each_once,
        ),
        at_most(
            Figure("the time of all three", total_us, "µs"),
            125,
            "which algorithm has few steps, and which sends few bytes by each NIC? The choice changes with the size",
        ),
        predicted(
            "ring_us_with_200_gbps_inside",
            Figure("the time of a ring of 16 MiB if links inside hosts have 200 Gb/s", slow_ring_us, "µs"),
            0.03,
            "each rank sends 7/8 of 2 (n - 1)/n of the vector inside its host; n = 32",
        ),
    ]
)
