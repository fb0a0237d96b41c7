"""Traces of a scenario's switches, which `weft trace SCENARIO` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from weft.commands.progress import make_progress
from weft.commands.scenario_options import changes_of
from weft.commands.tracing_output import TraceOutput
from weft.errors import BadInputError, CheckFailedError, translated
from weft.run.attached import require_virtual_clock
from weft.run.packet_traces import PacketTraces, TracedPacket
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario.network_file import load_scenario_or_network
from weft.topologies import FabricSpec, TopologyError

MOST_NAMED = 20
NOTHING_KEPT = "observe={}"
"""The change to a scenario that records nothing: a trace is given no directory."""


@dataclass(frozen=True)
class RunToTrace:
    """Request of `weft trace SCENARIO`."""

    scenario: Path
    assignments: tuple[str, ...]
    switches: tuple[str, ...]
    packets: int
    when: str | None
    port: int | None
    during_ps: tuple[int, int]


def trace_run(asked: RunToTrace, output: TraceOutput) -> None:
    """Run a scenario, and show packets as they end.

    Raises:
        BadInputError: of the scenario, the switches or the condition. EnvironmentLacksError: the clock is not virtual.
    """
    if asked.during_ps[0] >= asked.during_ps[1]:
        raise BadInputError("--from is not before --until")

    def show(packet: TracedPacket) -> None:
        output.show_trace(packet.program, packet.trace, packet.heading)

    changes = changes_of({"assignments": (*asked.assignments, NOTHING_KEPT)})
    scenario, _ = load_scenario_or_network(asked.scenario, changes, "virtual")
    spec = run_spec(scenario)
    require_virtual_clock(spec.options.clock, "--switch")
    _require_switches(spec.fabric, asked.switches)
    traces = PacketTraces(asked.switches, show, asked.packets, asked.when, asked.port, asked.during_ps)
    progress = make_progress()
    try:
        run_scenario(spec, progress, watcher=progress, attached=[traces])
    except CheckFailedError:
        output.write_page()
        raise
    output.unseen.others, output.unseen.missed = traces.others, traces.missed


def _require_switches(fabric: FabricSpec, names: Sequence[str]) -> None:
    """Refuse, before anything is built, to show packets of no switch or of one that there is not."""
    if not names:
        some = ", ".join(switch.name for switch in fabric.switches[:MOST_NAMED])
        more = ", …" if len(fabric.switches) > MOST_NAMED else ""
        raise click.UsageError(f"a SCENARIO needs --switch, the switch to show packets of (valid: {some}{more})")
    for name in names:
        with translated(TopologyError, BadInputError, place="--switch"):
            fabric.switch(name)
