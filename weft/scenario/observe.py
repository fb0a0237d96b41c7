"""Records of a run, in addition to its results."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weft.quantities.definitions import TIME, PositiveTime
from weft.quantities.example import Example
from weft.scenario.values import Section, Text
from weft.switch.debug.series_items import ITEM

_Port = Annotated[str, Text("a port, NODE:NUMBER", r"\A[^\s:]+:[0-9]{1,6}\Z", "p0l0:3")]
"""A switch's port by its number, or a host's by its plane: p0l0:3, h2:1."""
_Pair = Annotated[str, Text("a pair of hosts, SOURCE->DESTINATION", r"\A[^\s>]+->[^\s>]+\Z", "h0->h3")]


_Array = Annotated[str, Text("a name or pattern", r"\A[^\s]{1,256}\Z", "MyIngress.*")]
"""Name of a counter or register in P4Info, maybe with `*` and `?`."""

_Series = Annotated[str, Text("a name or pattern, maybe with cells", rf"\A{ITEM}\Z", "port_tx_bytes[0..7]")]
"""Name of a table, counter, meter or register; for an array maybe one cell or a range."""


class ObserveSection(Section):
    """Records; none unless asked for. Files and columns: docs/results.md."""

    interval: Annotated[int, TIME.between(1)] = 10**7
    """Between samples of queues and rates."""
    queues: Literal["all"] | list[_Port] = Field(default=[])
    """Ports for samples of queues and rates."""
    flows: bool = False
    """Every message's completion time."""
    int_flows: Literal["all"] | list[_Pair] = Field(default=[], alias="int")
    """Pairs of hosts; INT's record of the path of their data is kept for every acknowledgement."""
    timelines: bool = False
    """Times of every host's schedule steps."""
    loads: bool = False
    """Bytes that each port sends of each kind of jobs' traffic."""
    drops: bool = False
    """Every drop: when, where, why."""
    pauses: bool = False
    """Every pause of flow control."""
    counters: Literal["all"] | list[_Array] = Field(default=[])
    """Counters of the P4 program to keep the final values of, direct ones, too; names or patterns."""
    registers: Literal["all"] | list[_Array] = Field(default=[])
    """Registers of the P4 program to keep the final values of; names or patterns."""
    state_at: list[PositiveTime] = Field(default=[], max_length=100)
    """Moments at which what switches hold is kept: entries, registers, counters, groups (docs/debugging.md)."""
    state_series: Annotated[list[_Series], Example("['port_tx_bytes[0..7]']")] = Field(default=[], max_length=100)
    """Registers, counters, meters and tables of the P4 program that are sampled: names or patterns, `NAME[0..7]`."""
    state_interval: Annotated[int, TIME.between(1)] | None = None
    """Between samples of `state_series`; by default `interval`."""
    captures: list[_Port] = Field(default=[])
    """Ports to keep all frames of, in pcapng files."""
    capture_shims: Literal["keep", "remove"] = "keep"
    """Whether captures, also with `--pcap`, keep Weft's shims or show IP frames as sent without them."""
    format: Literal["csv", "parquet"] = "csv"
    """Format of the tables."""

    @property
    def of_switches(self) -> list[str]:
        """Keys asked for that only one who holds the switches can record."""
        return [name for name in ("queues", "loads", "drops", "pauses", "state_series") if getattr(self, name)]

    @property
    def tables(self) -> list[str]:
        """Names of the tables asked for (`weft.recording.schema`)."""
        asked = {
            "queues": self.queues,
            "flows": self.flows,
            "int": self.int_flows,
            "drops": self.drops,
            "pauses": self.pauses,
            "timeline": self.timelines,
            "loads": self.loads,
            "state_series": self.state_series,
        }
        return [name for name, wanted in asked.items() if wanted]

    @property
    def removes_shims(self) -> bool:
        """Return whether captures leave out Weft's shims."""
        return self.capture_shims == "remove"

    @property
    def any(self) -> bool:
        """Return whether a probe is needed."""
        return any(name not in ("loads", "state_series") for name in self.tables)
