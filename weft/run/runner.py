"""Run a scenario: build its fabric, drive its traffic, collect what was found."""

from __future__ import annotations

import datetime
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weft.clocks.lab import Progress
from weft.clocks.virtual.processes import ALONE, Processes
from weft.clocks.watching import Watcher
from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError, WeftError
from weft.hints import did_you_mean
from weft.results.model import ItemFailure
from weft.results.run_result import RunResult
from weft.run.attached import Attached
from weft.run.data_memory import require_memory
from weft.run.fabric import Fabric
from weft.run.several_processes import require_served_by
from weft.run.spec import RunSpec, run_spec
from weft.run.switch_states import SwitchStates
from weft.scenario import (
    KeyProblem,
    Scenario,
)
from weft.topologies import FabricSpec

ALL_SWITCHES = "all"


@dataclass(frozen=True)
class Captures:
    """What a run captures into `directory`: every NIC of the hosts, HOST-planeN.pcap, and every port of `switches`.

    These are called as their interfaces, SWITCH-ethN.pcap; `switches` may be just "all".
    """

    directory: Path
    switches: tuple[str, ...] = ()

    def checked(self, topology: FabricSpec, target: str) -> Captures:
        """With "all" spelt out. BadInputError for unknown switches, EnvironmentLacksError if they cannot capture."""
        if not self.switches:
            return self
        if target != "embedded":
            raise EnvironmentLacksError(
                f"{target} does not capture the ports of switches: sniff their interfaces"
            )
        names = [switch.name for switch in topology.switches]
        for name in self.switches:
            if name not in (*names, ALL_SWITCHES):
                raise BadInputError(f"--pcap-switch: unknown switch '{name}'; {did_you_mean(name, names)}")
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
    """Run everything in a scenario and return what was found.

    Args:
        scenario: what to run; without its description it is checked first.
        progress: called with what is being done, in words.
        captures: what is captured, and where.
        directory: where captures go that the scenario asks for; it exists.
        watcher: shown how far runs are, from a thread of its own; not of several processes.
        processes: which serve the fabric together, under the virtual clock; all have the result.
        attached: what looks on; results are the same without.
        keep: called with what was found so far when an item of the traffic fails, before its error is raised; not of
            several processes, of which the others may not have come as far.

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
        attached = [*attached, SwitchStates(observe.state_at, directory.resolve(), progress)]
    if captures is not None:
        captures = captures.checked(spec.fabric, spec.options.target)
    require_memory(spec)
    # Before the fabric is up, so that the data's making does not disturb its clock.
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
                # A run that fails is one of which people want to see most.
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
    return replace(
        result, wall_times_s=_wall_times_s(began, building, up, done, time.monotonic(), first_done_s)
    )


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
    """Return what the items before the one that failed have found; None if the fabric no longer says.

    An item that could not begin leaves nothing to see where it was the first one.
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
                continue  # nothing will ever come by it
            if fabric.options.clock == "virtual" and port.leads_to_controller:
                continue  # its packets are P4Runtime's, without a line
            fabric.capture_port(name, port.number, directory / f"{port.interface}.pcap")


def result_directory(spec: RunSpec, out: Path | None) -> Path:
    """Return where a run's results go: `out`, or a new runs/NAME-TIME below the working directory."""
    if out is not None:
        return out
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    first = Path("runs") / f"{spec.name or 'fabric'}-{stamp}"
    # Runs that begin in the same second.
    others = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    return next(each for each in itertools.chain([first], others) if not each.exists())
