"""Goals of the exercise: `weft check FOLDER` runs own.yaml and compares answers.yaml."""

from pathlib import Path

from weft.exercises import Exercise, Figure, Work, at_most, kept, named, predicted
from weft.results.run_result import RunResult

OWN = "own.yaml"
HERE = Path(__file__).parent
STORM = [{"host": "h7", "state": "storming", "at": "100us", "until": "3ms"}]
RING = {"collective": "allreduce", "algorithms": ["ring"], "ranks": [0, 2, 4, 6], "data": "lengths"}
ALONE = {"traffic": [RING | {"sizes": ["8MiB"]}]}
SAME = kept(
    OWN,
    HERE / "scenario.yaml",
    free=["transport.*", "int", "ecn*", "pfc.xoff", "pfc.watchdog*", "observe*"],
    settings={"events": STORM},
)


def run(work: Work) -> RunResult:
    SAME.check(work)
    return work.run(OWN)


def port_of_storm(work: Work) -> str:
    """Return the switch's port to the NIC that pauses without end."""
    (storm,) = run(work).nic_storms
    (host,) = (each for each in work.fabric(OWN).hosts if each.name == storm.host)
    return f"{host.nics[0].switch}:{host.nics[0].switch_port}"


def other_storms(work: Work) -> int:
    """Return how many other ports the watchdog has found; all and one more if it has missed that of the storm."""
    ports = [each.port for each in run(work).pfc_watchdog]
    return len(ports) - 1 if port_of_storm(work) in ports else len(ports) + 1


def ring_us(work: Work) -> float:
    return run(work).collectives[0].time_ps / 1e6


def alone_us(work: Work) -> float:
    return work.run(str(HERE / "scenario.yaml"), ALONE).collectives[0].time_ps / 1e6


EXERCISE = Exercise(
    [
        SAME,
        at_most(
            Figure("ports but h7's in which the watchdog finds a storm", other_storms, ""),
            0,
            "which pauses had begun before the storm, and why?",
        ),
        at_most(
            Figure("the ring's time", ring_us, "µs"), 700, "who keeps the queue at p0l1:4 short before PFC has to?"
        ),
        named("first_port", "the port at which the storm begins", port_of_storm, "SWITCH:PORT, such as 'p0s1:2'"),
        predicted(
            "ring_us_for_8_mib",
            Figure("the time of the ring alone for 8 MiB", alone_us, "µs"),
            0.03,
            "twice the bytes of 4 MiB; what of its 518.0 µs is latency?",
        ),
    ]
)
