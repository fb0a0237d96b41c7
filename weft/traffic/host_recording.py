"""Records of the probe in a host's engine."""

from __future__ import annotations

from dataclasses import dataclass


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
