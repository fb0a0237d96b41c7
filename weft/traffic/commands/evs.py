"""Commands for the entropy values (EVs) of a host's queue pairs, their profiles and their events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from weft.traffic.answers import Done, EntropyValues, EvEvents, EvProfilesOfHost
from weft.traffic.commands.base import Command
from weft.traffic.ev_profiles import EvProfileAttributes
from weft.traffic.messages import Between

MOST_EV_EVENTS = 4096
"""EV events that wait at a NIC to be taken (kMostEvents in engine/hosts/mrc/mrc_endpoint.hpp)."""


class EvOfPeer(NamedTuple):
    """An EV to a peer's address: the same path for all queue pairs to it, where EVs name paths."""

    peer: str
    value: int


@dataclass(frozen=True)
class AskEvs(Command[EntropyValues], name="evs"):
    """Ask for the EVs of all queue pairs."""


@dataclass(frozen=True)
class SetEvs(Command[Done], name="set_evs"):
    """Deny EVs, or allow them again; all or none."""

    evs: tuple[EvOfPeer, ...]
    denied: bool


@dataclass(frozen=True)
class ProbeEvs(Command[Done], name="probe_evs"):
    """Send an EV probe over each; later answers of `evs` have the outcomes, until the next command."""

    evs: tuple[EvOfPeer, ...]


@dataclass(frozen=True)
class AskEvProfiles(Command[EvProfilesOfHost], name="ev_profiles"):
    """Ask for the host's EV profiles."""


@dataclass(frozen=True)
class ModifyEvProfile(Command[Done], name="modify_ev_profile"):
    """Change an EV profile."""

    profile_id: int
    attributes: EvProfileAttributes


@dataclass(frozen=True)
class AssignEvProfile(Command[Done], name="assign_ev_profile"):
    """Have queue pairs that are made from now on take an EV profile."""

    profile_id: int


@dataclass(frozen=True)
class TakeEvEvents(Command[EvEvents], name="ev_events"):
    """Take the oldest EV events that nobody has taken, at most so many."""

    most: Annotated[int, Between(1, MOST_EV_EVENTS)] = MOST_EV_EVENTS


OPERATORS_COMMANDS = (AskEvs, SetEvs, ProbeEvs, AskEvProfiles, ModifyEvProfile, AssignEvProfile, TakeEvEvents)
"""Those that operators may give."""
