"""Description of a compiled program besides its code."""

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

SPECIALISED_FUNCTIONS = ("arrive", "send")
"""Entry points of specialised code, which has the plain program's for the rest."""


@dataclass(frozen=True, slots=True)
class ProgramShape:
    """`runtime` has the keyword arguments of `_core.SwitchProgram` except the code.

    The other fields have the places of registers and of the first cells of counters and meters.
    """

    runtime: dict[str, Any]
    registers: dict[str, RegisterLayout]
    counter_offsets: dict[str, int]
    meter_offsets: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return plain data for `json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ProgramShape:
        """Invert `to_json`, except that tuples have become lists."""
        registers = {name: RegisterLayout(**layout) for name, layout in data["registers"].items()}
        return cls(data["runtime"], registers, data["counter_offsets"], data["meter_offsets"])
