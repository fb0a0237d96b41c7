"""The native switch as a `SwitchBackend`: programs compiled through LLVM, packets forwarded by the C++
engine.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Any

from weft.switch.backend import Digest, PacketIn, StreamEvent, UnsupportedProgramError, constant_table_entries
from weft.switch.bmv2json import Program
from weft.switch.checks import check_capacity
from weft.switch.lowering import CompiledProgram, UnsupportedError, compile_program
from weft.switch.lowering.layout import bytes_for
from weft.switch.native.counters import NativeCounters
from weft.switch.native.entries import NativeEntries
from weft.switch.native.idle import IdleWatch
from weft.switch.native.profiles import NativeActionProfiles
from weft.switch.native.registers import NativeRegisters
from weft.switch.native.replication import NativeReplication
from weft.switch.native.tables import tables_of

_EVENT_POLL_S = 0.5


class NativeSwitch(NativeEntries, NativeActionProfiles, NativeCounters, NativeRegisters, NativeReplication):
    """A switch of the engine. All methods may be called from any thread.

    `engine` gives the clock; ports are attached to `native` (`native.attach_port(number, transmit_port)`).
    A switch without ports still runs packets through its pipelines by `process`.
    """

    # ---- program

    @property
    def program(self) -> Program | None:
        """The program that runs."""
        return self._compiled.program if self._compiled is not None else None

    def verify(self, program: Program) -> None:
        """Compile a program without running it."""
        self._compile(program)

    def _compile(self, program: Program) -> CompiledProgram:
        check_capacity(program)
        try:
            return compile_program(program)
        except UnsupportedError as error:
            raise UnsupportedProgramError(f"the native switch does not implement {error}") from None

    def load(self, program: Program, preinitialized: Collection[str] = ()) -> None:
        """Replace the program and all state. UnsupportedProgramError leaves the switch as it was."""
        compiled = self._compile(program)
        self.trace.prepare(program)
        with self.engine.lock():
            self.native.load(compiled.native)
            self.trace.loaded(compiled)
            self._compiled = compiled
            self._tables = tables_of(program, frozenset(preinitialized))
            self._profile_index = {name: index for index, name in enumerate(program.action_profiles)}
            self._idle = IdleWatch()
            self._failover.clear()
            for port in self._failover.ports_down:
                for index in self._profile_index.values():
                    self.native.set_watch_port_up(index, port, False)
            for table in self._tables.values():
                self._apply_default(table, None)
                for entry in constant_table_entries(table.table):
                    self._insert(table, entry)

    def atomically(self) -> AbstractContextManager[Any]:
        """While inside, no packet is processed."""
        lock: AbstractContextManager[Any] = self.engine.lock()
        return lock

    def set_port_up(self, port: int, up: bool) -> None:
        """Take members that watch `port` out of their groups, or back in; let replicas' backups stand in."""
        with self.engine.lock():
            self._failover.set_port_up(port, up)
            for index in self._profile_index.values():
                self.native.set_watch_port_up(index, port, up)

    # ---- packets

    def packet_out(self, data: bytes) -> None:
        """Let the switch receive a packet on its CPU port."""
        self._loaded()
        self.native.packet_out(data)

    def wait_stream_event(self, timeout_s: float | None) -> StreamEvent | None:
        """The next event of this switch; None when the time is over (None waits without end)."""
        left = math.inf if timeout_s is None else timeout_s
        while True:
            if (timeout := self._idle.next_event(self.table_idle_ns)) is not None:
                return timeout
            slice_s = min(left, _EVENT_POLL_S)
            event = self.native.wait_event(slice_s)
            if event is not None and (read := self._stream_event(*event)) is not None:
                return read
            left -= slice_s
            if left <= 0:
                return None

    def next_idle_deadline_ns(self) -> int | None:
        """How long until an entry's idle timeout may be due; None without such entries."""
        return self._idle.next_deadline_ns(self.table_idle_ns)

    def _stream_event(self, kind: str, learn_list_id: int, data: bytes, time_ps: int) -> StreamEvent | None:
        """The event; None for a digest of a program that has been replaced meanwhile."""
        if kind == "packet_in":
            return PacketIn(data, time_ps)
        learn_list = self._loaded().program.learn_lists.get(learn_list_id)
        if learn_list is None:
            return None
        values = []
        for element in learn_list.elements:
            size = bytes_for(getattr(element, "width_bits", None) or 0)
            values.append(int.from_bytes(data[:size], "big"))
            data = data[size:]
        return Digest(learn_list_id, tuple(values), time_ps)

    def process(self, port: int, data: bytes) -> list[tuple[int, bytes]]:
        """Run one packet through both pipelines at once, without queues; what leaves, as (port, bytes)."""
        self._loaded()
        outputs: list[tuple[int, bytes]] = self.native.process(port, data)
        return outputs

    def drops(self) -> dict[str, int]:
        """Packets dropped since the start, by reason."""
        drops: dict[str, int] = self.native.drops()
        return drops
