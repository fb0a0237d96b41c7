"""How a host's queue pairs send: their congestion control."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from traffic.messages import Message, take

DEFAULT_CONGESTION_CONTROL = "fixed-window"


@dataclass(frozen=True)
class TransportSettings:
    """Options of every RC queue pair of a host.

    `congestion_control` is one of `engine.congestion_control_names()`, `parameters` some of
    `engine.congestion_parameter_names()`; what is left out fits the path. Or it is path/to/file.py:Class, and
    `parameters` are the class's.
    """

    congestion_control: str = DEFAULT_CONGESTION_CONTROL
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_message(cls, message: Message) -> TransportSettings:
        """Read the configuration's `transport`. Raises MessageError."""
        return cls(
            congestion_control=take(message, "congestion_control", str, DEFAULT_CONGESTION_CONTROL),
            parameters=take(message, "parameters", dict, {}),
        )

    def to_message(self) -> dict[str, Any]:
        """Return the settings as the endpoint is told them, of JSON's types."""
        return asdict(self) | {"parameters": dict(self.parameters)}


DEFAULT_TRANSPORT = TransportSettings()
