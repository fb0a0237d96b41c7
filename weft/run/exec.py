"""Runs commands in hosts of a fabric, and makes their result."""

from __future__ import annotations

from collections.abc import Iterable

from weft.clocks.exec_commands import CommandOutcome, ExecRun
from weft.clocks.lab import Lab
from weft.errors import BadInputError
from weft.hints import did_you_mean
from weft.quantities.units import shown
from weft.results.exec import CommandResult, ExecResult
from weft.run.exchanges import Exchanges
from weft.topologies import FabricSpec


def known_hosts(names: Iterable[str], topology: FabricSpec) -> None:
    """Raise BadInputError for a host that the fabric does not have."""
    hosts = [host.name for host in topology.hosts]
    for name in names:
        if name not in hosts:
            raise BadInputError(f"no host {shown(name)}; {did_you_mean(name, hosts)}")


def run_commands(lab: Lab, exchanges: Exchanges, asked: ExecRun) -> ExecResult:
    """Run commands to their end. Raises as `Lab.run_commands`."""
    before = exchanges.begin()
    outcomes = lab.run_commands(asked)
    span_ps = min(each.started_ps for each in outcomes), max(each.finished_ps for each in outcomes)
    counted = exchanges.end("exec", span_ps, before)
    return ExecResult(span_ps[1] - span_ps[0], [_result(each) for each in outcomes], counted.retransmissions)


def _result(outcome: CommandOutcome) -> CommandResult:
    return CommandResult(
        outcome.command.host,
        outcome.command.command,
        outcome.status,
        outcome.finished_ps - outcome.started_ps,
        outcome.output,
        outcome.output_bytes,
        list(outcome.wall_clock_uses),
    )
