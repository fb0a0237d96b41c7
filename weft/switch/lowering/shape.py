"""What is known of a compiled program besides its code."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from weft.switch.lowering.register_layout import RegisterLayout

FUNCTIONS = (
    "clear",
    "parse",
    "ingress",
    "egress",
    "set_metadata_again",
    "finish",
    "deparse",
    "copy_fields",
    "pack_digest",
)
"""Entry points of a compiled program (SwitchProgram in switch/program.hpp)."""


@dataclass(frozen=True, slots=True)
class ProgramShape:
    """`runtime` holds the keyword arguments of `_core.SwitchProgram` but for the code.

    The others say where registers and the first cells of counters and meters are.
    """

    runtime: dict[str, Any]
    registers: dict[str, RegisterLayout]
    counter_offsets: dict[str, int]
    meter_offsets: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """As what `json` can write."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ProgramShape:
        """The inverse of `to_json`, but for tuples that have become lists."""
        registers = {name: RegisterLayout(**layout) for name, layout in data["registers"].items()}
        return cls(data["runtime"], registers, data["counter_offsets"], data["meter_offsets"])
