"""Write docs/papers.md: the verdicts of all papers, from the studies' claims and the recorded measured values.

    .venv/bin/python benchmarks/papers_page.py [DIR…]

Each DIR is the --out of a `weft paper` that has ended: its measured values replace those of its paper in
benchmarks/papers.json. A reduced run does not replace a full one. Without DIR the page is written anew.
The text of the page is benchmarks/papers.md.in.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from string import Template

from weft.papers.recorded import Recorded, paper_lines, read_recorded, verdict_lines, write_recorded
from weft.papers.result import read_paper
from weft.papers.study import Scale
from weft.paths import ROOT

BENCHMARKS = ROOT / "benchmarks"
VALUES, TEMPLATE, PAGE = BENCHMARKS / "papers.json", BENCHMARKS / "papers.md.in", ROOT / "docs" / "papers.md"


def page() -> str:
    """Return the page that follows from what is recorded."""
    recorded = read_recorded(VALUES)
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        verdicts="\n".join(verdict_lines(recorded)), papers="\n".join(paper_lines(recorded)).rstrip()
    )


def record(directory: Path) -> None:
    """Keep the measured values of a finished run."""
    recorded = read_recorded(VALUES) if VALUES.exists() else {}
    result = read_paper(directory)
    kept = recorded.get(result.name)
    if kept is not None and kept.scale is Scale.FULL and result.scale is Scale.REDUCED:
        return
    recorded[result.name] = Recorded(result.scale, result.measured, tuple(result.notes))
    write_recorded(VALUES, recorded)


def main() -> None:
    """Record runs and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="*", type=Path, metavar="DIR")
    for directory in parser.parse_args().directories:
        record(directory)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
