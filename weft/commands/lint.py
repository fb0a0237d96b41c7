"""`weft lint`: settings of scenarios that cannot work together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from weft.cli import SCENARIO_FILE
from weft.commands.scenario_options import changes_of, scenario_options

if TYPE_CHECKING:
    from weft.run.lint import Finding
    from weft.scenario import Change, Scenario


@click.command()
@click.argument("scenarios", type=SCENARIO_FILE, nargs=-1, required=True, metavar="SCENARIO…")
@scenario_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Lines for people, or an object for scripts.",
)
def lint(scenarios: tuple[Path, ...], form: Literal["text", "json"], **overrides: object) -> int:
    """Find settings of scenarios and sweeps that are valid one by one, but cannot work together.

    Nothing is run. Each finding has its place, what follows from it, and values that mend it. `weft run` prints the
    same findings before it begins.

    Exits with 1 if there is a finding.
    """
    from weft.quantities.readable import counted
    from weft.system.streams import printable

    changes = changes_of(overrides)
    found = [(path, findings_in_file(path, changes)) for path in scenarios]
    count = sum(len(findings) for _, findings in found)
    if form == "json":
        files = [{"scenario": str(path), "findings": [each.as_dict() for each in own]} for path, own in found]
        print(json.dumps({"findings": count, "scenarios": files}, indent=1))
        return int(count > 0)
    for _, findings in found:
        for finding in findings:
            # The line may quote an untrusted file.
            click.echo(f"{printable(finding.line, kept=_LAYOUT)} [{finding.rule}]")
    total = f"no finding in {counted(len(scenarios), 'scenario')}"
    if count:
        total = f"{counted(count, 'finding')} in {counted(len(scenarios), 'scenario')}"
    click.echo(total)
    return int(count > 0)


_LAYOUT = "\n\t"


def findings_in_file(path: Path, changes: Sequence[Change]) -> list[Finding]:
    """Return the distinct findings in a scenario, or in all points of a sweep."""
    from weft.run.lint.checked import findings_in

    found: dict[tuple[str, str, str], Finding] = {}
    for load in _scenarios_of(path, changes):
        for each in findings_in(load):
            found.setdefault((each.rule, each.key, each.consequence), each)
    return list(found.values())


def _scenarios_of(path: Path, changes: Sequence[Change]) -> Iterator[Callable[[], Scenario]]:
    """Yield what loads a scenario, or each point of a sweep."""
    from weft.errors import BadInputError
    from weft.quantities.yaml_files import read_mapping
    from weft.scenario import parse_scenario
    from weft.scenario.network_file import load_scenario_or_network
    from weft.sweeps.plan import SweepPlan

    def whole() -> Scenario:
        return load_scenario_or_network(path, changes, "virtual")[0]

    try:
        is_sweep = path.suffix != ".json" and "scenario" in read_mapping(path, "a sweep or a scenario")
        points = SweepPlan.read(path, (), changes).points() if is_sweep else []
    except BadInputError as error:
        yield partial(_refuse, error)
        return
    if not points:
        yield whole
    for point in points:
        place = f"{path}, {point.label}"
        yield partial(parse_scenario, point.tree, place, units_required=True)


def _refuse(error: Exception) -> Scenario:
    raise error
