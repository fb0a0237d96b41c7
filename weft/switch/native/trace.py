"""Traces packets of a running native switch: swaps in instrumented code, reads records, restores plain code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.engine import _core
from weft.switch.backend import NotReadyError
from weft.switch.bmv2json import Program
from weft.switch.lowering import CompiledProgram, compile_program

if TYPE_CHECKING:
    from weft.switch.debug.searches import Search
    from weft.switch.native.trace_records import RecordReader
    from weft.switch.trace.events import PacketTrace

MANY_PACKETS = 2**64 - 1
LAST_PS = 2**63 - 1
MOST_PERHAPS = 1_000
"""Most packets that match a condition only perhaps, and that are traced to decide."""


@dataclass(frozen=True)
class FoundPacket:
    """A packet that matches a condition, by its number among the packets that were looked at, from 1."""

    arrival: int
    received_ps: int
    is_certain: bool


@dataclass(frozen=True)
class SearchResults:
    """Packets found by a search, in the order in which they ended.

    `looked_at` packets were decided or are still in the switch; `not_kept` match perhaps, beyond MOST_PERHAPS.
    `is_over`: no packet will be looked at, and none is in the switch.
    """

    found: tuple[FoundPacket, ...]
    looked_at: int
    not_kept: int
    is_over: bool


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
        self._ended_search: SearchResults | None = None
        self._is_searching = False

    def prepare(self, program: Program) -> None:
        """Compile the code for `loaded`, outside the engine's lock."""
        if self.from_first and self.with_steps:
            compile_program(program, instrumented=True)

    def loaded(self, compiled: CompiledProgram) -> None:
        """Follow a change of program. The engine's lock is held."""
        if self.keeps_before_load and self._reader is not None and self._plain is not None:
            self._before.append((self._plain.program, self._reader, self._native.take_trace()))
        self._end_search()
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
        only: Sequence[int] = (),
    ) -> None:
        """Trace the next packets (None: all) received on a port (None: any) in a time interval, which excludes its end.

        The program continues in instrumented code with its state. The engine's thread calls `ended` when a packet or
        a copy has left or was dropped. `only`: the packets with these numbers, ascending, as found by a search with the
        same port and interval. Raises NotReadyError without a program, or if packets are already traced.
        """

        def begin() -> None:
            wanted = MANY_PACKETS if packets is None else packets
            self._native.start_trace(wanted, port, ended, *during_ps, list(only))

        self._begin(begin, with_steps=with_steps)

    def search(
        self,
        search: Search,
        most_found: int,
        changed: Callable[[], None],
        port: int | None = None,
        during_ps: tuple[int, int] = (0, LAST_PS),
    ) -> None:
        """Look for packets that match a condition, received as for `start`, until `most_found` match for certain.

        Nothing is recorded. The engine's thread calls `changed` when a packet was found, and when the search is over.
        Raises NotReadyError as `start` does.
        """

        def begin() -> None:
            self._native.search_packets(
                search.native_tests(),
                list(search.rule),
                search.holds_for_zero,
                search.undecidable,
                most_found,
                MOST_PERHAPS,
                search.ask,
                changed,
                port,
                *during_ps,
            )
            self._is_searching = True

        self._ended_search = None
        self._begin(begin, with_steps=search.needs_steps)

    def close_search(self) -> None:
        """Have the search look at no further packets; packets in the switch are still decided."""
        if self._is_searching:
            self._native.close_search(False)

    def search_results(self, *, finish: bool = False) -> SearchResults:
        """Return what the search has found; `finish`: it ends, and packets still in the switch are decided as they are.

        A search ends when another program is loaded, too.
        """
        with self._engine.lock():
            if finish:
                self._end_search()
            return self._ended_search or self._results()

    def _end_search(self) -> None:
        """Keep the results. The engine's lock is held."""
        if self._is_searching:
            self._native.close_search(True)
            self._ended_search = self._results()
            self._is_searching = False

    def _results(self) -> SearchResults:
        found, looked_at, not_kept, is_over = self._native.search_results
        return SearchResults(tuple(FoundPacket(*each) for each in found), looked_at, not_kept, is_over)

    def _begin(self, begin: Callable[[], None], *, with_steps: bool) -> None:
        plain = self._plain
        if plain is None:
            raise NotReadyError(f"switch '{self._name}' has no forwarding pipeline yet")
        # Imported here, because switches that trace nothing need no events.
        from weft.switch.native.trace_records import RecordReader

        code = compile_program(plain.program, instrumented=True) if with_steps else plain
        with self._engine.lock():
            if self._plain is not plain:
                raise NotReadyError(f"switch '{self._name}' got another program just now")
            if self._reader is not None:
                raise NotReadyError(f"packets of switch '{self._name}' are traced already")
            self._native.replace_code(code.native)
            self._native.take_trace()
            begin()
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
        """Stop tracing or searching, and return to plain code."""
        with self._engine.lock():
            self._end_search()
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
