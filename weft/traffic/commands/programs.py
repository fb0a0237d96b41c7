"""Commands for users' programs (`weft.rdma`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from weft.rdma.out_of_band import OutOfBandMessage
from weft.traffic.answers import Done, ProgramLeft, ProgramProgress
from weft.traffic.commands.base import Command
from weft.traffic.commands.connections import QueuePairNumber


@dataclass(frozen=True)
class StartProgram(Command[Done], name="program"):
    """Load a user's program, `path/to/file.py:Name`, and let it run with these parameters; see `weft.rdma`.

    `hosts` are all hosts of the run's programs, `ranks` the ranks of all hosts.
    """

    run: int
    reference: str
    parameters: Mapping[str, object]
    hosts: tuple[str, ...]
    ranks: Mapping[str, int]
    first_queue_pair: QueuePairNumber
    telemetry: bool = False
    ip_version: Literal[4, 6] = 4


@dataclass(frozen=True)
class FollowProgram(Command[ProgramProgress], name="program_progress"):
    """Hand a program messages of others, and ask for those that it has sent."""

    run: int
    delivered: tuple[OutOfBandMessage, ...] = ()


@dataclass(frozen=True)
class EndProgram(Command[ProgramLeft], name="end_program"):
    """End a program if it has not ended, forget it, and ask for what it has left."""

    run: int
