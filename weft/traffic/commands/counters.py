"""Commands that ask for a host's counters and settings, and that record its packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from weft.traffic.answers import Done, Saved, TransportInForce
from weft.traffic.commands.base import Command
from weft.traffic.host_stats import HostStats


@dataclass(frozen=True)
class AskStats(Command[HostStats], name="stats"):
    """Ask for all counters."""


@dataclass(frozen=True)
class ResetStats(Command[Done], name="reset_stats"):
    """Set all counters to zero."""


@dataclass(frozen=True)
class AskTransport(Command[TransportInForce], name="transport"):
    """Ask with which settings queue pairs are made, over an IP version, with INT or without."""

    ip_version: Literal[4, 6] = 4
    telemetry: bool = False


@dataclass(frozen=True)
class Capture(Command[Done], name="pcap"):
    """Record what a plane's port sends and receives, maybe without Weft's shims; without a path the capture ends."""

    plane: int
    path: str | None = None
    without_shims: bool = False


@dataclass(frozen=True)
class SaveRecorded(Command[Saved], name="recorded"):
    """Write what the host's probe has recorded to a NumPy archive."""

    path: str
