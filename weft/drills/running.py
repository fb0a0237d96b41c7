"""Runs drills in a directory, and writes what they came to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft.drills.drill import Drill, DrillPlan
from weft.errors import BadInputError, WeftError
from weft.quantities.units import PS_PER_US
from weft.quantities.yaml_files import yaml_text
from weft.results.report_parts import Cell, ReportTable
from weft.run.spec import run_spec
from weft.scenario import Change, Scenario, anchor_paths, apply_changes, parse_scenario, read_mapping
from weft.scenario.dotted import plain
from weft.scenario.drill import drill_section
from weft.system.writing import written_whole
from weft.trials import TrialProgress, TrialRunner

JSON_FILE = "drills.json"
_NOT_OF_TRIALS = ("workers", "grpc")
_NOT_OF_MEASUREMENTS = ("cluster", "drill")


@dataclass(frozen=True)
class DrillReport:
    """All drills of a scenario, in their order."""

    name: str
    seed: int
    drills: Sequence[Drill]

    @property
    def broken(self) -> Sequence[Drill]:
        """Return the drills in which the objective did not hold, those with the fewest faults first."""
        return sorted(
            (each for each in self.drills if not each.holds), key=lambda each: (len(each.smallest), each.number)
        )

    @property
    def ok(self) -> bool:
        """Return whether the objective held in all drills."""
        return not self.broken


def run_drills(
    scenario: Path,
    changes: Sequence[Change],
    directory: Path,
    count: int,
    workers: int | None = None,
    progress: TrialProgress | None = None,
) -> DrillReport:
    """Run `count` drills of a scenario under the virtual clock; write drills.json and the smallest broken scenarios.

    The scenario's seed draws the faults. Drills that have finished in the directory before are not repeated.

    Raises:
        BadInputError: the scenario is not valid, has no traffic, or cannot have the faults that it asks for.
        WeftError: a drill could not be run.
    """
    kept, parsed = virtual_scenario(scenario, changes)
    if not parsed.traffic:
        raise BadInputError("the scenario has no traffic, so faults meet nothing", place=f"{scenario}: traffic")
    spec = run_spec(parsed)
    plan = DrillPlan(kept, spec.fabric, drill_section(parsed), bool(parsed.pfc.classes), parsed.seed)
    procedures = {f"drill {number}": plan.procedure(number) for number in range(1, count + 1)}
    found = TrialRunner(directory, workers, progress).run(procedures)
    drills: list[Drill] = []
    for each in found.values():
        if isinstance(each, WeftError):
            raise each
        drills.append(each)
    report = DrillReport(parsed.name, parsed.seed, sorted(drills, key=lambda each: each.number))
    _write(report, plan, directory)
    return report


def virtual_scenario(path: Path, changes: Sequence[Change]) -> tuple[dict[str, Any], Scenario]:
    """Return a scenario's tree for trials under the virtual clock, and the scenario. Raises BadInputError."""
    tree = read_mapping(path, "a scenario")
    anchor_paths(tree, path.parent)
    options = apply_changes(tree, changes)
    kept = {key: value for key, value in plain(tree).items() if key not in _NOT_OF_TRIALS} | {"clock": "virtual"}
    return kept, parse_scenario(kept, str(path), units_required=True, options=options)


def measured_tree(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's tree for measurements, without the sections that say what is measured."""
    return {key: value for key, value in tree.items() if key not in _NOT_OF_MEASUREMENTS}


def _write(report: DrillReport, plan: DrillPlan, directory: Path) -> None:
    for drill in report.broken:
        lines = [f"# Drill {drill.number}: {'; '.join(drill.judgement.broken)}", f"#   weft run {scenario_file(drill)}"]
        text = "\n".join(lines) + "\n" + yaml_text(plan.tree_with(drill.smallest))
        with written_whole(directory / scenario_file(drill)) as partial:
            partial.write_text(text, encoding="utf-8")
    with written_whole(directory / JSON_FILE) as partial:
        partial.write_text(json.dumps(as_dict(report), indent=1) + "\n", encoding="utf-8")


def scenario_file(drill: Drill) -> str:
    """Return the name of the file with a broken drill's smallest scenario."""
    return f"broken-{drill.number}.yaml"


def as_dict(report: DrillReport) -> Mapping[str, Any]:
    """Return the report as data."""
    return {
        "name": report.name,
        "seed": report.seed,
        "ok": report.ok,
        "drills": [
            {
                "number": drill.number,
                "faults": [fault.words for fault in drill.faults],
                "kinds": [fault.kind for fault in drill.faults],
                "slowdown": drill.judgement.slowdown,
                "recovery_ps": drill.judgement.recovery_ps,
                "broken": list(drill.judgement.broken),
                "smallest": [fault.words for fault in drill.smallest],
            }
            for drill in report.drills
        ],
    }


def kinds_table(report: DrillReport) -> ReportTable:
    """Return by kind of fault how many drills had it, and in how many of these the objective broke by it."""
    had = Counter(kind for drill in report.drills for kind in {fault.kind for fault in drill.faults})
    broke = Counter(kind for drill in report.broken for kind in {fault.kind for fault in drill.smallest})
    rows: list[list[Cell]] = [
        [kind, had[kind], broke[kind]] for kind in sorted(had, key=lambda each: (-broke[each], each))
    ]
    return ReportTable("Faults", ["fault", "drills with it", "broken by it"], rows)


def figures_table(report: DrillReport) -> ReportTable:
    """Return how much longer traffic took, and how long recoveries."""
    rows = []
    slowdowns = [each.judgement.slowdown for each in report.drills if each.judgement.slowdown is not None]
    if slowdowns:
        rows.append(["times as long", *(f"{value:.3f}" for value in np.percentile(slowdowns, (50, 90, 99, 100)))])
    recoveries = [each.judgement.recovery_ps for each in report.drills if each.judgement.recovery_ps is not None]
    if recoveries:
        values = np.percentile(recoveries, (50, 90, 99, 100)) / PS_PER_US
        rows.append(["recovery (us)", *(f"{value:.1f}" for value in values)])
    return ReportTable("Over all drills", ["figure", "median", "90 %", "99 %", "largest"], rows)


def broken_table(report: DrillReport, most: int = 20) -> ReportTable:
    """Return the drills that broke the objective, and the fewest faults that do."""
    rows: list[list[Cell]] = [
        [drill.number, "; ".join(fault.words for fault in drill.smallest), "; ".join(drill.judgement.broken)]
        for drill in report.broken[:most]
    ]
    note = f"and {len(report.broken) - most} more" if len(report.broken) > most else ""
    return ReportTable("Broken", ["drill", "by the least of its faults", "what broke"], rows, note)


def verdict(report: DrillReport) -> str:
    """Return the outcome in a sentence."""
    count, broken = len(report.drills), len(report.broken)
    if not broken:
        return f"The objective held in all of {count:,} drills."
    first = report.broken[0]
    return (
        f"The objective broke in {broken:,} of {count:,} drills ({broken / count:.1%}). The smallest scenario that "
        f"breaks it: {'; '.join(fault.words for fault in first.smallest)} ({scenario_file(first)})."
    )
