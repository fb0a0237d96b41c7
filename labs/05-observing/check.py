"""Goals of the exercise: `weft check FOLDER` runs own.yaml, recording what it needs, and compares answers.yaml."""

from pathlib import Path

from weft.exercises import Exercise, Figure, Goal, Missing, Work, kept, named, predicted
from weft.recording.tables import integers_of, names_of
from weft.results.run_result import RunResult

OWN, LAB = "own.yaml", Path(__file__).parent / "scenario.yaml"
RECORDED = {"observe": {"queues": "all", "interval": "1us", "flows": True}}


def run(work: Work) -> RunResult:
    return work.run(OWN, RECORDED)


def incast(work: Work) -> int:
    """Return the number that tables have for the run of the incast."""
    found = [phase.run for phase in run(work).phases if phase.name.startswith("incast")]
    if len(found) != 1:
        raise Missing(f"{OWN} has {len(found)} incasts, where the exercise has one")
    return found[0]


def another_receiver(work: Work) -> None:
    incast(work)
    (receiver,) = (item.incast for item in work.scenario(OWN).traffic if hasattr(item, "incast"))
    if receiver == "h0":
        raise Missing(f"the incast of {OWN} goes to h0, which the page is about")


def deepest_port(work: Work) -> str:
    incast(work)
    table = run(work).observations.tables["queues"]
    return str(names_of(table, "port").texts()[integers_of(table, "queue_bytes").argmax()])


def largest_slowdown(work: Work) -> float:
    table = run(work).observations.tables["flows"]
    rows = integers_of(table, "run") == incast(work)
    taken = integers_of(table, "end_ps") - integers_of(table, "start_ps")
    return float((taken[rows] / integers_of(table, "ideal_ps")[rows]).max())


def lost(work: Work) -> float:
    return sum(run(work).drops.values())


EXERCISE = Exercise(
    [
        kept(OWN, LAB, free=["traffic.*.incast"]),
        Goal("the incast goes to another host than h0", "incast: h5, for example", another_receiver),
        named(
            "deepest_queue",
            "the port with the deepest queue of the run",
            deepest_port,
            "queues.csv of the run, or the page's queues: which port leads to the receiver? (NODE:PORT)",
        ),
        predicted(
            "largest_slowdown",
            Figure("the largest slowdown of the incast's messages", largest_slowdown),
            0.02,
            "flows.csv: (end_ps − start_ps) / ideal_ps of the rows with the incast's run",
        ),
        predicted(
            "packets_lost",
            Figure("how many packets are lost in the run", lost),
            0,
            "drops.csv, or results.json",
        ),
    ]
)
