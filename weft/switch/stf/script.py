"""Runs the statements of a script on a switch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.switch.backend import BackendError
from weft.switch.bmv2json import Program
from weft.switch.stf.counting import ScriptedCells
from weft.switch.stf.errors import Place, StfStatementError
from weft.switch.stf.expectations import Ports
from weft.switch.stf.replication import ScriptedReplication
from weft.switch.stf.statements import (
    Add,
    CheckCounter,
    Expect,
    NoPacket,
    Packet,
    Remove,
    SetDefault,
    Statement,
    SwitchCommand,
    Wait,
)
from weft.switch.stf.tables import ScriptedTables
from weft.switch.stf.target import Target


def run_script(statements: Sequence[Statement], target: Target, program: Program) -> list[str]:
    """Return the differences from the script's expectations; empty if there are none.

    A statement that the switch refuses ends the script, as later statements expect another state.
    """
    return _Script(target, program).run(statements)


class _Script:
    def __init__(self, target: Target, program: Program) -> None:
        self._target = target
        self._tables = ScriptedTables(target.backend, program)
        self._replication = ScriptedReplication(target.backend)
        self._cells = ScriptedCells(target.backend, program, self._tables)
        self._ports = Ports()
        self._last_outputs: list[tuple[int, bytes]] | None = None
        self._failures: list[str] = []
        self._commands = self._switch_commands()

    def run(self, statements: Sequence[Statement]) -> list[str]:
        for statement in statements:
            try:
                self._run(statement)
            except (StfStatementError, BackendError) as error:
                return [*self._failures, f"{statement.place}: {error}"]
        return self._failures + self._ports.differences()

    def _run(self, statement: Statement) -> None:
        match statement:
            case Packet(_, port, data):
                self._last_outputs = self._target.process(port, data)
                for output_port, output in self._last_outputs:
                    self._ports.sent[output_port].append(output)
            case Expect():
                self._ports.expected[statement.port].append(statement)
            case NoPacket():
                self._check_no_packet(statement.place)
            case Add():
                self._tables.add(statement)
            case SetDefault():
                self._tables.set_default(statement)
            case Remove():
                self._tables.remove(statement)
            case CheckCounter():
                difference = self._cells.check_counter(statement)
                if difference is not None:
                    self._failures.append(f"{statement.place}: {difference}")
            case SwitchCommand():
                self._commands[statement.command](statement)
            case Wait():
                pass  # A packet is dealt with before its statement ends.

    def _check_no_packet(self, place: Place) -> None:
        if self._last_outputs is None:
            raise StfStatementError("no_packet follows the packet that it is about")
        if self._last_outputs:
            ports = ", ".join(str(port) for port, _ in self._last_outputs)
            self._failures.append(f"{place}: no packet should have left, but one did by port {ports}")

    def _switch_commands(self) -> dict[str, Callable[[SwitchCommand], None]]:
        replication, cells = self._replication, self._cells
        return {
            "mirroring_add": lambda command: replication.mirror_to_port(*command.numbers),
            "mirroring_add_mc": lambda command: replication.mirror_to_group(*command.numbers),
            "mirroring_delete": lambda command: replication.delete_mirror(*command.numbers),
            "mirroring_get": lambda _: None,  # only prints
            "mc_mgrp_create": lambda command: replication.create_group(*command.numbers),
            "mc_node_create": lambda command: replication.create_node(*command.numbers),
            "mc_node_update": lambda command: replication.update_node(*command.numbers),
            "mc_node_associate": lambda command: replication.associate_node(*command.numbers),
            "counter_read": cells.read_counter,
            "counter_write": cells.write_counter,
            "register_read": cells.read_register,
            "register_write": cells.write_register,
            "register_reset": cells.reset_register,
            "meter_get_rates": cells.read_meter,
            "meter_set_rates": cells.configure_meter,
            "meter_array_set_rates": cells.configure_meters,
        }
