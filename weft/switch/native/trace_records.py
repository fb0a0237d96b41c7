"""Converts the native switch's records (engine/switch/trace.hpp) to events."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from weft.engine import _core
from weft.switch.backend import TableKey
from weft.switch.bmv2json import Program
from weft.switch.lowering.layout import bytes_for
from weft.switch.native.tables import NativeTable
from weft.switch.trace import events
from weft.switch.trace.places import Places, TableApplied, value_bits

_HEAD = struct.Struct("=IIIIq")
_WORD = struct.Struct("=I")
_PRIORITY = struct.Struct("=i")
_RECEIVED_BYTES = 4 * _WORD.size


class RecordReader:
    """Collects the packets of one switch that runs `program`."""

    def __init__(self, program: Program) -> None:
        abi = _core.switch_abi()
        self._places = Places(program)
        self._drop_reasons = _core.Switch.drop_reasons()
        self._first_site = abi["kFirstProgramSite"]
        prefix = "TraceSite."
        self._own_sites = {number: name.removeprefix(prefix) for name, number in abi.items() if name.startswith(prefix)}
        self._tables = {
            name: NativeTable(table, program.table_numbers[name], modifiable=True)
            for name, table in program.tables.items()
        }
        self._packets: dict[int, events.PacketTrace] = {}
        self._copies: dict[int, dict[int, events.CopyTrace]] = {}

    def feed(self, records: bytes) -> None:
        """Add records of the switch."""
        for packet, copy, event, time_ps in self._events(records):
            self._copy(packet, copy).add(event, time_ps)

    def take_ended(self) -> list[events.PacketTrace]:
        """Return and forget packets that, with all their copies, have left or were dropped."""
        ended = [trace for trace in self._packets.values() if trace.root.ended]
        for trace in ended:
            self._forget(trace.number)
        return ended

    def take_all(self) -> list[events.PacketTrace]:
        """Return and forget all packets, including ones still in the switch."""
        traces = list(self._packets.values())
        for trace in traces:
            self._forget(trace.number)
        return traces

    def _forget(self, number: int) -> None:
        del self._packets[number], self._copies[number]

    def _copy(self, packet: int, copy: int) -> events.CopyTrace:
        copies = self._copies.setdefault(packet, {})
        if copy not in copies:
            copies[copy] = events.CopyTrace()
            self._packets.setdefault(packet, events.PacketTrace(packet, copies[copy]))
        return copies[copy]

    def _events(self, records: bytes) -> Iterator[tuple[int, int, events.Event, int]]:
        position = 0
        while position < len(records):
            packet, copy, site, size, time_ps = _HEAD.unpack_from(records, position)
            position += _HEAD.size
            data = records[position : position + size]
            position += size
            if site >= self._first_site:
                yield packet, copy, self._step(site - self._first_site, data), time_ps
            else:
                yield packet, copy, self._own_event(packet, site, data), time_ps

    def _own_event(self, packet: int, site: int, data: bytes) -> events.Event:
        words = [word for (word,) in _WORD.iter_unpack(data[: len(data) // 4 * 4])]
        match self._own_sites[site]:
            case "received":
                return events.Received(words[0], words[1], data[_RECEIVED_BYTES:], _long(words[2:4]))
            case "copied":
                return events.Copied(words[1], self._copy(packet, words[0]))
            case "multicast":
                return events.Multicast(*words)
            case "no_clone_session":
                return events.NoCloneSession(*words)
            case "digest":
                return events.DigestSent(*words)
            case "enqueued":
                return events.Enqueued(*words)
            case "trimmed":
                return events.Trimmed(*words)
            case "egress":
                times = _long(words[6:8]), _long(words[8:10])
                return events.EgressStarted(words[0], words[1], words[2], words[3], words[4], words[5], *times)
            case "sent":
                return events.Sent(words[0], data[4:])
            case "dropped":
                return events.Dropped(self._drop_reasons[words[0]])
        raise AssertionError(self._own_sites[site])

    def _step(self, number: int, data: bytes) -> events.Step:
        place = self._places[number]
        values = []
        for width_bits in value_bits(place):
            size = bytes_for(width_bits)
            values.append(int.from_bytes(data[:size], "big"))
            data = data[size:]
        if isinstance(place, TableApplied):
            return events.Step(place, tuple(values), b"", self.match(place.table, data))
        return events.Step(place, tuple(values), data)

    def match(self, table: str, data: bytes) -> tuple[TableKey, int] | None:
        """Return the entry that a lookup found, with its priority, from the bytes behind the key; None for a miss."""
        if not data or data[0] == 0:
            return None
        native = self._tables[table]
        (rank,) = _PRIORITY.unpack_from(data, 1)
        size = native.key_size_bytes
        parts = [data[at : at + size] for at in range(1 + _PRIORITY.size, len(data), size)]
        value, mask, low, high = (*parts, b"", b"")[:4]
        return native.decode_key(value, mask, low, high), rank if native.table.needs_priority else 0


def _long(words: Sequence[int]) -> int:
    low, high = words
    return high << 32 | low
