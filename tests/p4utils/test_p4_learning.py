"""The solutions of nsg-ethz/p4-learning, of which WEFT_P4_LEARNING names a clone, by their network.py in Mininet."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from solutions import NOT_HERE, SOLUTIONS, Solution

from weft.paths import DOCS_DIRECTORY
from weft.shims.writing import PROGRAMS, write_shims

CLONE = Path(os.environ.get("WEFT_P4_LEARNING", "")) / "exercises"
PAGE = DOCS_DIRECTORY / "p4-courses.md"


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.skipif(shutil.which("mnexec") is None, reason="needs Mininet")
@pytest.mark.skipif(
    not os.environ.get("WEFT_P4_LEARNING"), reason="WEFT_P4_LEARNING names no clone of nsg-ethz/p4-learning"
)
@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda each: each.name)
def test_a_solution_does_what_its_readme_says(solution: Solution, tmp_path: Path) -> None:
    folder = tmp_path / "solution"
    shutil.copytree(CLONE / solution.folder / "solution", folder)
    tools = tmp_path / "tools"
    write_shims(tools)
    done = subprocess.run(
        [tools / PROGRAMS / "python3", solution.network],
        cwd=folder,
        input="\n".join([*solution.typed, "exit", ""]),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        timeout=280,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(solution.shows, done.stdout), done.stdout


def rows() -> dict[str, str]:
    """Return the page's table: what each solution does, by its name."""
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("## The solutions of p4-learning") :].split("\n## ")[0] if "## The sol" in text else ""
    found = re.findall(r"^\| ([0-9][^|]*) \| ([^|]*) \|$", section, re.MULTILINE)
    return {name.strip(): does.strip() for name, does in found}


def test_the_page_has_each_solution_and_why_others_do_not_work() -> None:
    assert rows() == {each.name: each.does for each in SOLUTIONS} | NOT_HERE
