"""Traces of a scenario's switches, which `weft trace SCENARIO` shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import click

from weft.clocks.virtual.loop import RunEndedEarlyError
from weft.commands.progress import make_progress
from weft.commands.scenario_options import changes_of
from weft.commands.tracing_output import TraceOutput
from weft.errors import BadInputError, CheckFailedError, translated
from weft.run.attached import Attached, require_virtual_clock
from weft.run.packet_searches import PacketSearch
from weft.run.packet_traces import PacketTraces, TracedPacket
from weft.run.runner import ALL_SWITCHES, run_scenario
from weft.run.spec import RunSpec, run_spec
from weft.scenario.network_file import load_scenario_or_network
from weft.switch.debug.condition_tokens import ConditionError
from weft.switch.debug.conditions import check_syntax
from weft.topologies import FabricSpec, TopologyError

MOST_NAMED = 20
NOTHING_KEPT = "observe={}"
"""The change to a scenario that records nothing: a trace is given no directory."""


@dataclass(frozen=True)
class RunToTrace:
    """Request of `weft trace SCENARIO`."""

    scenario: Path
    assignments: tuple[str, ...]
    p4: str | None
    switches: tuple[str, ...]
    packets: int
    when: str | None
    port: int | None
    during_ps: tuple[int, int]


def trace_run(asked: RunToTrace, output: TraceOutput) -> None:
    """Run a scenario until the packets are found, and show them.

    Without a condition, packets are shown as they end. With one, a first run finds packets and a second traces them.

    Raises:
        BadInputError: of the scenario, the switches or the condition. EnvironmentLacksError: the clock is not virtual.
    """
    if asked.during_ps[0] >= asked.during_ps[1]:
        raise BadInputError("--from is not before --until")
    if asked.when is not None:
        try:
            check_syntax(asked.when)
        except ConditionError as error:
            raise BadInputError(error.shown(asked.when), place="--when") from None
    spec = _spec_of(asked)
    names = _switches_of(spec.fabric, asked.switches)
    if asked.when is None:
        traces = PacketTraces(
            names, _shower(output), asked.packets, port=asked.port, during_ps=asked.during_ps, ends_run=True
        )
        _trace(spec, traces, output)
        return
    search = PacketSearch(
        names,
        asked.packets,
        asked.when,
        asked.port,
        asked.during_ps,
        skips_unfit=set(names) != set(asked.switches),
        ends_run=True,
    )
    failure = _failure_of(spec, search, "first run, in machine code: to find packets that match --when")
    found = search.found
    if found.unfit:
        click.echo(f"not looked at, as the program lacks a name of --when: {_some(found.unfit)}", err=True)
    output.unseen.others, output.unseen.not_examined = found.others, found.not_examined
    if found.by_switch:
        traces = PacketTraces(
            list(found.by_switch),
            _shower(output),
            asked.packets,
            asked.when,
            asked.port,
            asked.during_ps,
            found.by_switch,
            ends_run=True,
        )
        _trace(_spec_of(asked), traces, output, "second run: to trace the packets found")
    if failure is not None:
        output.write_page()
        raise failure


def _spec_of(asked: RunToTrace) -> RunSpec:
    changes = changes_of({"assignments": (*asked.assignments, NOTHING_KEPT), "p4": asked.p4})
    scenario, _ = load_scenario_or_network(asked.scenario, changes, "virtual")
    spec = run_spec(scenario)
    require_virtual_clock(spec.options.clock, "--switch")
    return spec


def _shower(output: TraceOutput) -> Callable[[TracedPacket], None]:
    return lambda packet: output.show_trace(packet.program, packet.trace, packet.heading)


def _trace(spec: RunSpec, traces: PacketTraces, output: TraceOutput, purpose: str | None = None) -> None:
    failure = _failure_of(spec, traces, purpose)
    output.unseen.others += traces.others
    output.unseen.missed += traces.missed
    if failure is not None:
        output.write_page()
        raise failure


def _failure_of(spec: RunSpec, attached: Attached, purpose: str | None = None) -> CheckFailedError | None:
    """Run until the end or until the observer has seen enough; return the error of a run that fails.

    `purpose` is said first: the runs of one command have the same stages.
    """
    progress = make_progress()
    if purpose is not None:
        progress(purpose)
    try:
        run_scenario(spec, progress, watcher=progress, attached=[attached])
    except RunEndedEarlyError:
        return None
    except CheckFailedError as error:
        return error
    return None


def _switches_of(fabric: FabricSpec, patterns: Sequence[str]) -> list[str]:
    """Return the switches that names and patterns stand for, in the fabric's order; before anything is built."""
    names = [switch.name for switch in fabric.switches]
    if not patterns:
        raise click.UsageError(
            f"a SCENARIO needs --switch, the switch to show packets of "
            f"(valid: {_some(names)}, a pattern, {ALL_SWITCHES})"
        )
    chosen: set[str] = set()
    for pattern in patterns:
        if pattern == ALL_SWITCHES:
            found = names
        elif any(sign in pattern for sign in "*?["):
            found = [name for name in names if fnmatchcase(name, pattern)]
            if not found:
                raise BadInputError(f"no switch matches {pattern!r}", place="--switch", valid=[_some(names)])
        else:
            with translated(TopologyError, BadInputError, place="--switch"):
                found = [fabric.switch(pattern).name]
        chosen.update(found)
    return [name for name in names if name in chosen]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
