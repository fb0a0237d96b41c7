"""Goals of the exercise: `weft check FOLDER` runs own.yaml and compares answers.yaml."""

from pathlib import Path

from weft.exercises import Exercise, Figure, Work, at_most, kept, named, predicted
from weft.results.run_result import RunResult

OWN = "own.yaml"
HERE = Path(__file__).parent
EIGHT_MIB = {"traffic.0.algorithms": ["ring"], "traffic.0.sizes": ["8MiB"]}
LOADS = {"observe": {"loads": True}}
SAME = kept(
    OWN,
    HERE / "scenario.yaml",
    free=["traffic.*.bucket", "traffic.*.algorithms.*", "transport.*", "int", "ecn*"],
    settings={"fabric.oversubscription": 4},
)


def run(work: Work) -> RunResult:
    SAME.check(work)
    return work.run(OWN, LOADS)


def exposed_us(work: Work) -> float:
    return min(step.exposed_ps for step in run(work).training_steps) / 1e6


def busiest_links(work: Work) -> str:
    """Return the links whose busiest port carries most, acknowledgements left out."""
    loads = [each for each in run(work).link_loads if each.kind != "acknowledgements"]
    return max(loads, key=lambda each: each.busiest_share).links


def ring_us(work: Work) -> float:
    return work.run(str(HERE / "sizes.yaml"), EIGHT_MIB).collectives[0].time_ps / 1e6


EXERCISE = Exercise(
    [
        SAME,
        at_most(
            Figure("the exposed time of the best step", exposed_us, "µs"),
            2_760,
            "3.07 ms are exposed in step 3. When can the first bucket start?",
        ),
        named(
            "busiest_links",
            "the links with the busiest port",
            busiest_links,
            "observe: {loads: true}, busiest port; such as 'host to leaf'",
        ),
        predicted(
            "ring_us_for_8_mib",
            Figure("the time of a ring of sizes.yaml for 8 MiB", ring_us, "µs"),
            0.05,
            "twice the bytes of 4 MiB; what of its 655.1 µs is latency?",
        ),
    ]
)
