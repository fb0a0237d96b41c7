"""Runs STF scripts on the reference switch."""

from __future__ import annotations

from pathlib import Path

from reference_switch import ReferenceSwitch

from weft.switch.backend import (
    ActionCall,
    ExactMatch,
    LpmMatch,
    Match,
    RangeMatch,
    TableAction,
    TableEntry,
    TernaryMatch,
)
from weft.switch.bmv2json import Program
from weft.switch.stf.expectations import Ports
from weft.switch.stf.statements import (
    Add,
    Expect,
    Packet,
    Remove,
    SetDefault,
    Statement,
    SwitchCommand,
)
from weft.switch.stf.tables import ScriptedTables

_GREATEST_PRIORITY = 1 << 16


class CommandLines:
    """What a script does to tables, as lines for BMv2's command line (a backend as ScriptedTables takes it)."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.lines: list[str] = []

    def table_insert(self, table: str, entry: TableEntry) -> None:
        """table_add."""
        words = ["table_add", table, *self._action(entry.action)[:1], *map(_match, entry.key), "=>"]
        words += self._action(entry.action)[1:]
        if self._program.tables[table].needs_priority:
            words.append(str(_GREATEST_PRIORITY - entry.priority))
        self.lines.append(" ".join(words))

    def table_set_default(self, table: str, action: TableAction | None) -> None:
        """table_set_default."""
        assert action is not None
        self.lines.append(" ".join(["table_set_default", table, *self._action(action)]))

    def _action(self, action: TableAction) -> list[str]:
        assert isinstance(action, ActionCall), "tables with members are not tried on the reference switch"
        return [action.action, *(f"{value:#x}" for value in action.arguments)]


def _match(match: Match) -> str:
    match match:
        case ExactMatch():
            return f"{match.value:#x}"
        case LpmMatch():
            return f"{match.value:#x}/{match.prefix_length}"
        case TernaryMatch():
            return f"{match.value:#x}&&&{match.mask:#x}"
        case RangeMatch():
            return f"{match.low:#x}->{match.high:#x}"
    raise AssertionError(match)


def command_lines(statements: list[Statement], program: Program) -> list[str] | None:
    """The lines of a script; None if it depends on more than the state before its first packet.

    Counters are not looked at.
    """
    backend = CommandLines(program)
    tables = ScriptedTables(backend, program)  # type: ignore[arg-type]
    sent = False
    for statement in statements:
        sent = sent or isinstance(statement, Packet)
        if isinstance(statement, Remove) or (sent and isinstance(statement, Add | SetDefault | SwitchCommand)):
            return None
        if isinstance(statement, Add):
            tables.add(statement)
        elif isinstance(statement, SetDefault):
            tables.set_default(statement)
        elif isinstance(statement, SwitchCommand):
            words = [statement.command, statement.name, *map(str, statement.numbers)]
            words += [f"{rate}:{burst}" for rate, burst in statement.rates]
            backend.lines.append(" ".join(filter(None, words)))
    return backend.lines


def differences(json_text: str, statements: list[Statement], lines: list[str], folder: Path) -> list[str]:
    """How the reference switch deviates from the script when it runs this JSON."""
    ports = Ports()
    packets: list[tuple[int, bytes]] = []
    for statement in statements:
        if isinstance(statement, Packet):
            packets.append((statement.port, statement.data))
        elif isinstance(statement, Expect):
            ports.expected[statement.port].append(statement)
    document = folder / "program.json"
    document.write_text(json_text, encoding="utf-8")
    port_count = 1 + max([0, *ports.expected, *(port for port, _ in packets)])
    with ReferenceSwitch(document, folder, port_count) as switch:
        if lines:
            switch.command(*lines)
        switch.send(packets)
        ports.sent.update(switch.stop())
    return ports.differences()
