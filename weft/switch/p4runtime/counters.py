"""Indirect and direct counters (P4Runtime §9.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finsy.proto import p4r

from weft.switch.backend import CounterValue
from weft.switch.p4runtime.cells import ArrayCells
from weft.switch.p4runtime.errors import invalid, require_modify


def decode_counter(data: p4r.CounterData) -> CounterValue:
    """Return the backend's value. INVALID_ARGUMENT if it is negative."""
    if data.packet_count < 0 or data.byte_count < 0:
        raise invalid(f"counter value {data.packet_count} packets, {data.byte_count} bytes is negative")
    return CounterValue(data.packet_count, data.byte_count)


def encode_counter(value: CounterValue) -> p4r.CounterData:
    """Return the message for a value; counts wrap at int64's 63 bits."""
    return p4r.CounterData(packet_count=value.packets & (1 << 63) - 1, byte_count=value.bytes & (1 << 63) - 1)


class Counters(ArrayCells):
    """All indirect counters of a device."""

    def write(self, update_type: int, message: p4r.CounterEntry) -> None:
        """Set one cell, or all cells if no index is given."""
        require_modify(update_type, "a counter entry")
        info = self.find(self.pipeline.counters, message.counter_id, "counter")
        if not message.HasField("data"):
            return
        value = decode_counter(message.data)
        for index in self.indices(info, message, "counter"):
            self.backend.counter_write(info.preamble.name, index, value)

    def read(self, query: p4r.CounterEntry) -> Iterator[p4r.CounterEntry]:
        """The cells that `query` selects, as they are now: id 0 all counters, no index all cells."""
        found: list[tuple[int, int, Sequence[CounterValue]]] = []
        for info in self.selected(self.pipeline.counters, query.counter_id, "counter"):
            name, number = info.preamble.name, info.preamble.id
            if query.counter_id and query.HasField("index"):
                (index,) = self.indices(info, query, "counter")
                found.append((number, index, [self.backend.counter_read(name, index)]))
            else:
                found.append((number, 0, self.backend.counter_read_all(name)))
        return _entries(found)


def _entries(found: list[tuple[int, int, Sequence[CounterValue]]]) -> Iterator[p4r.CounterEntry]:
    for number, first, values in found:
        for index, value in enumerate(values, first):
            yield p4r.CounterEntry(counter_id=number, index=p4r.Index(index=index), data=encode_counter(value))
