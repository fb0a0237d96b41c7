"""Goals of the exercise: `weft check FOLDER` runs own.yaml and compares the predictions in answers.yaml."""

from weft.exercises import Exercise, Figure, Goal, Missing, Work, at_least, predicted
from weft.results.synchronisation import BARRIERS, COUNTERS, BarrierResult, CounterResult

OWN = "own.yaml"
RANKS, LAB_RANKS, LAB_DELAY_PS = 16, 64, 500_000


def barrier(work: Work, algorithm: str) -> BarrierResult:
    found = [each for each in work.run(OWN).of(BARRIERS) if each.algorithm == algorithm]
    if len(found) != 1:
        raise Missing(f"{OWN} has {len(found)} barriers by {algorithm}, where the exercise has one")
    return found[0]


def compare_and_swap(work: Work) -> CounterResult:
    found = [each for each in work.run(OWN).of(COUNTERS) if each.operation == "compare_and_swap"]
    if len(found) != 1:
        raise Missing(f"{OWN} has {len(found)} counters by compare_and_swap, where the exercise has one")
    return found[0]


def another_fabric(work: Work) -> None:
    fabric = work.fabric(OWN)
    delays = {link.link.delay_ps for link in fabric.links}
    if len(fabric.hosts) < RANKS or len(fabric.hosts) == LAB_RANKS or delays == {LAB_DELAY_PS}:
        raise Missing(f"{OWN} has {len(fabric.hosts)} hosts, and delays of {', '.join(f'{d:,}' for d in delays)} ps")


def correct(work: Work) -> None:
    if barrier(work, "in_network").early or compare_and_swap(work).wrong:
        raise Missing("a rank goes on early, or an addition is not counted once")


def ratio(work: Work) -> float:
    mean = [barrier(work, each).latency_ps.mean for each in ("dissemination", "in_network")]
    return mean[0] / mean[1]


def attempts(work: Work) -> float:
    found = compare_and_swap(work)
    return found.attempts / found.additions


EXERCISE = Exercise(
    [
        Goal(
            f"{OWN} has {RANKS} hosts or more, but not {LAB_RANKS}, and other delays than 500 ns",
            "cp scenario.yaml own.yaml; fabric.hosts_per_leaf, fabric.delay",
            another_fabric,
        ),
        Goal(
            "barriers and counters are right",
            "a barrier by in_network, a counter by compare_and_swap",
            correct,
        ),
        at_least(
            Figure("a barrier by dissemination over one in the network", ratio),
            3,
            "steps of dissemination: log2 of the ranks",
        ),
        predicted(
            "barrier_us",
            Figure(
                "a barrier in the network",
                lambda work: barrier(work, "in_network").latency_ps.mean / 1e6,
                "µs",
            ),
            0.01,
            "four hops, each the delay of a link and 98 B at its rate",
        ),
        predicted(
            "attempts_of_an_addition",
            Figure("attempts of an addition by compare-and-swap, on average", attempts),
            0.1,
            "n clients expect the same value; one of them wins, n - 1 try again",
        ),
    ]
)
