"""Traces packets of a running native switch: swaps in instrumented code, reads records, restores plain code."""

from __future__ import annotations

from collections.abc import Callable

from weft.engine import _core
from weft.switch.backend import NotReadyError
from weft.switch.bmv2json import Program
from weft.switch.lowering import CompiledProgram, compile_program
from weft.switch.native.trace_records import RecordReader
from weft.switch.trace.events import PacketTrace

MANY_PACKETS = 2**64 - 1
LAST_PS = 2**63 - 1


class NativeTrace:
    """The trace of one switch, which has at most one. Methods may be called from any thread.

    If `from_first` is set before a program is loaded, it is the number of first packets to trace (MANY_PACKETS: all);
    `with_steps` False records only the switch's own events, with plain code.
    """

    def __init__(self, engine: _core.Engine, native: _core.Switch, name: str) -> None:
        self._engine = engine
        self._native = native
        self._name = name
        self._plain: CompiledProgram | None = None
        self._reader: RecordReader | None = None
        self.from_first = 0
        self.with_steps = True
        self.keeps_before_load = False
        """Whether records not yet taken are kept when another program is loaded, for `take_by_program`."""
        self._before: list[tuple[Program, RecordReader, bytes]] = []

    def prepare(self, program: Program) -> None:
        """Compile the code for `loaded`, outside the engine's lock."""
        if self.from_first and self.with_steps:
            compile_program(program, instrumented=True)

    def loaded(self, compiled: CompiledProgram) -> None:
        """Follow a change of program. The engine's lock is held."""
        if self.keeps_before_load and self._reader is not None and self._plain is not None:
            self._before.append((self._plain.program, self._reader, self._native.take_trace()))
        self._native.stop_trace()
        self._plain, self._reader = compiled, None
        if self.from_first:
            self.start(self.from_first, with_steps=self.with_steps)

    def start(
        self,
        packets: int | None = None,
        port: int | None = None,
        *,
        with_steps: bool = True,
        ended: Callable[[], None] | None = None,
        during_ps: tuple[int, int] = (0, LAST_PS),
    ) -> None:
        """Trace the next packets (None: all) received on a port (None: any) in a time interval, which excludes its end.

        The program continues in instrumented code with its state. The engine's thread calls `ended` when a packet or
        a copy has left or was dropped. Raises NotReadyError without a program, or if packets are already traced.
        """
        plain = self._plain
        if plain is None:
            raise NotReadyError(f"switch '{self._name}' has no forwarding pipeline yet")
        code = compile_program(plain.program, instrumented=True) if with_steps else plain
        with self._engine.lock():
            if self._plain is not plain:
                raise NotReadyError(f"switch '{self._name}' got another program just now")
            if self._reader is not None:
                raise NotReadyError(f"packets of switch '{self._name}' are traced already")
            self._native.replace_code(code.native)
            self._native.take_trace()
            self._native.start_trace(MANY_PACKETS if packets is None else packets, port, ended, *during_ps)
            self._reader = RecordReader(plain.program)

    def take(self, *, unfinished: bool = False) -> list[PacketTrace]:
        """Return traced packets that have left or were dropped (`unfinished`: also packets still in the switch).

        Only one thread at a time may call this or `take_by_program`.
        """
        with self._engine.lock():
            reader, records = self._records()
        return _read(reader, records, unfinished=unfinished)

    def take_by_program(self) -> list[tuple[Program, list[PacketTrace]]]:
        """Return as `take`, by program; earlier programs have all their packets."""
        with self._engine.lock():
            before, self._before = self._before, []
            plain, (reader, records) = self._plain, self._records()
        found = [(program, _read(old, last, unfinished=True)) for program, old, last in before]
        return found if plain is None else [*found, (plain.program, _read(reader, records))]

    def _records(self) -> tuple[RecordReader | None, bytes]:
        """Return the records so far, to be decoded without the lock, for which the engine would wait."""
        return self._reader, b"" if self._reader is None else self._native.take_trace()

    def stop(self) -> None:
        """Stop tracing and return to plain code."""
        with self._engine.lock():
            self._native.stop_trace()
            if self._reader is not None and self._plain is not None:
                self._native.replace_code(self._plain.native)
            self._reader = None

    @property
    def packets_missed(self) -> int:
        """Packets that were not traced because too many records waited to be taken."""
        return int(self._native.trace_packets_missed)


def _read(reader: RecordReader | None, records: bytes, *, unfinished: bool = False) -> list[PacketTrace]:
    if reader is None:
        return []
    reader.feed(records)
    return reader.take_all() if unfinished else reader.take_ended()
