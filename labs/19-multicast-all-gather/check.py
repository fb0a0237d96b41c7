"""Goals of the exercise: `weft check FOLDER` runs own.yaml."""

from weft.exercises import Exercise, Goal, Missing, Work
from weft.results.collectives import CollectiveResult

OWN = "own.yaml"
SIZE_BYTES, RATIO = 2**20, 2.0


def pair(work: Work) -> tuple[CollectiveResult, CollectiveResult]:
    """Return the all-gathers of the largest size that both algorithms have."""
    found = {
        (each.algorithm, each.size_bytes): each for each in work.run(OWN).collectives if each.collective == "allgather"
    }
    sizes = [size for algorithm, size in found if algorithm == "ring" and ("in-network", size) in found]
    if not sizes:
        raise Missing(f"{OWN} has no all-gather with both algorithms, ring and in-network")
    return found["ring", max(sizes)], found["in-network", max(sizes)]


def large(work: Work) -> None:
    ring, _ = pair(work)
    if ring.size_bytes < SIZE_BYTES:
        raise Missing(f"the largest all-gather of {OWN} with both algorithms has {ring.size_bytes:,} B")


def exact(work: Work) -> None:
    for each in pair(work):
        if not each.verified or each.wrong:
            raise Missing(f"what {each.algorithm} delivers is not verified (#wrong: {each.wrong})")


def near(work: Work) -> None:
    farthest_ps = max(link.link.delay_ps for link in work.fabric(OWN).links)
    if farthest_ps > 10**6:
        raise Missing(f"a link has a delay of {farthest_ps / 10**6:g} µs")


def faster(work: Work) -> None:
    ring, switches = pair(work)
    ratio = ring.time_ps / switches.time_ps
    if ratio < RATIO:
        raise Missing(f"the ring takes {ratio:.2f} times as long as the switches")


EXERCISE = Exercise(
    [
        Goal(
            "own.yaml has an all-gather of at least 1 MiB by a ring and in the network",
            "cp scenario.yaml own.yaml; algorithms: [in-network, ring]",
            large,
        ),
        Goal("both deliver what NumPy says", "dtype: int32, and not data: lengths", exact),
        Goal("all links are in one hall: at most 1 µs", "fabric.delay", near),
        Goal(
            f"the ring takes at least {RATIO:g} times as long",
            "both fill a host's link with S bytes; but how many steps does a ring have, and what does each wait for?",
            faster,
        ),
    ]
)
