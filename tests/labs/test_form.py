"""Every lab has the same form: a goal, steps, questions, and an answer to each."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.errors import BadInputError
from weft.labs.page import numbers_of_answers, read_lab_page
from weft.paths import ROOT
from weft.system.shipped_labs import CHECK_FILE, SOLUTION

LABS = sorted(page.parent for page in (ROOT / "labs").glob("*/README.md"))


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_lab_says_its_goal_and_asks_questions_that_are_answered(lab: Path) -> None:
    page = read_lab_page(lab / "README.md")
    assert page.title.startswith(f"Lab {int(lab.name[:2])}: ")
    assert page.sections[1].title == "Goal"
    assert page.section("Goal").blocks
    assert any(block.language == "console" for block in page.section("Exercise").blocks)
    assert "weft check" in (lab / "README.md").read_text(encoding="utf-8")
    assert (lab / CHECK_FILE).is_file()
    assert any((lab / SOLUTION).iterdir())
    steps = [section for section in page.sections[2:] if section.title not in ("Questions", "Exercise")]
    assert any(block.language == "console" for section in steps for block in section.blocks)
    assert len(page.questions) >= 2
    assert all("?" in question for question in page.questions)
    assert numbers_of_answers(lab / "solution.md") == list(range(1, len(page.questions) + 1))
    assert "](solution.md)" in page.section("Questions").blocks[-1].source


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_lab_is_in_the_course(lab: Path) -> None:
    assert f"](../labs/{lab.name}/README.md)" in (ROOT / "docs" / "course.md").read_text(encoding="utf-8")


def test_questions_are_the_items_of_the_list(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# Lab 1: x\n\n## Questions\n\n1. What is\n   this?\n2. And `that`?\n\n   ```\n   code\n   ```\n")
    assert read_lab_page(page).questions == ("What is\nthis?", "And `that`?\n\n```\ncode\n```")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Words\n", "README.md:1: a lab's page begins with its title"),
        ("", "README.md:1: a lab's page begins with its title"),
        ("# A\n\n## Goal\n", r"0 sections 'Questions', where one is needed \(there are: 'Goal'\)"),
        ("# A\n\n## Questions\n\nNone.\n", "has 0 numbered lists, not one"),
    ],
)
def test_a_page_of_another_form_is_refused(text: str, message: str, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(text)
    with pytest.raises(BadInputError, match=message):
        _ = read_lab_page(page).questions
