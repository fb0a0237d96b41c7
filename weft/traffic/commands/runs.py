"""Commands for a run that has been made ready, whatever its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from weft.traffic.answers import Done, Memory, RunState
from weft.traffic.commands.base import Command
from weft.traffic.messages import Between

DEFAULT_WAIT_S = 60.0


@dataclass(frozen=True)
class Start(Command[Done], name="start"):
    """Start a prepared run at an emulated time; `peers` is the memory of those that the host writes to, by rank."""

    run: int
    start_ps: int = 0
    peers: Mapping[int, Memory] = field(default_factory=dict)


@dataclass(frozen=True)
class Status(Command[RunState], name="status"):
    """Ask how far a run is."""

    run: int


@dataclass(frozen=True)
class Wait(Command[RunState], name="wait"):
    """Ask the same once the run has ended, or the time is up: real time, or under the virtual clock emulated time."""

    run: int
    timeout_s: Annotated[float, Between(0)] = DEFAULT_WAIT_S


@dataclass(frozen=True)
class Release(Command[Done], name="release"):
    """Release a run and its buffers."""

    run: int
