"""`weft run`: a scenario from beginning to end."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.cli import SCENARIO_FILE
from weft.clocks.virtual.mpi import MpiProcesses, processes_here
from weft.clocks.virtual.processes import Processes
from weft.commands.coverage import coverage_option, show_coverage
from weft.commands.reporting import report_options, run_and_show
from weft.commands.scenario_options import (
    as_assignments,
    changes_of,
    metrics_option,
    packet_logs_option,
    scenario_options,
    web_option,
)
from weft.commands.several_processes import run_by_all
from weft.errors import BadInputError

if TYPE_CHECKING:
    from weft.run.attached import Attached


@click.command()
@click.argument("scenario", type=SCENARIO_FILE)
@scenario_options
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of results.json; default runs/…",
)
@click.option(
    "--pcap",
    "pcap_directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for a capture of every host's NICs.",
)
@click.option(
    "--pcap-switch",
    "pcap_switches",
    multiple=True,
    metavar="SWITCH|all",
    help="With --pcap: capture the ports of this switch as well; several may be given.",
)
@packet_logs_option
@coverage_option
@click.option(
    "--repeat",
    type=int,
    metavar="N",
    help="Run with N seeds, from the scenario's on, and print statistics; each run is in points/seed-SEED of --out.",
)
@report_options
@metrics_option
@web_option
def run(
    scenario: Path,
    out: Path | None,
    pcap_directory: Path | None,
    pcap_switches: tuple[str, ...],
    packet_logs: Path | None,
    coverage_directory: Path | None,
    repeat: int | None,
    as_json: bool,
    require_valid_times: bool,
    metrics_port: int | None,
    web: str | None,
    **overrides: object,
) -> int:
    """Build SCENARIO's fabric, run its traffic, check the results, take everything down.

    SCENARIO may be lab:NAME, a lab that ships with Weft (`weft labs`); or a network of p4lang's tutorials
    (topology.json) or of p4-utils (p4app.json), which runs under the virtual clock by default and pings between all
    hosts.

    Exits with 1 if a result differs from NumPy's. `mpirun -n N weft run` has N processes serve the fabric.

    With --repeat, runs under the virtual clock are made several at a time, those in real time one after the other; runs
    that fail, or with INVALID times, are named and left out of the statistics.
    """
    from weft.results.losses import Traceable
    from weft.results.run_result import RESULTS_FILE
    from weft.run.attached import require_virtual_clock
    from weft.run.runner import Captures, result_directory
    from weft.run.spec import run_spec
    from weft.scenario.network_file import load_scenario_or_network, what_is_not_done

    if pcap_switches and pcap_directory is None:
        raise click.UsageError("--pcap-switch needs --pcap DIR, where the captures go")
    if coverage_directory is not None and packet_logs is not None:
        raise click.UsageError("--coverage: not together with --packet-logs: each has switches run code of its own")
    if repeat is not None:
        single = {
            "--pcap": pcap_directory,
            "--packet-logs": packet_logs,
            "--coverage": coverage_directory,
            "--metrics": metrics_port,
            "--web": web,
        }
        if taken := [option for option, value in single.items() if value is not None]:
            raise click.UsageError(f"--repeat: not together with {', '.join(taken)}, which a single run has")
        return _repeated(scenario, overrides, repeat, out, as_json, require_valid_times)
    # What few runs ask for is imported for these: together it takes as long as half of the other modules.
    shown = coverage = None
    if metrics_port is not None or web is not None:
        from weft.live import AttachedShown, Place, Shown

        shown = Shown(metrics_port, None if web is None else Place.of(web), scenario.name)
    if coverage_directory is not None:
        from weft.run.coverage import RunCoverage

        coverage = RunCoverage()
    captures = Captures(pcap_directory, pcap_switches) if pcap_directory is not None else None

    def by_processes(processes: Processes) -> int:
        loaded, network = load_scenario_or_network(scenario, changes_of(overrides), "virtual")
        spec = run_spec(loaded)
        for line in [] if network is None else what_is_not_done(network, spec.options.clock == "virtual"):
            click.echo(line, err=True)
        if shown is not None:
            shown.require_clock(spec.options.clock)
        if coverage is not None:
            require_virtual_clock(spec.options.clock, "--coverage")
        directory = result_directory(spec, out) if processes.number == 0 else None
        if directory is not None and (directory / RESULTS_FILE).exists():
            click.echo(f"weft: {directory} has the results of another run, which this one replaces", err=True)
        attached: list[Attached] = [] if coverage is None else [coverage]
        if packet_logs is not None:
            from weft.run.packet_logs import PacketLogs

            attached.append(PacketLogs(packet_logs, lambda text: click.echo(text, err=True)))
        with contextlib.ExitStack() as stack:
            if shown is not None:
                attached.append(stack.enter_context(AttachedShown(shown, lambda text: click.echo(text, err=True))))
            options = tuple(as_assignments(overrides, clock=spec.options.clock))
            return run_and_show(
                spec,
                directory,
                as_json,
                require_valid_times,
                captures,
                processes,
                attached,
                Traceable(str(scenario), options),
            )

    processes = processes_here()
    if isinstance(processes, MpiProcesses):
        if packet_logs is not None:
            raise BadInputError(
                "a run of several processes logs nothing: leave it out, or mpirun", place="--packet-logs"
            )
        if coverage is not None:
            raise BadInputError(
                "a run of several processes counts nothing: leave it out, or mpirun", place="--coverage"
            )
        return run_by_all(processes, lambda: by_processes(processes))
    try:
        return by_processes(processes)
    finally:
        # Of a run that has failed, too.
        if coverage is not None and coverage_directory is not None and coverage.found:
            from weft.system.consoles import make_console

            show_coverage(coverage_directory, coverage.found, make_console(stderr=as_json))


def _repeated(
    scenario: Path,
    overrides: Mapping[str, object],
    count: int,
    out: Path | None,
    as_json: bool,
    require_valid_times: bool,
) -> int:
    from weft.commands.scenario_options import as_options
    from weft.commands.sweep_output import print_outcome, sweep_progress
    from weft.results.run_result import RESULTS_FILE
    from weft.run.runner import result_directory
    from weft.run.spec import run_spec
    from weft.scenario.network_file import load_scenario_or_network
    from weft.sweeps.axes import repeat_axis
    from weft.sweeps.repeated import run_repeated
    from weft.sweeps.repetitions import has_valid_times

    if isinstance(processes_here(), MpiProcesses):
        raise BadInputError("a run of several processes is made once: leave it out, or mpirun", place="--repeat")
    # Whatever is wrong with the scenario is said before anything runs.
    loaded, _ = load_scenario_or_network(scenario, changes_of(overrides), "virtual")
    spec = run_spec(loaded)
    axis = repeat_axis(spec.options.seed, count, "--repeat")
    directory = result_directory(spec, out)
    if (directory / RESULTS_FILE).exists():
        raise BadInputError("has the results of a single run: name another directory", place=directory)
    arguments = [str(scenario), *as_options({**overrides, "seed": None})]
    at_once = 1
    if spec.options.clock == "virtual":
        at_once = max(1, len(os.sched_getaffinity(0)) // max(1, spec.options.workers or 1))
    with sweep_progress() as progress:
        result = run_repeated(spec.name or "run", axis, arguments, directory, at_once, progress)
    if as_json:
        statistics = {} if result.repetitions is None else result.repetitions.as_dict()
        print(json.dumps({"rows": result.rows, **statistics}, indent=1))
    else:
        print_outcome(result, "run")
    is_valid = all(has_valid_times(row) for row in result.rows)
    return 0 if result.ok and (is_valid or not require_valid_times) else 1
