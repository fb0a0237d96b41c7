"""Indirect meters (P4Runtime §9.4), and encoding of all meters' configurations and counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from finsy.proto import p4i, p4r

from weft.switch.backend import NO_COLOUR_COUNTS, ColourCounts, MeterConfig, MeterState
from weft.switch.p4runtime.cells import ArrayCells
from weft.switch.p4runtime.counters import encode_counter
from weft.switch.p4runtime.errors import invalid, place, require_modify


def decode_meter_config(message: p4r.MeterConfig, meter_type: p4i.MeterSpec.Type.ValueType) -> MeterConfig:
    """Return the backend's configuration of a meter of this MeterSpec.Type. INVALID_ARGUMENT if invalid (§9.4)."""
    for field, value in message.ListFields():
        if value < 0:
            raise invalid(f"meter {field.name} {value} is negative")
    rates = message.cir, message.cburst, message.pir, message.pburst
    if meter_type != p4i.MeterSpec.SINGLE_RATE_THREE_COLOR and message.eburst:
        kind = p4i.MeterSpec.Type.Name(meter_type)
        raise invalid(f"meter eburst {message.eburst} is set, which a meter of type {kind} does not have")
    if meter_type == p4i.MeterSpec.TWO_RATE_THREE_COLOR:
        if message.pir < message.cir:
            raise invalid(f"meter pir {message.pir} is below cir {message.cir}")
        return MeterConfig(*rates)
    if message.pir != message.cir or message.pburst != message.cburst:
        raise invalid(
            f"meter pir {message.pir} and pburst {message.pburst} are not cir {message.cir} and cburst"
            f" {message.cburst}, as a meter of a single rate needs"
        )
    return MeterConfig(*rates, excess_burst=message.eburst)


def encode_meter_config(config: MeterConfig) -> p4r.MeterConfig:
    """Return the message for a configuration."""
    return p4r.MeterConfig(
        cir=config.committed_rate,
        cburst=config.committed_burst,
        pir=config.peak_rate,
        pburst=config.peak_burst,
        eburst=config.excess_burst or 0,
    )


def encode_colour_counts(counts: ColourCounts) -> p4r.MeterCounterData:
    """Return the message for a meter's counts."""
    green, yellow, red = map(encode_counter, counts)
    return p4r.MeterCounterData(green=green, yellow=yellow, red=red)


def check_colour_counts(message: p4r.MeterCounterData) -> None:
    """Raise INVALID_ARGUMENT unless all counts are 0: they can only be cleared (§9.4.1)."""
    for colour in ("green", "yellow", "red"):
        data = getattr(message, colour)
        if data.packet_count or data.byte_count:
            raise invalid(
                f"the {colour} counts are {data.packet_count} packets, {data.byte_count} bytes, but counts of"
                " colours can only be cleared",
                valid="0",
            )


def cleared(state: MeterState) -> MeterState:
    """Return the same meter with counts of 0."""
    return replace(state, counts=NO_COLOUR_COUNTS)


def add_meter(
    state: MeterState,
    query: p4r.MeterEntry | p4r.DirectMeterEntry,
    entry: p4r.MeterEntry | p4r.DirectMeterEntry,
) -> None:
    """Write a meter to `entry`, with counts only if the query has the field."""
    if state.config is not None:
        entry.config.CopyFrom(encode_meter_config(state.config))
    if query.HasField("counter_data"):
        entry.counter_data.CopyFrom(encode_colour_counts(state.counts))


class Meters(ArrayCells):
    """All indirect meters of a device."""

    def write(self, update_type: int, message: p4r.MeterEntry) -> None:
        """Configure one cell, or all cells if no index is given; without a config all packets are green."""
        require_modify(update_type, "a meter entry")
        info = self.find(self.pipeline.meters, message.meter_id, "meter")
        name = info.preamble.name
        with place(f"meter {name!r}"):
            check_colour_counts(message.counter_data)
            config = decode_meter_config(message.config, info.spec.type) if message.HasField("config") else None
            for index in self.indices(info, message, "meter"):
                self.backend.meter_write(name, index, config)
                if message.HasField("counter_data"):
                    with self.backend.atomically():
                        self.backend.meter_restore(name, index, cleared(self.backend.meter_read(name, index)))

    def read(self, query: p4r.MeterEntry) -> Iterator[p4r.MeterEntry]:
        """The cells that `query` selects, as they are now: id 0 all meters, no index all cells."""
        found = [
            (info.preamble.id, index, self.backend.meter_read(info.preamble.name, index))
            for info in self.selected(self.pipeline.meters, query.meter_id, "meter")
            for index in self._selected_cells(info, query)
        ]
        return _entries(query, found)

    def states(self, query: p4r.MeterEntry) -> Iterator[tuple[str, int, MeterState]]:
        """Name, index and state of the cells that `query` selects."""
        for info in self.selected(self.pipeline.meters, query.meter_id, "meter"):
            for index in self._selected_cells(info, query):
                yield info.preamble.name, index, self.backend.meter_read(info.preamble.name, index)

    def _selected_cells(self, info: p4i.Meter, query: p4r.MeterEntry) -> Iterable[int]:
        return self.indices(info, query, "meter") if query.meter_id else range(info.size)


def _entries(query: p4r.MeterEntry, found: list[tuple[int, int, MeterState]]) -> Iterator[p4r.MeterEntry]:
    for number, index, state in found:
        entry = p4r.MeterEntry(meter_id=number, index=p4r.Index(index=index))
        add_meter(state, query, entry)
        yield entry
