"""Goals of the exercise: `weft check FOLDER` runs own.yaml and reads answers.yaml."""

from pathlib import Path

from weft.exercises import Exercise, Figure, Work, at_most, kept, predicted

OWN = "own.yaml"
HERE = Path(__file__).parent
LAB = HERE / "credits.yaml"
SAME = kept(OWN, LAB, free=["credits.buffer"])


def permutation_us(work: Work) -> float:
    SAME.check(work)
    return work.run(OWN).flows[-1].time_ps / 1e6


def small_buffer_us(work: Work) -> float:
    return work.run(str(LAB), {"credits.buffer": "8KiB"}).flows[-1].time_ps / 1e6


def buffer_bytes(work: Work) -> float:
    SAME.check(work)
    return work.scenario(OWN).credits.buffer


def slow_us(work: Work) -> float:
    changes = {"switching.mode": "store-and-forward", "switching.latency": "300ns", "fabric.delay": "1us"}
    return work.run(str(HERE / "switching.yaml"), changes).flows[0].time_ps / 1e6


EXERCISE = Exercise(
    [
        SAME,
        at_most(
            Figure("the permutation's time", permutation_us, "µs"),
            103,
            "how many frames are on their way until the first one's credit is back?",
        ),
        at_most(
            Figure("credits.buffer", buffer_bytes, "B"),
            27_000,
            "as many frames as fill the link until a credit returns, of 18 blocks of 64 B each",
        ),
        predicted(
            "permutation_us_with_8_kib",
            Figure("the permutation's time with a buffer of 8 KiB", small_buffer_us, "µs"),
            0.03,
            "whole frames in 8 KiB; 1,024 packets, so many for each 2.095 µs",
        ),
        predicted(
            "store_and_forward_us",
            Figure(
                "the time of switching.yaml with store-and-forward, 300 ns in a switch and links of 1 µs",
                slow_us,
                "µs",
            ),
            0.0001,
            "4 (s + s_ack) + 8 links + 6 switches",
        ),
    ]
)
