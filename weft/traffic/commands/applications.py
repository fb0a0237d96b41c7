"""Commands for programs on a host's own IP stack."""

from __future__ import annotations

from dataclasses import dataclass

from weft.traffic.answers import ApplicationRecords, Prepared
from weft.traffic.commands.base import Command
from weft.traffic.programs.base import Program


@dataclass(frozen=True)
class PrepareApplications(Command[Prepared], name="applications", in_process=True):
    """Make programs on the host's own IP stack ready."""

    run: int
    programs: tuple[Program, ...]


@dataclass(frozen=True)
class AskApplicationRecords(Command[ApplicationRecords], name="application_records", in_process=True):
    """Ask what the programs of a run have found."""

    run: int
