"""Indirect meters (P4Runtime §9.4)."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from switch.backend import MeterConfig
from switch.p4runtime.cells import ArrayCells
from switch.p4runtime.errors import UNIMPLEMENTED, RequestError, invalid, place
from switch.p4runtime.updates import require_modify


def decode_meter_config(message: p4r.MeterConfig) -> MeterConfig:
    """The backend's two-rate configuration. INVALID_ARGUMENT if it is none."""
    values = {"cir": message.cir, "cburst": message.cburst, "pir": message.pir, "pburst": message.pburst}
    for name, value in values.items():
        if value < 0:
            raise invalid(f"meter {name} {value} is negative")
    if message.eburst:
        raise invalid(f"meter eburst {message.eburst} is set, but meters have two rates, not one")
    if message.pir < message.cir:
        raise invalid(f"meter pir {message.pir} is below cir {message.cir}")
    return MeterConfig(message.cir, message.cburst, message.pir, message.pburst)


def encode_meter_config(config: MeterConfig) -> p4r.MeterConfig:
    """The message of a configuration."""
    return p4r.MeterConfig(
        cir=config.committed_rate,
        cburst=config.committed_burst,
        pir=config.peak_rate,
        pburst=config.peak_burst,
    )


def refuse_meter_counters(message: p4r.MeterEntry | p4r.DirectMeterEntry) -> None:
    """UNIMPLEMENTED if counts by colour are asked for (§9.4.3)."""
    if message.HasField("counter_data"):
        raise RequestError(UNIMPLEMENTED, "counters of meter colours are not supported")


class Meters(ArrayCells):
    """All indirect meters of a device."""

    def write(self, update_type: int, message: p4r.MeterEntry) -> None:
        """Configure one cell, or all cells if no index is given; no config lets everything pass green."""
        require_modify(update_type, "a meter entry")
        refuse_meter_counters(message)
        info = self.find(self.pipeline.meters, message.meter_id, "meter")
        with place(f"meter {info.preamble.name!r}"):
            config = decode_meter_config(message.config) if message.HasField("config") else None
            for index in self.indices(info, message, "meter"):
                self.backend.meter_write(info.preamble.name, index, config)

    def read(self, query: p4r.MeterEntry) -> Iterator[p4r.MeterEntry]:
        """The cells that `query` selects: id 0 all meters, no index all cells."""
        refuse_meter_counters(query)
        for info in self.selected(self.pipeline.meters, query.meter_id, "meter"):
            indices = self.indices(info, query, "meter") if query.meter_id else range(info.size)
            for index in indices:
                entry = p4r.MeterEntry(meter_id=info.preamble.id, index=p4r.Index(index=index))
                config = self.backend.meter_read(info.preamble.name, index)
                if config is not None:
                    entry.config.CopyFrom(encode_meter_config(config))
                yield entry
