"""The labs that ship with Weft: their names, titles and files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weft.errors import BadInputError
from weft.hints import did_you_mean
from weft.paths import LABS_DIRECTORY

LAB_PREFIX = "lab:"
CHECK_FILE = "check.py"
"""File with the goals of a lab's exercise (`weft.exercises`)."""
SOLUTION = "solution"
"""Folder with files that reach the goals of a lab's exercise."""
LAB_MARK = ".weft-lab"
"""File in a copy that names its lab."""


@dataclass(frozen=True)
class ShippedLab:
    """A lab: its name (the folder's name), the title of its page, and its folder."""

    name: str
    title: str
    folder: Path

    @property
    def scenarios(self) -> list[str]:
        """Names of its scenarios and sweeps, scenario.yaml first."""
        names = sorted(path.name for path in self.folder.glob("*.yaml"))
        return sorted(names, key=lambda name: name != "scenario.yaml")


def shipped_labs() -> list[ShippedLab]:
    """Return all labs, by number."""
    return [
        ShippedLab(page.parent.name, _title(page), page.parent) for page in sorted(LABS_DIRECTORY.glob("*/README.md"))
    ]


def find_lab(name: str) -> ShippedLab:
    """Return a lab by name or number ("1" or "01" for "01-allreduce"); BadInputError lists the valid ones."""
    labs = {lab.name: lab for lab in shipped_labs()}
    numbers = {lab.name.partition("-")[0]: lab for lab in labs.values()}
    found = labs.get(name) or numbers.get(name.zfill(2))
    if found is None:
        raise BadInputError(f"there is no lab '{name}'; {did_you_mean(name, labs)}")
    return found


def lab_file(name: str) -> Path:
    """Return the scenario of a lab: its scenario.yaml, or the file after the slash ("01-allreduce/bmv2.yaml").

    A lab with a single file needs no slash. Raises BadInputError, which lists the valid names.
    """
    lab_name, slash, file = name.partition("/")
    lab = find_lab(lab_name)
    scenarios = lab.scenarios
    if not slash and ("scenario.yaml" in scenarios or len(scenarios) == 1):
        return lab.folder / scenarios[0]
    if file not in scenarios:
        valid = ", ".join(f"{LAB_PREFIX}{lab.name}/{each}" for each in scenarios)
        wrong = f"has no scenario '{file}'" if slash else "has several scenarios"
        raise BadInputError(f"lab '{lab.name}' {wrong}", valid=valid)
    return lab.folder / file


def names_of_labs(beginning: str = "") -> list[str]:
    """Return the names of labs that begin so."""
    return [lab.name for lab in shipped_labs() if lab.name.startswith(beginning)]


def names_of_scenarios(beginning: str = "") -> list[str]:
    """Return the texts that `lab_file` takes behind LAB_PREFIX, with it, that begin so.

    Files of a lab that has a scenario.yaml are returned once its name and the slash are there.
    """
    found = []
    for lab in shipped_labs():
        name = f"{LAB_PREFIX}{lab.name}"
        files = [f"{name}/{file}" for file in lab.scenarios]
        stands_for_file = "scenario.yaml" in lab.scenarios or len(files) == 1
        found += [name] if stands_for_file and not beginning.startswith(f"{name}/") else files
    return [name for name in found if name.startswith(beginning)]


def _title(page: Path) -> str:
    """Return the first heading without "Lab 1:"."""
    heading = page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
    return heading.partition(": ")[2] or heading
