"""Exercises that ship: their solutions reach all goals, and what a student starts from does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from weft.exercises import Work, exercise_of, outcomes, starter_and_solution
from weft.labs.folder import copy_lab
from weft.system.shipped_labs import CHECK_FILE, SOLUTION, find_lab, shipped_labs

LABS = shipped_labs()


@pytest.mark.slow
@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_the_solution_reaches_all_goals(lab, tmp_path: Path) -> None:
    if lab.name == "24-telemetry" and shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    starter_and_solution(lab, tmp_path / "work")
    assert {each.goal.text: each.missing for each in outcomes(exercise_of(lab), Work(tmp_path / "work"))} == {
        goal.text: None for goal in exercise_of(lab).goals
    }


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_student_starts_without_solution_and_reaches_nothing(lab, tmp_path: Path) -> None:
    copy_lab(lab, tmp_path / "work", answers=False)
    assert not (tmp_path / "work" / SOLUTION).exists()
    assert not (tmp_path / "work" / CHECK_FILE).exists()
    found = list(outcomes(exercise_of(lab), Work(tmp_path / "work")))
    assert all(each.missing and each.goal.hint for each in found)


@pytest.mark.parametrize(
    ("start", "missing"),
    [
        ("leaf-spine.yaml", {3: "p0l0 is the only switch that h0 is at"}),
        ("oversubscribed.yaml", {3: "p0l0 is the only switch that h0 is at"}),
        ("dragonfly.yaml", {2: "50 Gb/s", 3: "p0r0 is the only switch"}),
        ("fat-tree.yaml", {3: "p0l0 is the only switch", 4: "$11,289 and 205 W"}),
        ("scenario.yaml", {0: "has 64 accelerators", 3: "only switch", 4: "$"}),
    ],
)
def test_each_design_of_lab_20_lacks_something(start: str, missing: dict[int, str], tmp_path: Path) -> None:
    lab = find_lab("20")
    shutil.copy(lab.folder / start, tmp_path / "design.yaml")
    found = list(outcomes(exercise_of(lab), Work(tmp_path)))
    assert {number for number, each in enumerate(found) if each.missing} == set(missing)
    for number, text in missing.items():
        assert text in str(found[number].missing)


@pytest.mark.parametrize(
    ("number", "start", "missing"),
    [
        ("02", "scenario.yaml", {"the incast's time": "µs; the target is 5,700 µs or less"}),
        (
            "03",
            "pfc.yaml",
            {"the victim's time": "1,482.95 µs", "answers.yaml has largest": "no answers.yaml"},
        ),
        ("04", "scenario.yaml", {"hosts add up": "that of in-network"}),
        (
            "06",
            "hosts.yaml",
            {"an all-reduce each": "4 all-reduces of 256 KiB", "the time of": "4 all", "answers": "no"},
        ),
        (
            "09",
            "credits.yaml",
            {"credits.buffer": "32,768 B", "answers.yaml has p": "no", "answers.yaml has s": "no"},
        ),
        (
            "10",
            "scenario.yaml",
            {"another failure": "the same link", "answers.yaml has lo": "", "answers.yaml has la": ""},
        ),
        (
            "12",
            "scenario.yaml",
            {"other routes": "needs two", "one lane": "[3, 4]", "the time": "two", "answers": "no"},
        ),
        (
            "13",
            "maintenance.yaml",
            {"two spines": "1 of the spines", "packets": "1 of", "both are in use": "1 of"},
        ),
        pytest.param(
            "15",
            "scenario.yaml",
            {"seven": "trains 5 times", "the steps by": "5", "the time until": "5 times"},
            marks=pytest.mark.slow,
        ),
        (
            "28",
            "scenario.yaml",
            {"mean run": "exactly one policy", "mean time": "exactly one policy", "answers": "no answers.yaml"},
        ),
    ],
)
def test_the_lab_as_it_comes_is_no_solution(number: str, start: str, missing: dict[str, str], tmp_path: Path) -> None:
    lab = find_lab(number)
    copy_lab(lab, tmp_path / "work", answers=False)
    shutil.copy(lab.folder / start, tmp_path / "work" / "own.yaml")
    found = [each for each in outcomes(exercise_of(lab), Work(tmp_path / "work")) if each.missing]
    assert len(found) == len(missing)
    for outcome, (goal, text) in zip(found, missing.items(), strict=True):
        assert outcome.goal.text.startswith(goal)
        assert text in str(outcome.missing)


@pytest.mark.parametrize(
    "number", ["02", "03", "06", "08", "15", "17", "18", pytest.param("22", marks=pytest.mark.slow)]
)
def test_a_bound_is_for_the_network_of_the_lab(number: str, tmp_path: Path) -> None:
    lab = find_lab(number)
    starter_and_solution(lab, tmp_path / "work")
    with (tmp_path / "work" / "own.yaml").open("a") as file:
        file.write("\nfaults: {loss: 0.01}\n")
    found = [each for each in outcomes(exercise_of(lab), Work(tmp_path / "work")) if each.missing]
    assert "own.yaml has everything" in found[0].goal.text
    assert any(": at " in each.goal.text for each in found)
    assert {each.missing.rpartition(", in ")[0] for each in found} == {"own.yaml: faults.loss is 0.01"}


@pytest.mark.parametrize(
    ("number", "file", "content", "missing"),
    [
        (
            "15",
            "own.yaml",
            "SOLUTION  - {incast: h0, bytes_per_sender: 4KiB}\n",
            "own.yaml has 2 items of traffic",
        ),
        ("24", "alerts.yaml", "groups:\n", "alerts.yaml has no alert StormRoot"),
        ("24", "alerts.yaml", "groups: [{name: mine}]\n", "alerts.yaml has no alert StormRoot"),
    ],
)
def test_files_that_are_odd_lack_something(number: str, file: str, content: str, missing: str, tmp_path: Path) -> None:
    if number == "24" and shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    lab = find_lab(number)
    starter_and_solution(lab, tmp_path / "work")
    path = tmp_path / "work" / file
    path.write_text(content.replace("SOLUTION", path.read_text()))
    found = list(outcomes(exercise_of(lab), Work(tmp_path / "work")))
    assert any(missing in (each.missing or "") for each in found)


def test_programs_of_lab_21_are_where_it_has_them(tmp_path: Path) -> None:
    lab = find_lab("21")
    starter_and_solution(lab, tmp_path / "work")
    scenario = tmp_path / "work" / "scenario.yaml"
    scenario.write_text(scenario.read_text().replace("others:", "h1:"))
    assert {each.missing for each in outcomes(exercise_of(lab), Work(tmp_path / "work"))} == {
        "scenario.yaml has programs on h0, h1, where the exercise has h0, h1, h2, h3"
    }


def test_a_deadlock_is_what_the_solution_of_lab_12_lacks(tmp_path: Path) -> None:
    lab = find_lab("12")
    starter_and_solution(lab, tmp_path / "work")
    own = tmp_path / "work" / "own.yaml"
    own.write_text(own.read_text().replace("up_down", "dimension_order_one_lane"))
    (tmp_path / "work" / "answers.yaml").write_text("longest_ring_with_one_lane: 5\n")
    found = [each.missing or "" for each in outcomes(exercise_of(lab), Work(tmp_path / "work"))]
    assert found[:3] == ["", "", ""]
    assert "make a cycle of buffers" in found[3]
    assert found[4] == "rings of 5 have a cycle of buffers"
    own.write_text(own.read_text().replace("dimension_order_one_lane", "layered"))
    found = [each.missing or "" for each in outcomes(exercise_of(lab), Work(tmp_path / "work"))]
    assert found[2].startswith("own.yaml has credits in the classes [3, 4")


def test_a_move_takes_as_long_in_lab_28_as_on_its_page(tmp_path: Path) -> None:
    lab = find_lab("28")
    starter_and_solution(lab, tmp_path / "work")
    own = tmp_path / "work" / "own.yaml"
    own.write_text(own.read_text().replace("cost: 2min", "cost: 1s"))
    (tmp_path / "work" / "answers.yaml").unlink()
    found = [each.missing or "" for each in outcomes(exercise_of(lab), Work(tmp_path / "work"))]
    assert found[0] == ""
    assert all("migration.cost of own.yaml is 1 s" in each for each in found[1:3])


PORT = "weft_port_queue_depth_bytes > 20000"
HELD = "rate(weft_port_paused_seconds_total[30s]) * on() group_left() weft_dilation_ratio > 0.1"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize(
    ("expression", "missing"),
    [
        (PORT, {2: "dilation of 1000: it fires"}),
        (f"{PORT} unless on(switch, port, peer) {HELD.replace('> 0.1', '> 0')}", {3: "it does not fire"}),
        (
            f"{PORT} unless on(switch, port, peer) {HELD.replace(' * on() group_left() weft_dilation_ratio', '')}",
            {2: "dilation of 1000: it fires"},
        ),
        (f"count({PORT}) > 0", {1: "it fires at (no switch):(no port)", 2: "it fires"}),
        (f"{PORT} unless on(switch) {HELD}", {2: "it fires at no port"}),
        ("weft_port_queue_depth_bytes >", dict.fromkeys(range(5), "promtool says: Checking")),
    ],
)
def test_each_alert_of_lab_24_lacks_something(expression: str, missing: dict[int, str], tmp_path: Path) -> None:
    rule = f"alert: StormRoot, expr: '{expression}', for: 10s"
    (tmp_path / "alerts.yaml").write_text(f"groups: [{{name: mine, rules: [{{{rule}}}]}}]\n")
    found = list(outcomes(exercise_of(find_lab("24")), Work(tmp_path)))
    assert {number for number, each in enumerate(found) if each.missing} == set(missing)
    for number, text in missing.items():
        assert text in str(found[number].missing)
