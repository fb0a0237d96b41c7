"""Goals of the exercise: `weft check FOLDER` runs own.yaml and reads answers.yaml."""

from weft.exercises import Exercise, Goal, Missing, Work
from weft.results.collectives import CollectiveResult

OWN, ANSWERS, QUESTION = "own.yaml", "answers.yaml", "ring_bytes_sent_by_a_host"
RANKS, SIZE_BYTES, LOSS, RATIO = 16, 2**20, 0.001, 1.5


def ring_and_in_network(work: Work) -> tuple[CollectiveResult, CollectiveResult]:
    """Return the pair of all-reduces of one size, the largest."""
    found = {(each.collective, each.algorithm, each.size_bytes): each for each in work.run(OWN).collectives}
    sizes = [
        size
        for collective, algorithm, size in found
        if (collective, algorithm) == ("allreduce", "ring") and ("allreduce", "in-network", size) in found
    ]
    if not sizes:
        raise Missing(f"{OWN} has no all-reduce with both algorithms, ring and in-network")
    size = max(sizes)
    if size < SIZE_BYTES:
        raise Missing(f"the largest all-reduce of {OWN} with both algorithms has {size:,} B")
    return found["allreduce", "ring", size], found["allreduce", "in-network", size]


def ranks(work: Work) -> None:
    count = work.fabric(OWN).rank_count
    if count < RANKS:
        raise Missing(f"{OWN} has {count} ranks")


def loses(work: Work) -> None:
    loss = work.scenario(OWN).faults.loss
    if loss < LOSS:
        raise Missing(f"faults.loss of {OWN} is {loss:g}")
    if not all(each.retransmissions for each in ring_and_in_network(work)):
        raise Missing("one of the two had no packet to send again")


def exact(work: Work) -> None:
    for each in ring_and_in_network(work):
        if not each.verified or each.wrong:
            raise Missing(f"the sums of {each.algorithm} are not verified (#wrong: {each.wrong})")
        if each.ranks < RANKS:
            raise Missing(f"{each.ranks} ranks take part in {each.algorithm}")


def faster(work: Work) -> None:
    ring, switches = ring_and_in_network(work)
    ratio = ring.time_ps / switches.time_ps
    if ratio < RATIO:
        raise Missing(f"the ring takes {ratio:.2f} times as long as the switches")


def predicted(work: Work) -> None:
    answer = work.answers(ANSWERS).get(QUESTION)
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        raise Missing(f"{ANSWERS} has no number {QUESTION}")
    ring, _ = ring_and_in_network(work)
    count = ring.ranks
    expected = 2 * (count - 1) / count * ring.size_bytes
    if not abs(answer - expected) <= 0.001 * expected:  # .nan is no answer either
        raise Missing(f"{QUESTION}: {answer:,} is not what a ring of {count} ranks sends")


EXERCISE = Exercise(
    [
        Goal(
            f"own.yaml has at least {RANKS} ranks",
            "cp scenario.yaml own.yaml; ranks: leaves x hosts_per_leaf",
            ranks,
        ),
        Goal(
            "an all-reduce of at least 1 MiB runs by a ring and in the network, and both are exact",
            "algorithms: [ring, in-network]; data of numbers (dtype: int32), not data: lengths",
            exact,
        ),
        Goal(
            "one packet in a thousand is lost, and sent again",
            "faults: {loss: 0.001}",
            loses,
        ),
        Goal(
            f"in the network it takes at most 1/{RATIO:g} of the ring's time",
            "2(n - 1)/n says what ranks do to it; what do losses do to each?",
            faster,
        ),
        Goal(
            f"answers.yaml says how many bytes of data a host sends in that ring: {QUESTION}: …",
            "each of the 2(n - 1) steps sends a chunk of S/n",
            predicted,
        ),
    ]
)
