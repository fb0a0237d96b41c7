"""Goals of the exercise: `weft check FOLDER` runs the sweep own.yaml and reads answers.yaml."""

from weft.exercises import Exercise, Figure, Goal, Missing, Work, predicted
from weft.sweeps.table import Row

OWN = "own.yaml"
RANKS, SMALL, LARGE = 64, 4096, 2**20
ALGORITHMS = ("ring", "in-network")


def two_parameters(work: Work) -> None:
    rows = work.sweep(OWN)
    points = {row["point"] for row in rows}
    varying = {key for key in rows[0] if "." in key and len({str(row[key]) for row in rows if key in row}) > 1}
    if len(points) < 4 or len([key for key in varying if not key.startswith("run.")]) < 2:
        raise Missing(f"{OWN} has {len(points)} points")


def row_of(work: Work, algorithm: str, size: int) -> Row:
    for row in work.sweep(OWN):
        if (row.get("algorithm"), row.get("ranks"), row.get("size_bytes")) == (algorithm, RANKS, size):
            return row
    raise Missing(f"the table of {OWN} has no row of {algorithm} with {RANKS} ranks and {size:,} B")


def rows_there(work: Work) -> None:
    for algorithm in ALGORITHMS:
        for size in (SMALL, LARGE):
            if row_of(work, algorithm, size)["wrong"]:
                raise Missing(f"the sums of {algorithm} of {size:,} B are wrong")


def ring_us(work: Work) -> float:
    return float(row_of(work, "ring", SMALL)["time_ps"]) / 1e6


def ratio(work: Work) -> float:
    ring, network = (float(row_of(work, each, LARGE)["time_ps"]) for each in ALGORITHMS)
    return ring / network


EXERCISE = Exercise(
    [
        Goal(
            f"{OWN} is a sweep of two parameters with at least four points",
            "cp sweep.yaml own.yaml, and change the lists below grid; the check runs up to 24 points",
            two_parameters,
        ),
        Goal(
            f"its table has ring and in-network with {RANKS} ranks, 4 KiB and 1 MiB",
            "ranks: leaves x hosts_per_leaf",
            rows_there,
        ),
        predicted(
            "ring_us",
            Figure(f"the time of a ring of {RANKS} ranks for 4 KiB", ring_us, "µs"),
            0.05,
            "the page's table has 4 and 32 ranks: how much time does each rank more take?",
        ),
        predicted(
            "ratio",
            Figure(f"ring over in-network, {RANKS} ranks and 1 MiB", ratio),
            0.15,
            "each of the ring's 126 steps also sends S/n over its link; in the network S is sent once, 256 B in 342 B",
        ),
    ]
)
