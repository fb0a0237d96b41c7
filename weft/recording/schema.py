"""The columns of a run's tables and their valid values. Readers check files against this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

LARGEST = 2**61
"""Limit of any number in a run's files: 26 days in picoseconds. Sums and differences of two fit int64."""
STEP_KINDS = ("write", "wait", "reduce", "copy", "aggregate", "delay", "read")
"""Kinds of a schedule's nodes, in the order of the engine's numbers."""


class Holds(Enum):
    """Kind of a column's cells."""

    NUMBER = "a number"
    WIDE_NUMBER = "a number of any width"
    HOST = "a host"
    PORT = "a port"
    PEER = "a port, or nothing at the end of a dark one"
    PLACE = "a port or a switch"
    STEP_KIND = "a kind of step"
    TEXT = "text"


@dataclass(frozen=True)
class ColumnSchema:
    """A column; `smallest` is a number's, `-1` standing for none. `may_be_empty`: names that there need not be."""

    name: str
    holds: Holds = Holds.NUMBER
    smallest: int = -1
    may_be_empty: bool = False


@dataclass(frozen=True)
class TableSchema:
    """Columns in order. `spans`: the columns of a row's beginning and end, the second not before the first."""

    columns: tuple[ColumnSchema, ...]
    spans: tuple[str, str] | None = None


def _numbers(*names: str) -> tuple[ColumnSchema, ...]:
    return tuple(ColumnSchema(name) for name in names)


def _time(name: str) -> ColumnSchema:
    return ColumnSchema(name, smallest=0)


TABLES: Mapping[str, TableSchema] = {
    "ports": TableSchema(
        (
            ColumnSchema("port", Holds.PORT),
            ColumnSchema("peer", Holds.PEER),
            *_numbers("rate_bps", "delay_ps", "queue_capacity_bytes", "transmitted_packets"),
            *_numbers("transmitted_bytes", "largest_queue_bytes", "tail_dropped_packets"),
        )
    ),
    "loads": TableSchema(
        (
            ColumnSchema("port", Holds.PORT),
            ColumnSchema("peer", Holds.PEER),
            ColumnSchema("kind", Holds.TEXT),
            ColumnSchema("transmitted_bytes"),
        )
    ),
    "queues": TableSchema(
        (
            _time("time_ps"),
            ColumnSchema("port", Holds.PORT),
            *_numbers("priority_class", "queue_bytes", "transmitted_bytes"),
        )
    ),
    "flows": TableSchema(
        (
            ColumnSchema("flow"),
            ColumnSchema("source", Holds.HOST),
            ColumnSchema("destination", Holds.HOST),
            *_numbers("plane", "run", "step", "size_bytes"),
            _time("start_ps"),
            _time("end_ps"),
            *_numbers("ideal_ps", "retransmitted_packets"),
            ColumnSchema("status", Holds.TEXT),
        ),
        spans=("start_ps", "end_ps"),
    ),
    "int": TableSchema(
        (
            _time("time_ps"),
            ColumnSchema("source", Holds.HOST),
            ColumnSchema("destination", Holds.HOST),
            *_numbers("plane", "psn", "path_id", "hop", "rate_bps", "queue_bytes", "tx_bytes", "timestamp_ns"),
        )
    ),
    "telemetry": TableSchema(
        (
            _time("time_ps"),
            ColumnSchema("sink", Holds.PLACE),
            ColumnSchema("sequence"),
            ColumnSchema("source", Holds.HOST),
            ColumnSchema("destination", Holds.HOST),
            *_numbers("protocol", "source_port", "destination_port", "queue_pair", "psn", "hop"),
            ColumnSchema("switch", Holds.PLACE),
            *_numbers("ingress_port", "egress_port", "latency_ns", "queue_id", "queue_bytes"),
            *_numbers("ingress_ns", "egress_ns"),
        )
    ),
    "drops": TableSchema(
        (
            _time("time_ps"),
            ColumnSchema("place", Holds.PLACE),
            ColumnSchema("reason", Holds.TEXT),
            *_numbers("priority_class", "size_bytes"),
        )
    ),
    "pauses": TableSchema(
        (
            ColumnSchema("port", Holds.PORT),
            ColumnSchema("priority_class"),
            _time("begin_ps"),
            _time("end_ps"),
        ),
        spans=("begin_ps", "end_ps"),
    ),
    "state_series": TableSchema(
        (
            _time("time_ps"),
            ColumnSchema("switch", Holds.PLACE),
            ColumnSchema("object", Holds.TEXT),
            ColumnSchema("key", Holds.TEXT, may_be_empty=True),
            ColumnSchema("quantity", Holds.TEXT),
            ColumnSchema("value", Holds.WIDE_NUMBER),
        )
    ),
    "timeline": TableSchema(
        (
            ColumnSchema("host", Holds.HOST),
            *_numbers("run", "step"),
            ColumnSchema("kind", Holds.STEP_KIND),
            ColumnSchema("peer", Holds.HOST, may_be_empty=True),
            *_numbers("plane", "size_bytes"),
            _time("start_ps"),
            _time("end_ps"),
        ),
        spans=("start_ps", "end_ps"),
    ),
}
