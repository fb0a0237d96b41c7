"""Write docs/reports/: reports of `weft bench` on the fabrics of examples/bench, and one page that compares them.

    .venv/bin/python benchmarks/fabric_reports.py [DIR…]

Each DIR is the --out of a `weft bench` that has ended; its report takes the place of the one of the same suite and
fabric. The page that compares follows from the reports that are there. Without DIR only that page is written.
The text of the page is benchmarks/fabric_reports.md.in.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from weft.bench.model import read_report
from weft.bench.report_markdown import markdown
from weft.paths import ROOT

REPORTS = ROOT / "docs" / "reports"
PAGE, TEMPLATE = REPORTS / "index.md", Path(__file__).parent / "fabric_reports.md.in"
FABRICS = {
    "two-tier": "two tiers, RoCEv2 with DCQCN over PFC, 16 accelerators at 400 Gb/s",
    "rail-optimised": "rails, 2:1 oversubscribed, RoCEv2 with DCQCN over PFC, 32 accelerators at 400 Gb/s, four a host",
    "eight-planes": "eight planes of 100 Gb/s, MRC over switches that trim, 16 accelerators",
    "ultra-ethernet": "two tiers, Ultra Ethernet over switches that trim, 16 accelerators at 400 Gb/s",
}
SUITES = {"training": "Training", "inference": "Inference"}
_ABSENT = "–"


@dataclass(frozen=True)
class CommittedReport:
    """A report in docs/reports: its suite, fabric, and KPIs by name, test and condition."""

    suite: str
    fabric: str
    outcome: str
    kpis: dict[tuple[str, str, str], tuple[str, str]]

    @property
    def file(self) -> str:
        """Its file's name."""
        return f"{self.suite}-{self.fabric}.md"


def committed_reports() -> list[CommittedReport]:
    """Return the reports in docs/reports, by suite and in the fabrics' order."""
    places = [(suite, fabric) for suite in SUITES for fabric in FABRICS]
    return [
        _read(suite, fabric, (REPORTS / f"{suite}-{fabric}.md").read_text(encoding="utf-8"))
        for suite, fabric in places
        if (REPORTS / f"{suite}-{fabric}.md").exists()
    ]


def _read(suite: str, fabric: str, text: str) -> CommittedReport:
    outcome = re.search(r"profile (?:\w+): ([^.]*)\.", text)
    assert outcome is not None, f"{suite}-{fabric}.md: no outcome"
    table = text.split("## KPIs", 1)[1].split("\n## ", 1)[0]
    rows = [_cells(line) for line in table.splitlines() if line.startswith("| ")][1:]
    kpis = {(name, test, condition): (value, unit) for name, test, value, unit, condition in rows}
    return CommittedReport(suite, fabric, outcome[1], kpis)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def page() -> str:
    """Return the page that compares the committed reports."""
    reports = committed_reports()
    by_place = {(report.suite, report.fabric): report for report in reports}
    fabrics = ["| fabric | what it is | training | inference |", "|---|---|---|---|"]
    for fabric, what in FABRICS.items():
        links = " | ".join(_link(by_place.get((suite, fabric))) for suite in SUITES)
        fabrics.append(f"| [{fabric}](../../examples/bench/{fabric}.yaml) | {what} | {links} |")
    suites: list[str] = []
    for suite, title in SUITES.items():
        chosen = [report for report in reports if report.suite == suite]
        if chosen:
            suites += ["", f"## {title}", "", *_table(chosen)]
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        fabrics="\n".join(fabrics),
        suites="\n".join(suites),
        files="\n".join(report.file.removesuffix(".md") for report in reports),
    )


def _link(report: CommittedReport | None) -> str:
    return _ABSENT if report is None else f"[{report.outcome}]({report.file})"


def _table(reports: Sequence[CommittedReport]) -> Iterator[str]:
    yield f"| KPI | test | unit | condition | {' | '.join(report.fabric for report in reports)} |"
    yield f"|---|---|---|---|{'---:|' * len(reports)}"
    keys = dict.fromkeys(key for report in reports for key in report.kpis if report.kpis[key][0])
    order = {name: number for number, name in enumerate(dict.fromkeys(name for name, _, _ in keys))}
    for key in sorted(keys, key=lambda key: (order[key[0]], key[1])):
        name, test, condition = key
        found = [report.kpis.get(key) for report in reports]
        unit = next(each[1] for each in found if each is not None)
        values = [_ABSENT if each is None or not each[0] else each[0] for each in found]
        yield f"| {name} | {test} | {unit} | {condition} | {' | '.join(values)} |"


def main() -> None:
    """Take reports over and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="*", type=Path, metavar="DIR")
    REPORTS.mkdir(exist_ok=True)
    for directory in parser.parse_args().directories:
        report = read_report(directory)
        target = REPORTS / f"{report.suite}-{report.fabric}.md"
        target.write_text(markdown(report), encoding="utf-8", newline="")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
