"""Goals of the exercise: `weft check FOLDER` runs own.yaml and reads answers.yaml."""

from pathlib import Path

from weft.errors import WeftError
from weft.exercises import ANSWERS, Exercise, Figure, Goal, Missing, Work, at_most, kept, number_in_answers
from weft.run.spec import run_spec

OWN, LAB = "own.yaml", Path(__file__).parent / "scenario.yaml"
SAME = kept(OWN, LAB, free=["routing.*", "credits.classes.*", "credits.allow_deadlock"])
LAB_KIND, SHORTEST_RING, LONGEST_RING = "dimension_order", 3, 8


def other_routes(work: Work) -> None:
    scenario = work.scenario(OWN)
    if scenario.credits.allow_deadlock:
        raise Missing(f"{OWN} has credits.allow_deadlock")
    if scenario.routing.kind == LAB_KIND:
        raise Missing(f"{OWN} has routing.kind: {LAB_KIND}, which needs two lanes")


def one_lane(work: Work) -> None:
    # With the lanes that its routes need.
    classes = run_spec(work.scenario(OWN)).options.credits.classes
    if len(classes) != 1:
        raise Missing(f"{OWN} has credits in the classes {classes}")


def time_us(work: Work) -> float:
    SAME.check(work)
    other_routes(work)
    one_lane(work)
    return work.run(OWN).flows[0].time_ps / 1e6


def runs(work: Work, side: int) -> bool:
    """Whether a torus of that side runs with one lane and shortest ways along its rings."""
    changes = {"routing.kind": "dimension_order_one_lane", "fabric.shape": [side, side]}
    try:
        work.run(str(LAB), changes)
    except WeftError as error:
        if "cycle of buffers" not in str(error):
            raise
        return False
    return True


def longest_ring(work: Work) -> None:
    answer = number_in_answers(work, "longest_ring_with_one_lane")
    if answer not in range(SHORTEST_RING, LONGEST_RING):
        raise Missing(f"longest_ring_with_one_lane: {answer:g} is not it")
    if not runs(work, int(answer)):
        raise Missing(f"rings of {answer:g} have a cycle of buffers")
    if runs(work, int(answer) + 1):
        raise Missing(f"rings of {answer + 1:g} run, too")


EXERCISE = Exercise(
    [
        SAME,
        Goal(
            f"other routes than {LAB_KIND}, without allow_deadlock",
            "routing.kind: which routes never close a cycle on any graph? (docs/howto/routing.md)",
            other_routes,
        ),
        Goal("one lane is enough for them", "credits.classes: [3]", one_lane),
        at_most(
            Figure("the time of all flows", time_us, "µs"),
            310,
            "it takes 325 µs with datelines; is one lane slower, or faster here?",
        ),
        Goal(
            f"{ANSWERS} has the longest ring that runs with one lane: longest_ring_with_one_lane",
            "fabric.shape with routing.kind: dimension_order_one_lane; why are rings of four without a cycle?",
            longest_ring,
        ),
    ]
)
