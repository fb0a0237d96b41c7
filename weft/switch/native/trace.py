"""Tracing packets of a native switch that runs: instrumented code in, records out, plain code back."""

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
    """The trace of one switch; one at a time. Methods may be called from any thread.

    With `from_first` set before a program is loaded, its first so many packets (MANY_PACKETS: all) are traced;
    `with_steps` False records only what the switch does itself, and leaves the program's code plain.
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
        """Whether what waits to be taken when another program is loaded stays, for `take_by_program`."""
        self._before: list[tuple[Program, RecordReader, bytes]] = []

    def prepare(self, program: Program) -> None:
        """Compile what `loaded` will need, outside the engine's lock."""
        if self.from_first and self.with_steps:
            compile_program(program, instrumented=True)

    def loaded(self, compiled: CompiledProgram) -> None:
        """The switch runs another program. The engine's lock is held."""
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
        """Trace the next packets (None: all) received on a port (None: on any), from one time until before another.

        The program goes on in instrumented code, with the state it has. `ended` is called, by the engine's thread,
        when a packet or a copy of one has left or was dropped. NotReadyError without a program, or if packets are
        traced already.
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
        """Traced packets that have left or were dropped (`unfinished`: also those that are under way).

        For one thread at a time, as `take_by_program`.
        """
        with self._engine.lock():
            reader, records = self._records()
        return _read(reader, records, unfinished=unfinished)

    def take_by_program(self) -> list[tuple[Program, list[PacketTrace]]]:
        """As `take`, with the program of each packet; of programs before the present one, all packets."""
        with self._engine.lock():
            before, self._before = self._before, []
            plain, (reader, records) = self._plain, self._records()
        found = [(program, _read(old, last, unfinished=True)) for program, old, last in before]
        return found if plain is None else [*found, (plain.program, _read(reader, records))]

    def _records(self) -> tuple[RecordReader | None, bytes]:
        """What has been recorded, to be read without the lock: the engine would wait meanwhile."""
        return self._reader, b"" if self._reader is None else self._native.take_trace()

    def stop(self) -> None:
        """Go on in plain code, without a trace."""
        with self._engine.lock():
            self._native.stop_trace()
            if self._reader is not None and self._plain is not None:
                self._native.replace_code(self._plain.native)
            self._reader = None

    @property
    def packets_missed(self) -> int:
        """Packets that were not traced, because records of too many others waited to be taken."""
        return int(self._native.trace_packets_missed)


def _read(reader: RecordReader | None, records: bytes, *, unfinished: bool = False) -> list[PacketTrace]:
    if reader is None:
        return []
    reader.feed(records)
    return reader.take_all() if unfinished else reader.take_ended()
