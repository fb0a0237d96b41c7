"""How long the commands of each lab's page take: read from labs/durations.csv, said near the top of each page.

`benchmarks/lab_durations.py` measures them. Pages have the sentence between `<!-- made from labs/durations.csv -->` and
`<!-- end -->`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite, log
from pathlib import Path

from weft.cache.files import read_text
from weft.errors import BadInputError
from weft.paths import LABS_DIRECTORY

DURATIONS = LABS_DIRECTORY / "durations.csv"
_COLUMNS = ("lab", "virtual_s", "mininet_s")
_LIMIT_BYTES = 1 << 16
_STEPS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)
"""Durations that pages name: another machine differs by more than the next step."""
_PART = re.compile(
    r"^(?P<begin><!-- made from labs/durations\.csv -->\n).*?(?P<end><!-- end -->\n)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class LabDuration:
    """Seconds on two cores, with an empty cache: all commands of the page, and its run in Mininet, if it has one."""

    virtual_s: float
    mininet_s: float | None = None

    @property
    def sentence(self) -> str:
        """Return the sentence of the page, with rounded durations."""
        in_mininet = "" if self.mininet_s is None else f"; the run in Mininet takes about {rounded(self.mininet_s)}"
        virtual = f"In virtual time, the commands on this page take about {rounded(self.virtual_s)} on two cores"
        return f"{virtual}{in_mininet}."


def rounded(seconds: float) -> str:
    """Return the nearest named duration, by ratio: "10 s", "2 min"."""
    nearest = min(_STEPS_S, key=lambda step: abs(log(max(seconds, 0.1) / step)))
    if nearest < 60:
        return f"{nearest} s"
    return f"{nearest // 60} min" if nearest < 3600 else f"{nearest // 3600} h"


def read_durations(path: Path = DURATIONS) -> dict[str, LabDuration]:
    """Return the durations by lab. Raises BadInputError with the line if the file has another form."""
    try:
        rows = list(csv.reader(io.StringIO(read_text(path, _LIMIT_BYTES))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInputError(f"the durations of labs cannot be read: {error}", place=path) from error
    if not rows or tuple(rows[0]) != _COLUMNS:
        raise BadInputError(f"{path}:1: the columns are {','.join(_COLUMNS)}")
    found: dict[str, LabDuration] = {}
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(_COLUMNS):
            raise BadInputError(f"{path}:{number}: {len(row)} values, where {len(_COLUMNS)} are needed")
        lab, virtual, mininet = row
        if lab in found:
            raise BadInputError(f"{path}:{number}: lab '{lab}' has a line already")
        found[lab] = LabDuration(_seconds(virtual, path, number), _seconds(mininet, path, number) if mininet else None)
    return found


def _seconds(text: str, path: Path, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or value <= 0:
        raise BadInputError(f"{path}:{line}: '{text}' is not a number of seconds above 0")
    return value


def write_durations(durations: Mapping[str, LabDuration], path: Path = DURATIONS) -> None:
    """Write the durations, ordered by lab, with one decimal."""
    lines = [",".join(_COLUMNS)]
    for lab, each in sorted(durations.items()):
        lines.append(f"{lab},{each.virtual_s:.1f},{'' if each.mininet_s is None else f'{each.mininet_s:.1f}'}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def with_duration(text: str, duration: LabDuration, place: str) -> str:
    """Return a lab's page with its sentence made anew. Raises BadInputError unless it has one place for it."""
    text, count = _PART.subn(lambda part: f"{part['begin']}{duration.sentence}\n{part['end']}", text)
    if count != 1:
        raise BadInputError(
            f"{count} places for the duration, where one is needed: the lines "
            "'<!-- made from labs/durations.csv -->' and '<!-- end -->'",
            place=place,
        )
    return text


def pages_with_durations(durations: Mapping[str, LabDuration], folders: Iterable[Path]) -> dict[Path, str]:
    """Return the text of each lab's page, by path, with its duration; BadInputError for a lab without one."""
    pages = {}
    for folder in folders:
        page = folder / "README.md"
        if folder.name not in durations:
            raise BadInputError(
                f"lab '{folder.name}' has no line; measure it: benchmarks/lab_durations.py {folder.name}",
                place=DURATIONS,
            )
        pages[page] = with_duration(page.read_text(encoding="utf-8"), durations[folder.name], str(page))
    return pages
