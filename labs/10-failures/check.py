"""Goals of the exercise: `weft check FOLDER` runs own.yaml and compares the account in answers.yaml."""

from pathlib import Path

from weft.errors import CheckFailedError
from weft.exercises import ANSWERS, Exercise, Figure, Goal, Missing, Work, at_least, kept, predicted
from weft.results.packet_conservation import PacketConservation

OWN, LAB = "own.yaml", Path(__file__).parent / "scenario.yaml"
LEAST_LOST = 100


def conservation(work: Work) -> PacketConservation:
    try:
        found = work.run(OWN).packet_conservation
    except CheckFailedError as error:
        raise Missing(f"the run of {OWN} fails: {str(error)[:200]}") from error
    assert found is not None
    return found


def another_failure(work: Work) -> None:
    links = {event.link for event in work.run(OWN).link_events if event.state == "down"}
    if not links:
        raise Missing(f"no link fails in {OWN}")
    if links == {event.link for event in work.scenario(str(LAB)).events}:
        raise Missing(f"in {OWN} the same link fails as in {LAB.name}")


def lost(work: Work) -> float:
    return sum(count.packets for count in conservation(work).dropped.values())


def account(work: Work) -> None:
    """Compare the packets lost by cause."""
    answer = work.answers(ANSWERS).get("lost_packets")
    if not isinstance(answer, dict) or not answer:
        raise Missing(f"{ANSWERS} has no packets by cause below lost_packets")
    dropped = {cause: count.packets for cause, count in conservation(work).dropped.items()}
    for cause in dropped:
        if cause not in answer:
            raise Missing(f"a cause is not in lost_packets (there are {len(dropped)})")
    for cause, packets in answer.items():
        if packets != dropped.get(str(cause), 0):
            raise Missing(f"lost_packets: {cause}: {packets} is not what the run finds")


def last_loss_us(work: Work) -> float:
    """Return the time from the first failure to the last loss of all."""
    down = [event for event in work.run(OWN).link_events if event.state == "down"]
    if not down:
        raise Missing(f"no link fails in {OWN}")
    begun = min(event.happened_ps for event in down if event.happened_ps is not None)
    losses = [event.last_loss_ps for event in down if event.last_loss_ps is not None]
    if not losses:
        raise Missing(f"nothing is lost in {OWN}")
    return (max(losses) - begun) / 1e6


EXERCISE = Exercise(
    [
        kept(OWN, LAB, free=["events.*"]),
        Goal(
            "another failure than the lab's, which the job survives",
            "events: another link, or all links of a spine, p0s2<->*; a host's only link must come back",
            another_failure,
        ),
        at_least(Figure("packets lost", lost), LEAST_LOST, "a failure while hosts write, in the first millisecond"),
        Goal(
            f"{ANSWERS} has lost_packets, by cause: {{link cut: …, queue down: …}}",
            "packet_conservation.dropped of results.json",
            account,
        ),
        predicted(
            "last_loss_us",
            Figure("the time from the first failure to the last loss", last_loss_us, "µs"),
            0.01,
            "the table of links that failed: 'last loss after', the largest of all links",
        ),
    ]
)
