"""Goals of the exercise: `weft check FOLDER` has promtool test the alert of alerts.yaml."""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.errors import EnvironmentLacksError
from weft.exercises import Exercise, Goal, Missing, Work
from weft.scenario import read_mapping

RULES, ALERT = "alerts.yaml", "StormRoot"
INTERVAL_S, STEPS = 5, 24
EVALUATED = "1m30s"
Port = Mapping[str, str]
ROOT: Port = {"switch": "p0l0", "port": "1", "peer": "h0"}
NEIGHBOUR: Port = {"switch": "p0l0", "port": "3", "peer": "p0s0"}
SPINE: Port = {"switch": "p0s0", "port": "1", "peer": "p0l0"}


def promtool(*arguments: str) -> tuple[bool, str]:
    """Return whether promtool was content, and what it said."""
    command = shutil.which("promtool")
    if command is None:
        raise EnvironmentLacksError(
            "promtool is not installed, which tests rules (apt-get install prometheus, or make setup PARTS=prometheus)"
        )
    done = subprocess.run(
        [command, *arguments], capture_output=True, text=True, check=False, timeout=60, errors="replace"
    )
    return done.returncode == 0, done.stdout + done.stderr


def series(name: str, labels: Mapping[str, str], first: float, step: float) -> dict[str, str]:
    listed = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return {"series": f"{name}{{{listed}}}", "values": f"{first}+{step}x{STEPS}"}


def port(labels: Port, queue_bytes: int, held: float, dilation: float) -> list[dict[str, str]]:
    """Return what is exported of a port with a queue, whose far end holds class 3 for a share of the time."""
    step_s = held * INTERVAL_S / dilation
    return [
        series("weft_port_queue_depth_bytes", labels, queue_bytes, 0),
        *(
            series(
                "weft_port_paused_seconds_total",
                {**labels, "class": str(number)},
                0,
                step_s if number == 3 else 0,
            )
            for number in range(8)
        ),
    ]


def firing(work: Work, ports: Sequence[list[dict[str, str]]], dilation: float, at: str = EVALUATED) -> set[str]:
    """Return at which ports of those that are exported the alert fires. Raises Missing where the file is not valid."""
    valid(work)
    tested: dict[str, Any] = {
        "rule_files": [str(work.file(RULES).resolve())],
        "evaluation_interval": f"{INTERVAL_S}s",
        "tests": [
            {
                "interval": f"{INTERVAL_S}s",
                "input_series": [
                    {"series": "weft_dilation_ratio", "values": f"{dilation}x{STEPS}"},
                    *(each for of_port in ports for each in of_port),
                ],
                # No alert has this label: promtool says which there are instead.
                "alert_rule_test": [
                    {
                        "eval_time": at,
                        "alertname": ALERT,
                        "exp_alerts": [{"exp_labels": {"none": "such"}}],
                    }
                ],
            }
        ],
    }
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "test.yaml")
        file.write_text(json.dumps(tested))
        _, said = promtool("test", "rules", str(file))
    found = re.search(r"got:\s*(\[.*)\Z", said, re.DOTALL)
    if found is None:
        raise Missing(f"promtool says: {shown(said)}")
    alerts = [each for each in re.findall(r"Labels:\s*\{(.*?)\}", found[1]) if "none=" not in each]
    return {f"{label_of(each, 'switch')}:{label_of(each, 'port')}" for each in alerts}


def label_of(alert: str, name: str) -> str:
    found = re.search(rf'\b{name}="([^"]*)"', alert)
    return found[1] if found is not None else f"(no {name})"


def shown(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return "; ".join(lines)[:300]


def valid(work: Work) -> None:
    content, said = promtool("check", "rules", str(work.file(RULES)))
    if not content:
        raise Missing(f"promtool says: {shown(said)}")
    # promtool takes a group without rules, and a file without groups.
    groups = read_mapping(work.file(RULES), "a file of rules").get("groups") or []
    if ALERT not in [rule.get("alert") for group in groups for rule in group.get("rules") or []]:
        raise Missing(f"{RULES} has no alert {ALERT}")


def at_the_root(work: Work) -> None:
    where = firing(work, [port(ROOT, 50_000, 0, 1000), port(SPINE, 0, 0, 1000)], 1000)
    if where != {"p0l0:1"}:
        raise Missing(f"50 KB wait at p0l0:1, which nobody holds, and nothing at p0s0:1: it fires at {names(where)}")


def not_where_held(work: Work) -> None:
    for dilation in (1000.0, 10.0):
        where = firing(work, [port(SPINE, 50_000, 0.9, dilation)], dilation)
        if where:
            raise Missing(
                f"50 KB wait at p0s0:1, held for nine tenths of the time at a dilation of {dilation:g}: it fires"
            )
    where = firing(work, [port(ROOT, 50_000, 0, 1000), port(NEIGHBOUR, 50_000, 0.9, 1000)], 1000)
    if where != {"p0l0:1"}:
        raise Missing(
            f"50 KB wait at p0l0:1, which nobody holds, and at p0l0:3, which is held: it fires at {names(where)}"
        )


def held_a_little(work: Work) -> None:
    for dilation in (1000.0, 10.0):
        if not firing(work, [port(ROOT, 50_000, 0.02, dilation)], dilation):
            raise Missing(
                f"50 KB wait at p0l0:1, held for a fiftieth of the time at a dilation of {dilation:g}: it does not fire"
            )


def not_at_once(work: Work) -> None:
    ports = [port(ROOT, 50_000, 0, 1000)]
    if firing(work, ports, 1000, at="5s"):
        raise Missing("50 KB have waited for 5 s: it fires")
    if not firing(work, ports, 1000, at="20s"):
        raise Missing("50 KB have waited for 20 s: it does not fire")


def names(where: set[str]) -> str:
    return ", ".join(sorted(where)) or "no port"


EXERCISE = Exercise(
    [
        Goal(
            f"promtool finds nothing wrong with {RULES}, which has an alert {ALERT}",
            "cp prometheus/first-alerts.yaml alerts.yaml; promtool check rules alerts.yaml",
            valid,
        ),
        Goal(
            "it fires where a queue waits at a port that nobody holds, with the port's labels",
            "weft_port_queue_depth_bytes > 20000; `unless on(switch, port, peer)` takes series away and keeps "
            "the labels",
            at_the_root,
        ),
        Goal(
            "it does not fire at a port that is held for most of the time",
            "weft_port_paused_seconds_total counts emulated seconds, rate() per second of the machine's: what "
            "is 0.9 of the time at a dilation of 1,000?",
            not_where_held,
        ),
        Goal(
            "a port that is held for a fiftieth of the time is not held by others: it fires",
            "a share of the time above which a port is held, as WeftPauseStorm has one",
            held_a_little,
        ),
        Goal("it waits for 10 s", "`for:`", not_at_once),
    ]
)
