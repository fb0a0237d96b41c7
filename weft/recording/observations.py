"""Turns what probes recorded into named tables, the same for any number of engines in the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from weft.engine import completion_status_names, drop_names
from weft.quantities.arrays import Integers
from weft.recording.ideal_times import IdealTimes
from weft.recording.places import Places
from weft.recording.schema import STEP_KINDS
from weft.recording.tables import Names, Table, write_table
from weft.recording.trace import Moments, write_trace
from weft.scenario.options import FabricOptions
from weft.switch.daemon.stats import SwitchesStats
from weft.topologies import FabricSpec
from weft.topologies.int_rates import STANDARD_INT_RATES, int_rates
from weft.traffic.host_stats import HostStats
from weft.traffic.int_stack import QUEUE_CELL_BYTES, TX_UNIT_BYTES

if TYPE_CHECKING:
    from weft.engine._core import PortStats

Recorded = Mapping[str, Mapping[str, Integers]]
"""A probe's tables (`Probe.take`), columns by name."""

# Sort keys of a table's rows: independent of which engine recorded them, and when.
_ORDER = {
    "queues": ("time_ps", "place", "priority_class"),
    "flows": ("start_ps", "source", "destination", "plane", "run", "step"),
    "telemetry": ("time_ps", "source", "destination", "plane", "psn", "hop"),
    "drops": ("time_ps", "place", "reason", "priority_class", "size_bytes"),
    "pauses": ("begin_ps", "place", "priority_class", "end_ps"),
    "steps": ("start_ps", "rank", "run", "step"),
}


@dataclass
class Observations:
    """Tables by the names of their files; `rows_lost`: what was beyond the probes' limit."""

    tables: dict[str, Table] = field(default_factory=dict)
    rows_lost: int = 0
    file_format: Literal["csv", "parquet"] = "csv"

    def save(self, directory: Path, moments: Moments | None = None) -> None:
        """Write every table, and a trace where there is a timeline, into a directory."""
        for name, table in self.tables.items():
            write_table(table, directory / name, self.file_format)
        if "timeline" in self.tables:
            write_trace(self.tables, directory / "trace.json", moments)


def read_recorded(path: Path) -> Recorded:
    """Read what an endpoint wrote (`weft.traffic.host.Host.save_recorded`)."""
    tables: dict[str, dict[str, Integers]] = {}
    with np.load(path, allow_pickle=False) as archive:
        for key in archive.files:
            table, _, column = key.partition(".")
            tables.setdefault(table, {})[column] = archive[key]
    return tables


def merged(recorded: Iterable[Recorded]) -> dict[str, dict[str, Integers]]:
    """Join the tables of several probes, in an order of their own."""
    each = list(recorded)
    tables: dict[str, dict[str, Integers]] = {}
    for name in each[0] if each else ():
        columns = {
            column: np.concatenate([tables_of_one[name][column] for tables_of_one in each]) for column in each[0][name]
        }
        # lexsort takes the most significant key last.
        order = np.lexsort([columns[key] for key in reversed(_ORDER[name])])
        tables[name] = {column: values[order] for column, values in columns.items()}
    return tables


def named_tables(
    fabric: FabricSpec, options: FabricOptions, recorded: Mapping[str, Mapping[str, Integers]]
) -> dict[str, Table]:
    """Replace numbers by names, and INT's units by bytes, in the requested tables."""
    namer = _Namer(fabric, options)
    made = {
        "queues": ("queues", namer.queues),
        "flows": ("flows", namer.flows),
        "int": ("telemetry", namer.telemetry),
        "drops": ("drops", namer.drops),
        "pauses": ("pauses", namer.pauses),
        "timeline": ("steps", namer.steps),
    }
    wanted = {name: made[name] for name in options.observe.tables if name in made}
    return {name: make(recorded[table]) for name, (table, make) in wanted.items() if table in recorded}


class _Namer:
    def __init__(self, fabric: FabricSpec, options: FabricOptions) -> None:
        self._hosts = [host.name for host in fabric.hosts]
        rates = int_rates(fabric) if options.int_telemetry else STANDARD_INT_RATES
        self._int_rates = np.array(rates, np.int64)
        self._places = Places(fabric).names
        self._ideal = IdealTimes.of_fabric(fabric, options)

    def _host(self, ranks: Integers) -> Names:
        return Names(ranks, self._hosts)

    def _place(self, numbers: Integers) -> Names:
        return Names(numbers, self._places)

    def queues(self, columns: Mapping[str, Integers]) -> Table:
        return {
            "time_ps": columns["time_ps"],
            "port": self._place(columns["place"]),
            "priority_class": columns["priority_class"],
            "queue_bytes": columns["queue_bytes"],
            "transmitted_bytes": columns["transmitted_bytes"],
        }

    def flows(self, columns: Mapping[str, Integers]) -> Table:
        flows = (columns[key] for key in ("source", "destination", "plane", "size_bytes"))
        ideal_ps = self._ideal.of(*flows)
        return {
            "flow": np.arange(len(ideal_ps), dtype=np.int64),
            "source": self._host(columns["source"]),
            "destination": self._host(columns["destination"]),
            "plane": columns["plane"],
            "run": columns["run"],
            "step": columns["step"],
            "size_bytes": columns["size_bytes"],
            "start_ps": columns["start_ps"],
            "end_ps": columns["end_ps"],
            "ideal_ps": ideal_ps,
            "retransmitted_packets": columns["retransmitted_packets"],
            "status": Names(columns["status"], completion_status_names()),
        }

    def telemetry(self, columns: Mapping[str, Integers]) -> Table:
        return {
            "time_ps": columns["time_ps"],
            "source": self._host(columns["source"]),
            "destination": self._host(columns["destination"]),
            "plane": columns["plane"],
            "psn": columns["psn"],
            "path_id": columns["path_id"],
            "hop": columns["hop"],
            "rate_bps": self._int_rates[columns["rate_code"]],
            "queue_bytes": columns["queue_cells"] * QUEUE_CELL_BYTES,
            "tx_bytes": columns["tx_units"] * TX_UNIT_BYTES,
            "timestamp_ns": columns["timestamp_ns"],
        }

    def drops(self, columns: Mapping[str, Integers]) -> Table:
        names = dict(sorted(drop_names().items()))
        codes = np.array(list(names), np.int64)
        return {
            "time_ps": columns["time_ps"],
            "place": self._place(columns["place"]),
            "reason": Names(np.searchsorted(codes, columns["reason"]), list(names.values())),
            "priority_class": columns["priority_class"],
            "size_bytes": columns["size_bytes"],
        }

    def pauses(self, columns: Mapping[str, Integers]) -> Table:
        return {
            "port": self._place(columns["place"]),
            "priority_class": columns["priority_class"],
            "begin_ps": columns["begin_ps"],
            "end_ps": columns["end_ps"],
        }

    def steps(self, columns: Mapping[str, Integers]) -> Table:
        return {
            "host": self._host(columns["rank"]),
            "run": columns["run"],
            "step": columns["step"],
            "kind": Names(columns["kind"], STEP_KINDS),
            "peer": self._host(columns["peer"]),
            "plane": columns["plane"],
            "size_bytes": columns["size_bytes"],
            "start_ps": columns["start_ps"],
            "end_ps": columns["end_ps"],
        }


def ports_table(
    fabric: FabricSpec,
    switch_stats: SwitchesStats | None,
    endpoint_stats: Iterable[HostStats],
) -> Table:
    """Properties and counters of every port over the run; -1 for what BMv2 does not report."""
    places = Places(fabric)
    counted: dict[str, PortStats] = {}
    for name, switch in switch_stats["switches"].items() if switch_stats else ():
        for number, port in switch["ports"].items():
            counted[f"{name}:{number}"] = port["transmit"]
    for endpoint in endpoint_stats:
        for plane in endpoint["planes"]:
            counted[f"{endpoint['name']}:{plane['plane']}"] = plane["transmit"]
    ports = places.ports

    def column(*keys: str) -> NDArray[np.int64]:
        values = []
        for port in ports:
            value: Any = counted.get(port)
            for key in keys if value is not None else ():
                value = value[key]
            values.append(-1 if value is None else value)
        return np.array(values, np.int64)

    return {
        "port": Names(np.arange(len(ports), dtype=np.int64), ports),
        "peer": Names.of([places.peer(port) for port in ports]),
        "rate_bps": np.array([places.link(port).rate_bps for port in ports], np.int64),
        "delay_ps": np.array([places.link(port).delay_ps for port in ports], np.int64),
        "queue_capacity_bytes": np.array([places.link(port).queue_capacity_bytes for port in ports], np.int64),
        "transmitted_packets": column("transmitted", "packets"),
        "transmitted_bytes": column("transmitted", "bytes"),
        "largest_queue_bytes": column("max_queue_depth_bytes"),
        "tail_dropped_packets": column("tail_dropped", "packets"),
    }
