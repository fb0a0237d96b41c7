"""Runs a scenario for a command: shows progress, saves and prints the results, chooses the exit code."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.clocks.virtual.processes import ALONE, Processes
from weft.commands.option_groups import with_options

if TYPE_CHECKING:
    from weft.results.limits import Limit
    from weft.results.losses import Traceable
    from weft.results.run_result import RunResult
    from weft.run.attached import Attached
    from weft.run.runner import Captures
    from weft.run.spec import RunSpec

report_options = with_options(
    click.option("--json", "as_json", is_flag=True, help="Print the results as JSON instead of tables."),
    click.option(
        "--require-valid-times",
        is_flag=True,
        help="Exit with 1 also if the machine served events too late for the times to mean anything.",
    ),
)


def run_and_show(
    spec: RunSpec,
    directory: Path | None,
    as_json: bool,
    require_valid_times: bool,
    captures: Captures | None = None,
    processes: Processes = ALONE,
    attached: Sequence[Attached] = (),
    traceable: Traceable | None = None,
) -> int:
    """Run, save the results into a directory (None: nowhere), print them and return the exit code.

    `attached` look on. Of several processes the first one shows progress, saves and prints. What the items before one
    that fails have found is saved and printed, too, before its error is raised. `traceable` is what `weft trace` is
    given to show packets that were lost.
    """
    from weft.commands.progress import make_progress
    from weft.results.printing import show_run
    from weft.run.runner import run_scenario

    # Now, so that a directory that cannot be written does not go unnoticed until the end of the run.
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)

    def keep(found: RunResult) -> None:
        path = found.save(directory) if directory is not None else None
        show_run(found, as_json, traceable, _limits(found, spec))
        if not as_json:
            _print_observed(found)
        if path is not None and not as_json:
            click.echo(f"\nresults up to the failure in {path}")

    try:
        if processes.count == 1:
            progress = make_progress()
            result = run_scenario(spec, progress, captures, directory, progress, attached=attached, keep=keep)
        else:
            say = make_progress() if processes.number == 0 else lambda _: None
            result = run_scenario(spec, say, captures, directory, processes=processes)
    except BaseException:
        # Nothing of ours where nothing was found; a directory that holds something stays.
        if directory is not None:
            with contextlib.suppress(OSError):
                directory.rmdir()
        raise
    if processes.number != 0:
        return exit_code(result, require_valid_times)
    path = result.save(directory) if directory is not None else None
    show_run(result, as_json, traceable, _limits(result, spec))
    if not as_json:
        _print_observed(result)
        times = result.wall_times_s
        click.echo(
            f"\nfabric up in {times['fabric_up']:.1f} s, {_first_collective(times)}all in {times['all']:.1f} s"
            + (f"; results in {path}" if path is not None else "")
        )
    result.require_complete()
    return exit_code(result, require_valid_times)


def _print_observed(run: RunResult) -> None:
    from weft.results.observed import print_observed
    from weft.system.consoles import make_console

    print_observed(make_console(), run.observations.tables, run.observations.file_format)


def _limits(run: RunResult, spec: RunSpec) -> list[Limit]:
    """Return what limited a run in which packets were lost, marked or held, or ranks waited; nothing for others."""
    from weft.results.limits import Evidence, limits_of

    evidence = Evidence(run, spec.fabric, run.observations.tables)
    return limits_of(evidence) if evidence.shows_trouble else []


def _first_collective(times_s: Mapping[str, float]) -> str:
    """Return when the first collective was done; nothing where there was none."""
    done_s = times_s.get("first_collective_done")
    return "" if done_s is None else f"first collective done after {done_s:.1f} s, "


def exit_code(result: RunResult, require_valid_times: bool) -> int:
    """Return 1 for wrong results, and for late events where valid times are required; else 0.

    Late events change when things happen, not what is computed: a run that verifies stays good without its times.
    """
    if not result.ok:
        return 1
    return int(require_valid_times and result.lateness is not None and not result.lateness.valid)
