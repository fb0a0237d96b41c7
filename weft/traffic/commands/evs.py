"""Commands for the entropy values (EVs) of a host's queue pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from weft.traffic.answers import Done, EntropyValues
from weft.traffic.commands.base import Command


class EvOfPeer(NamedTuple):
    """An EV to a peer's address: the same path for all queue pairs to it, where EVs name paths."""

    peer: str
    value: int


@dataclass(frozen=True)
class AskEvs(Command[EntropyValues], name="evs"):
    """Ask for the EVs of all connections."""


@dataclass(frozen=True)
class SetEvs(Command[Done], name="set_evs"):
    """Deny EVs, or allow them again; all or none."""

    evs: tuple[EvOfPeer, ...]
    denied: bool


@dataclass(frozen=True)
class ProbeEvs(Command[Done], name="probe_evs"):
    """Send an EV probe over each; later answers of `evs` have the outcomes, until the next command."""

    evs: tuple[EvOfPeer, ...]
