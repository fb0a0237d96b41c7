"""Goals that many exercises have: what they ask, and what they say is missing."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

from tests.refusals import refused
from weft.errors import BadInputError
from weft.exercises import (
    Exercise,
    Figure,
    Goal,
    Missing,
    Work,
    at_least,
    at_most,
    kept,
    named,
    outcomes,
    predicted,
)

FABRIC = "fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 1, host_rate: 100Gb/s}\n"
TRAFFIC = "traffic: [{incast: h0, bytes_per_sender: 4KiB}]\n"


def missing(goal: Goal, folder: Path) -> str | None:
    (outcome,) = outcomes(Exercise([goal]), Work(folder))
    return outcome.missing


def time_us(value: float) -> Figure:
    return Figure("the time", lambda _: value, "µs")


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        (at_most(time_us(1500), 1500, ""), None),
        (at_most(time_us(1500.5), 1500, ""), "the time: 1,500.5 µs; the target is 1,500 µs or less"),
        (at_most(time_us(math.nan), 1500, ""), "the time: nan µs; the target is 1,500 µs or less"),
        (at_least(time_us(3), 3, ""), None),
        (at_least(time_us(2), 3, ""), "the time: 2 µs; the target is 3 µs or more"),
        (at_least(time_us(math.nan), 3, ""), "the time: nan µs; the target is 3 µs or more"),
    ],
)
def test_a_figure_lies_within_its_bound(goal: Goal, said: str | None, tmp_path: Path) -> None:
    assert missing(goal, tmp_path) == said


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("102", None),
        ("98.0", None),
        ("103", "time_us: 103 is near, but not within the tolerance of, what a run finds"),
        ("300", "time_us: 300 is 3 times what a run finds"),
        ("0", "time_us: 0 is not what a run finds"),
        ("-100", "time_us: -100 is not what a run finds"),
        (".nan", "time_us: nan is not what a run finds"),
        ("10000", "time_us: 10,000 is 100 times what a run finds"),
        ("1" + 40 * "0", "time_us is larger than anything here"),
        ("-.inf", "time_us is larger than anything here"),
        ("true", "answers.yaml: time_us is a number, not 'True'"),
        ("'100'", "answers.yaml: time_us is a number, not '100'"),
        ("", "answers.yaml has no time_us"),
    ],
)
def test_an_answer_is_compared_with_what_a_run_finds(answer: str, said: str | None, tmp_path: Path) -> None:
    (tmp_path / "answers.yaml").write_text(f"time_us: {answer}\n")
    goal = predicted("time_us", time_us(100), 0.02, "")
    assert goal.text == "answers.yaml has time_us: the time, in µs (within 2 %)"
    assert missing(goal, tmp_path) == said


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("p0l0:1", None),
        ("p0l0:2", "port: p0l0:2 is not the port"),
        ("7", "answers.yaml: port is a name, not '7'"),
        ("", "answers.yaml has no port"),
    ],
)
def test_a_name_is_compared(answer: str, said: str | None, tmp_path: Path) -> None:
    (tmp_path / "answers.yaml").write_text(f"port: {answer}\n")
    assert missing(named("port", "the port", lambda _: "p0l0:1", ""), tmp_path) == said


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (FABRIC.replace("100Gb/s", "100Gbps") + TRAFFIC, None),
        (FABRIC + TRAFFIC.replace("4KiB", "8KiB"), None),
        ("seed: 7\n" + FABRIC + TRAFFIC, None),
        (FABRIC.replace("spines: 1", "spines: 2") + TRAFFIC, "own.yaml: fabric.spines is 2, in lab.yaml 1"),
        (FABRIC + TRAFFIC.replace("h0", "h1"), "own.yaml: traffic.0.incast is h1, in lab.yaml h0"),
        (FABRIC, "own.yaml: traffic.0.at is missing, in lab.yaml 0"),
    ],
)
def test_what_is_to_stay_is_compared_by_its_meaning(own: str, said: str | None, tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    shipped = tmp_path / "lab" / "lab.yaml"
    shipped.write_text(FABRIC + TRAFFIC)
    (tmp_path / "own.yaml").write_text(own)
    goal = kept("own.yaml", shipped, ["fabric", "traffic"], ["traffic.*.bytes_per_sender"])
    assert goal.text == "own.yaml has fabric and traffic of lab.yaml but for traffic.*.bytes_per_sender"
    assert missing(goal, tmp_path) == said


def test_all_that_results_depend_on_is_to_stay(tmp_path: Path) -> None:
    own, shipped = tmp_path / "own", tmp_path / "lab"
    goal = kept("own.yaml", shipped / "own.yaml", free=["transport.*"])
    assert goal.text == "own.yaml has everything of own.yaml but for transport.*"
    pattern = "traffic: [{pattern: mine.py:Mine}]\n"
    for folder in (own, shipped):
        folder.mkdir()
        (folder / "own.yaml").write_text(f"name: {folder.name}\n{FABRIC}{pattern}")
        (folder / "mine.py").write_text("class Mine: ...\n")
    assert missing(goal, own) is None
    (own / "mine.py").write_text("class Mine: easier = True\n")
    assert missing(goal, own) == "own.yaml: traffic.0.pattern names mine.py:Mine, which is not as in the lab"
    shutil.copy(shipped / "mine.py", own)
    with (own / "own.yaml").open("a") as file:
        file.write("workers: 2\nobserve: {flows: true}\ntransport: {congestion_control: swift}\n")
    assert missing(goal, own) is None
    with (own / "own.yaml").open("a") as file:
        file.write("mtu: 4096\n")
    assert missing(goal, own) == "own.yaml: mtu is 4096, in the lab's 1024"


def test_what_the_exercise_changes_is_not_said_of_the_labs_file(tmp_path: Path) -> None:
    shipped = tmp_path / "lab.yaml"
    shipped.write_text(FABRIC + TRAFFIC)
    shutil.copy(shipped, tmp_path / "own.yaml")
    goal = kept("own.yaml", shipped, settings={"fabric.oversubscription": 4})
    assert missing(goal, tmp_path) == "own.yaml: fabric.oversubscription is not set, in the exercise 4"


def test_a_sweep_of_a_student_has_bounds(tmp_path: Path) -> None:
    (tmp_path / "many.yaml").write_text(f"scenario:\n  {FABRIC}  {TRAFFIC}grid: {{seed: 1..90000}}\n")
    (tmp_path / "two.yaml").write_text(f"scenario:\n  {FABRIC}  {TRAFFIC}grid: {{seed: [1, 2]}}\n")
    (tmp_path / "bad.yaml").write_text(f"scenario:\n  {FABRIC}  {TRAFFIC}grid: {{sed: [1, 2]}}\n")
    work = Work(tmp_path)
    with pytest.raises(Missing, match=r"many\.yaml has 90,000 points; the check runs up to 24"):
        work.sweep("many.yaml")
    rows = work.sweep("two.yaml")
    assert [row["seed"] for row in rows] == [1, 2]
    assert all(row["time_ps"] > 0 for row in rows)
    with refused(BadInputError, problem="unknown key 'sed'"):
        work.sweep("bad.yaml")
