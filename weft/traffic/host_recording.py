"""What the probe of a host's engine records."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from weft.traffic.messages import Message, take, take_list


@dataclass(frozen=True)
class HostRecording:
    """Messages that it sends, INT stacks that come back from these ranks or from all, steps of its schedules."""

    messages: bool = False
    telemetry_from: tuple[int, ...] = ()
    all_telemetry: bool = False
    steps: bool = False

    @property
    def any(self) -> bool:
        """Return whether anything is recorded."""
        return self.messages or self.steps or self.all_telemetry or bool(self.telemetry_from)

    def telemetry_of(self, peer: int) -> bool:
        """Return whether stacks that this rank sends back are recorded."""
        return self.all_telemetry or peer in self.telemetry_from

    def to_message(self) -> dict[str, Any]:
        """Return the configuration's `recording`, of JSON's types."""
        return asdict(self) | {"telemetry_from": list(self.telemetry_from)}

    @classmethod
    def from_message(cls, message: Message) -> HostRecording:
        """Read the configuration's `recording`; what is missing is not recorded. Raises MessageError."""
        return cls(
            messages=take(message, "messages", bool, False),
            telemetry_from=tuple(take_list(message, "telemetry_from", int))
            if "telemetry_from" in message
            else (),
            all_telemetry=take(message, "all_telemetry", bool, False),
            steps=take(message, "steps", bool, False),
        )
