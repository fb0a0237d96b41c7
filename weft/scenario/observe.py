"""What a run records, beside its results."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from weft.scenario.values import Section, TimePs

PORT_PATTERN = r"\A\S+:\d+\z"
"""NODE:PORT, a switch's port by its number or a host's by its plane: p0l0:3, h2:1."""
PAIR_PATTERN = r"\A\S+->\S+\z"
"""SOURCE->DESTINATION, two hosts."""

_Port = Annotated[str, Field(pattern=PORT_PATTERN)]
_Pair = Annotated[str, Field(pattern=PAIR_PATTERN)]


class ObserveSection(Section):
    """What is recorded; nothing unless asked for. Files and columns: docs/results.md.

    `queues`: ports whose queues and rates are sampled every `interval`. `int_flows` (in a file: `int`): pairs of hosts,
    the path of whose data INT tells, acknowledgement by acknowledgement. `captures`: ports whose frames are kept.
    """

    interval: TimePs = Field(10**7, ge=1)
    queues: Literal["all"] | list[_Port] = Field(default=[])
    flows: bool = False
    int_flows: Literal["all"] | list[_Pair] = Field(default=[], alias="int")
    timelines: bool = False
    drops: bool = False
    pauses: bool = False
    captures: list[_Port] = Field(default=[])
    format: Literal["csv", "parquet"] = "csv"

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @property
    def of_switches(self) -> list[str]:
        """Keys asked for that only one who holds the switches can record."""
        return [name for name in ("queues", "drops", "pauses") if getattr(self, name)]

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
        }
        return [name for name, wanted in asked.items() if wanted]

    @property
    def any(self) -> bool:
        """Return whether a probe is needed."""
        return bool(self.of_switches or self.flows or self.int_flows or self.timelines)
