"""Runs a scenario: builds its fabric, runs its traffic, collects the results."""

from __future__ import annotations

import datetime
import itertools
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weft.clocks.lab import Progress
from weft.clocks.virtual.processes import ALONE, Processes
from weft.clocks.watching import Watcher
from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError, WeftError
from weft.hints import did_you_mean
from weft.quantities.readable import format_size
from weft.results.model import ItemFailure
from weft.results.run_result import RunResult
from weft.run.attached import Attached
from weft.run.fabric import Fabric
from weft.run.several_processes import require_served_by
from weft.run.spec import RunSpec, run_spec
from weft.scenario import (
    KeyProblem,
    Scenario,
)
from weft.topologies import FabricSpec


def require_memory(spec: RunSpec) -> None:
    """Raise EnvironmentLacksError unless the inputs of all hosts, which exist at once, fit in memory."""
    ranks = spec.fabric.rank_count
    needed = sum(item.data_bytes(ranks) for item in spec.traffic) * ranks
    has = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > has:
        raise EnvironmentLacksError(
            f"traffic: the data of {ranks} ranks take {format_size(needed)} of memory, the machine has "
            f"{format_size(has)}; data: lengths needs none"
        )


ALL_SWITCHES = "all"


@dataclass(frozen=True)
class Captures:
    """Captures of a run in `directory`: HOST-planeN.pcap for every NIC of the hosts, and every port of `switches`.

    Files of switches are named by interface, SWITCH-ethN.pcap; `switches` may contain "all".
    """

    directory: Path
    switches: tuple[str, ...] = ()

    def checked(self, topology: FabricSpec, target: str) -> Captures:
        """Return it with "all" expanded. Raises BadInputError for unknown switches, EnvironmentLacksError on BMv2."""
        if not self.switches:
            return self
        if target != "embedded":
            raise EnvironmentLacksError(f"{target} does not capture the ports of switches: sniff their interfaces")
        names = [switch.name for switch in topology.switches]
        for name in self.switches:
            if name not in (*names, ALL_SWITCHES):
                raise BadInputError(f"unknown switch '{name}'; {did_you_mean(name, names)}", place="--pcap-switch")
        return replace(self, switches=tuple(names if ALL_SWITCHES in self.switches else self.switches))


def run_scenario(
    scenario: Scenario | RunSpec,
    progress: Progress = lambda _: None,
    captures: Captures | None = None,
    directory: Path | None = None,
    watcher: Watcher | None = None,
    processes: Processes = ALONE,
    attached: Sequence[Attached] = (),
    keep: Callable[[RunResult], None] | None = None,
) -> RunResult:
    """Run everything in a scenario and return the results.

    Args:
        scenario: the scenario, which is checked first, or its checked description.
        progress: called with the current activity, in words.
        captures: captures to make, and their directory.
        directory: existing directory for captures and states that the scenario asks for.
        watcher: shown the progress of runs, from a separate thread; not with several processes.
        processes: processes that run the fabric together, under the virtual clock; all get the result.
        attached: observers of the run, which do not change results.
        keep: called with the results so far when a traffic item fails, before its error is raised; not with several
            processes, as the others may not have got as far.

    Raises:
        BadInputError, EnvironmentLacksError: nothing was run. CheckFailedError: a run did not end.
    """
    began = time.monotonic()
    spec = scenario if isinstance(scenario, RunSpec) else run_spec(scenario)
    with spec.places.locating():
        require_served_by(processes, spec, captures is not None)
        if processes.count > 1:
            keep = None
        return _run(spec, began, progress, captures, directory, watcher, processes, attached, keep)


def _run(
    spec: RunSpec,
    began: float,
    progress: Progress,
    captures: Captures | None,
    directory: Path | None,
    watcher: Watcher | None,
    processes: Processes,
    attached: Sequence[Attached],
    keep: Callable[[RunResult], None] | None,
) -> RunResult:
    observe, seed = spec.options.observe, spec.options.seed
    if observe.captures and directory is None:
        raise KeyProblem("observe.captures", "the run was given no directory for captures")
    if observe.state_at:
        if directory is None:
            raise KeyProblem("observe.state_at", "the run was given no directory for states")
        from weft.run.switch_states import SwitchStates

        attached = [*attached, SwitchStates(observe.state_at, directory.resolve(), progress)]
    if captures is not None:
        captures = captures.checked(spec.fabric, spec.options.target)
    require_memory(spec)
    # Before the fabric is up, so that preparing data does not disturb its clock.
    runs = [item.prepare(spec.fabric.rank_count, seed) for item in spec.traffic]
    fabric = Fabric(spec, progress=progress, watcher=watcher, processes=processes)
    building = time.monotonic()
    with fabric:
        up = time.monotonic()
        if captures is not None:
            _capture(fabric, captures)
        for port in observe.captures:
            assert directory is not None
            fabric.capture_link(port, directory.resolve() / f"{port.replace(':', '-')}.pcapng")
        for each in attached:
            each.begin(fabric)
        try:
            for run in runs:
                run(fabric, progress)
                fabric.items_done += 1
        except WeftError as error:
            if isinstance(error, CheckFailedError):
                # Observers matter most when a run fails.
                _end(attached, fabric)
            if keep is not None and (found := _found_before(error, spec, fabric)) is not None:
                now = time.monotonic()
                times_s = _wall_times_s(began, building, up, now, now, fabric.first_collective_done_s)
                keep(replace(found, wall_times_s=times_s))
            raise
        _end(attached, fabric)
        result = replace(fabric.summary(), incomplete_captures=fabric.end_captures())
        first_done_s = fabric.first_collective_done_s
        done = time.monotonic()
    return replace(result, wall_times_s=_wall_times_s(began, building, up, done, time.monotonic(), first_done_s))


def _wall_times_s(
    began: float, building: float, up: float, done: float, end: float, first_done: float | None
) -> dict[str, float]:
    return {
        "prepare": building - began,
        "fabric_up": up - building,
        **({"first_collective_done": first_done - building} if first_done is not None else {}),
        "traffic": done - up,
        "tear_down": end - done,
        "all": end - began,
    }


def _found_before(error: WeftError, spec: RunSpec, fabric: Fabric) -> RunResult | None:
    """Return the results of the items before the failed one; None if the fabric cannot report them.

    Also None if the first item could not begin.
    """
    number = fabric.items_done
    if number == 0 and not isinstance(error, CheckFailedError):
        return None
    failure = ItemFailure(number, spec.traffic[number].kind, str(error))
    try:
        return replace(fabric.summary(), failures=[failure], incomplete_captures=fabric.end_captures())
    except WeftError:
        return None


def _end(attached: Sequence[Attached], fabric: Fabric) -> None:
    for each in attached:
        each.end(fabric)


def _capture(fabric: Fabric, captures: Captures) -> None:
    directory = captures.directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    for host in fabric.topology.hosts:
        for nic in host.nics:
            fabric.capture(host.name, nic.number, directory / f"{host.name}-plane{nic.number}.pcap")
    for name in captures.switches:
        for port in fabric.topology.switch(name).ports:
            if fabric.options.clock == "real" and not port.is_cabled:
                continue  # no packet can pass it
            if fabric.options.clock == "virtual" and port.leads_to_controller:
                continue  # its packets travel over P4Runtime, not over a link
            fabric.capture_port(name, port.number, directory / f"{port.interface}.pcap")


def result_directory(spec: RunSpec, out: Path | None) -> Path:
    """Return the directory for a run's results: `out`, or a new runs/NAME-TIME below the working directory."""
    if out is not None:
        return out
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    first = Path("runs") / f"{spec.name or 'fabric'}-{stamp}"
    # Other runs may have begun in the same second.
    others = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    return next(each for each in itertools.chain([first], others) if not each.exists())
