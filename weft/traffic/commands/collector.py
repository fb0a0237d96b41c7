"""Commands for a host that collects telemetry reports."""

from __future__ import annotations

from dataclasses import dataclass

from weft.traffic.answers import Done, Saved
from weft.traffic.commands.base import Command


@dataclass(frozen=True)
class Collect(Command[Done], name="collect"):
    """Keep the datagrams that arrive at a UDP port from now on."""

    port: int


@dataclass(frozen=True)
class SaveCollected(Command[Saved], name="collected"):
    """Write the datagrams kept so far to a NumPy archive (`weft.traffic.collector`)."""

    path: str
