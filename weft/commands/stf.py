"""`weft stf`: run p4lang's STF scripts on Weft's compiler and switch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from weft.cli import EXISTING_FILE
from weft.commands.coverage import coverage_option, show_coverage
from weft.compiler import CompileError, compile_file
from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError, translated
from weft.switch.coverage.model import merged
from weft.switch.stf.cases import Case, Outcome, Verdict, find_cases
from weft.switch.stf.errors import ProgramRefusedError, StfError
from weft.switch.stf.report import as_json, print_outcome, print_table
from weft.switch.stf.runner import DEFAULT_TIMEOUT_S, run_cases
from weft.switch.stf.target import SWITCH_NAMES, SwitchName
from weft.system.consoles import make_console


@click.command()
@click.argument("program", type=EXISTING_FILE, required=False)
@click.argument("script", type=EXISTING_FILE, required=False)
@click.option(
    "--all",
    "directory",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Every NAME.stf in DIR and the folders below, with a NAME.p4 next to it.",
)
@click.option("--switch", type=click.Choice(SWITCH_NAMES), default="native", show_default=True, help="What runs them.")
@click.option("--json", "print_json", is_flag=True, help="Print JSON with every reason in full.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_TIMEOUT_S,
    show_default=True,
    help="Seconds that a case may take, compilation included.",
)
@coverage_option
def stf(
    program: Path | None,
    script: Path | None,
    directory: Path | None,
    switch: SwitchName,
    print_json: bool,
    timeout_s: float,
    coverage_directory: Path | None,
) -> int:
    """Run SCRIPT (STF) on PROGRAM (v1model), or all the cases of a directory.

    Each case passes, fails, or is refused: its program or script uses what is not supported.
    """
    covered = coverage_directory is not None
    if covered and switch != "native":
        raise EnvironmentLacksError(f"the {switch} counts nothing", place="--coverage", valid="--switch native")
    cases = _cases(program, script, directory)
    outcomes = list(run_cases(cases, switch, compile_case, timeout_s, covered=covered))
    if print_json:
        click.echo(json.dumps(as_json(outcomes, switch), indent=2))
    elif directory is None:
        print_outcome(outcomes[0])
    else:
        print_table(outcomes, make_console())
    if coverage_directory is not None:
        found = merged(each for outcome in outcomes for each in outcome.coverage)
        show_coverage(coverage_directory, found, make_console(stderr=print_json))
    return exit_code(outcomes)


def _cases(program: Path | None, script: Path | None, directory: Path | None) -> list[Case]:
    if directory is not None:
        if program is not None:
            raise click.UsageError("give a program and a script, or --all DIR, not both")
        with translated(StfError, BadInputError):
            return find_cases(directory)
    if program is None or script is None:
        raise click.UsageError("give a program and its script, or --all DIR")
    return [Case(program, script)]


def compile_case(program: Path) -> str:
    """BMv2 JSON of a P4 source file, by Weft's compiler. Raises ProgramRefusedError with its errors."""
    try:
        return compile_file(program).json_text()
    except CompileError as error:
        errors = [each.header() for each in error.diagnostics if each.severity == "error"]
        raise ProgramRefusedError(errors) from None


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """1 if a case failed; 3 if none failed but none passed either: nothing was tried; else 0."""
    verdicts = {outcome.verdict for outcome in outcomes}
    if Verdict.FAIL in verdicts:
        return CheckFailedError.exit_code
    return 0 if Verdict.PASS in verdicts else BadInputError.exit_code
