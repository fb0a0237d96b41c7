"""Write docs/decision.md and its drawings from the record of benchmarks/decision_runs.py.

    .venv/bin/python benchmarks/decision_page.py

The text of the page is benchmarks/decision.md.in; every figure comes from benchmarks/decision.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from bar_chart import Bar, bar_chart
from decision_runs import RECORD

from weft.paths import ROOT
from weft.quantities.readable import format_size
from weft.quantities.units import PS_PER_US

TEMPLATE = ROOT / "benchmarks" / "decision.md.in"
PAGE = ROOT / "docs" / "decision.md"
PICTURES = ROOT / "docs" / "pictures"
_STEP = "training step"
_HOURS_PER_MILLION = 1_000_000 / 3600 / 1e12

Record = Mapping[str, Any]


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; columns but the first are numbers."""
    lines = ["| " + " | ".join(headings) + " |", "|---|" + "--:|" * (len(headings) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _us(time_ps: float) -> str:
    return f"{time_ps / PS_PER_US:,.0f}"


def _fabrics(record: Record) -> list[Record]:
    return list(record["fabrics"].values())


def useful_cost(record: Record, fabric: Record) -> float:
    """Return the price of a million steps that are kept, on all accelerators of the fabric."""
    step_ps = fabric["jobs"][_STEP]["time_ps"]
    return float(fabric["cost"]["kept_hour"] * record["accelerators"] * step_ps * _HOURS_PER_MILLION)


def survived(fabric: Record) -> int:
    """Return with how many of the failures the step ends."""
    return sum(not each["error"] for each in fabric["failures"].values())


def verdicts(record: Record) -> str:
    """Return the table of verdicts, one row for each fabric."""
    kinds = len(record["failures"])
    rows = []
    for fabric in _fabrics(record):
        step = fabric["jobs"][_STEP]["time_ps"]
        slowest = min(each["speed"] for each in fabric["failures"].values())
        switch_keys = sum(each["keys"] for each in fabric["operators"] if each["side"] == "switches")
        host_keys = sum(each["keys"] for each in fabric["operators"] if each["side"] == "hosts")
        rows.append(
            [
                fabric["title"],
                _us(step),
                f"{survived(fabric)} of {kinds}",
                "ends the job" if not slowest else f"{slowest:.0%}",
                _us(fabric["tolerance"]["tolerated_ps"]),
                f"{useful_cost(record, fabric):,.2f}",
                f"{switch_keys} + {host_keys}",
            ]
        )
    headings = (
        "fabric",
        "step (µs)",
        "failures survived",
        "speed with the worst",
        f"latency for {record['longer']:.0%} (µs)",
        "a million kept steps ($)",
        "settings of switches + hosts",
    )
    return table(headings, rows)


def jobs(record: Record) -> str:
    """Return the table of times, next to the ideal ones."""
    rows = [
        ["*ideal*", *(_us(time_ps) for time_ps in record["ideal_ps"].values())],
        *(
            [
                fabric["title"],
                *(
                    f"{_us(found['time_ps'])} ({found['time_ps'] / record['ideal_ps'][name]:.2f})"
                    for name, found in fabric["jobs"].items()
                ),
            ]
            for fabric in _fabrics(record)
        ),
    ]
    return table(["time (µs), and times the ideal", *record["ideal_ps"]], rows)


_COUNTED: Mapping[str, Callable[[int], str]] = {
    "marks": "{:,}".format,
    "drops": "{:,}".format,
    "trimmed": "{:,}".format,
    "pauses": "{:,}".format,
    "retransmissions": "{:,}".format,
    "largest_queue_bytes": lambda value: format_size(value, digits=3),
}


def counters(record: Record) -> str:
    """Return what the fabrics counted with each job."""
    rows = [
        [f"{fabric['title']}: {name}", *(shown(found[key]) for key, shown in _COUNTED.items())]
        for fabric in _fabrics(record)
        for name, found in fabric["jobs"].items()
    ]
    headings = ["", "marks", "drops", "trimmed", "pauses", "sent again", "largest queue"]
    return table(headings, rows)


def failures(record: Record) -> str:
    """Return what each failure does on each fabric: what it costs once, and the speed from then on."""
    rows = []
    for kind, title in record["failures"].items():
        cells = []
        for fabric in _fabrics(record):
            found = fabric["failures"][kind]
            cells.append("**ends the job**" if found["error"] else f"{_us(found['stall_ps'])} µs, {found['speed']:.0%}")
        rows.append([title, *cells])
    return table(["failure", *(fabric["title"] for fabric in _fabrics(record))], rows)


def recoveries(record: Record) -> str:
    """Return from when a link failed until all that was sent again had been acknowledged, and packets sent again."""
    rows = []
    for kind, title in record["failures"].items():
        cells = []
        for fabric in _fabrics(record):
            found = fabric["failures"][kind]
            if found["error"]:
                cells.append("–")
                continue
            recovery = "" if found["recovery_ps"] is None else f"{_us(found['recovery_ps'])} µs, "
            cells.append(f"{recovery}{found['retransmissions']:,} packets")
        rows.append([title, *cells])
    return table(["failure", *(fabric["title"] for fabric in _fabrics(record))], rows)


def money(record: Record) -> str:
    """Return prices, goodput, and what an hour and a million steps cost."""
    rows = [
        [
            fabric["title"],
            f"{fabric['cost']['network']:,.0f}",
            f"{fabric['cost']['accelerator_hour']:.3f}",
            f"{fabric['cost']['kept_share']:.2%}",
            f"{fabric['cost']['kept_hour']:.3f}",
            f"{useful_cost(record, fabric):,.2f}",
        ]
        for fabric in _fabrics(record)
    ]
    headings = ("fabric", "network ($)", "$ an hour", "kept work", "$ a kept hour", "$ a million kept steps")
    return table(headings, rows)


def operators(record: Record) -> str:
    """Return the parts of each design that have to be set, where, and how many settings they have."""
    lines = ["| fabric | on switches | on hosts |", "|---|---|---|"]
    for fabric in _fabrics(record):
        sides = {
            side: "; ".join(
                f"`{each['part']}` ({len(each['set'])} of {each['keys']} set)"
                for each in fabric["operators"]
                if each["side"] == side
            )
            for side in ("switches", "hosts")
        }
        lines.append(f"| {fabric['title']} | {sides['switches'] or '–'} | {sides['hosts'] or '–'} |")
    return "\n".join(lines)


def tolerance(record: Record) -> str:
    """Return the latency that the step tolerates: by runs, and in closed form."""
    rows = []
    for fabric in _fabrics(record):
        found = fabric["tolerance"]
        formula = "–" if found["formula_ps"] is None else f"{found['formula_ps'] / PS_PER_US:,.2f}"
        rows.append(
            [
                fabric["title"],
                _us(found["time_ps"]),
                f"{found['latencies'] or 0:,.0f}",
                formula,
                f"{found['tolerated_ps'] / PS_PER_US:,.2f}",
                "–" if found["exceeded_ps"] is None else f"{found['exceeded_ps'] / PS_PER_US:,.2f}",
            ]
        )
    headings = (
        "fabric",
        "step (µs)",
        "messages in turn",
        "closed form (µs)",
        "holds, by runs (µs)",
        "too much, by runs (µs)",
    )
    return table(headings, rows)


def balancing(record: Record) -> str:
    """Return the permutation by ways of spreading RoCEv2's flows."""
    ideal_ps = record["ideal_ps"]["permutation"]
    rows = [
        [
            name,
            _us(found["time_ps"]),
            f"{found['time_ps'] / ideal_ps:.2f}",
            f"{found['pauses']:,}",
            f"{found['marks']:,}",
        ]
        for name, found in record["balancing"].items()
    ]
    return table(["RoCEv2 with PFC and DCQCN", "permutation (µs)", "times the ideal", "pauses", "marks"], rows)


def drawings(record: Record) -> dict[str, str]:
    """Return the drawings by the names of their files."""
    fabrics = record["fabrics"].items()
    time = [
        Bar(name, series, fabric["jobs"][name]["time_ps"] / record["ideal_ps"][name])
        for name in record["ideal_ps"]
        for series, fabric in fabrics
    ]
    speed = [
        Bar(kind, series, 100 * fabric["failures"][kind]["speed"])
        for kind in record["failures"]
        for series, fabric in fabrics
    ]
    return {
        "decision-jobs.svg": bar_chart("Time of jobs, times the ideal", time),
        "decision-failures.svg": bar_chart("Speed of training steps with a failure (%); 0: the job ends", speed),
    }


def page(record: Record) -> str:
    """Return the page that follows from the record."""
    size = record["size"]
    tables = (verdicts, jobs, counters, failures, recoveries, money, operators, tolerance, balancing)
    values = {each.__name__: each(record) for each in tables}
    wrong = sum(each["wrong"] or 0 for fabric in _fabrics(record) for each in fabric["failures"].values())
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        values,
        accelerators=record["accelerators"],
        hosts=record["accelerators"] // 4,
        leaves=size["leaves"],
        spines=size["spines"],
        alltoall=size["alltoall"],
        message=size["message"],
        incast=size["incast"],
        longer=f"{record['longer']:.0%}",
        wrong="none" if not wrong else f"{wrong:,}",
    )


def main() -> None:
    """Write the page and its drawings."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    PAGE.write_text(page(record), encoding="utf-8")
    for name, drawing in drawings(record).items():
        Path(PICTURES / name).write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
