"""Operators list, deny, allow and probe entropy values (EVs) of hosts' queue pairs, and their profiles and events.

The work is divided as the controller's interface of MRC (`mrc_ctl.h`) divides it: it chooses EVs by their values or by
what they stand for, sets their states, and probes them apart from the traffic. It configures profiles of EVs, which
queue pairs take when they are made, and polls events, which tell of changes of states.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any, TypedDict

from weft.controller.elements import Element, named_element
from weft.controller.errors import SettingError
from weft.topologies import FabricSpec
from weft.traffic.answers import EntropyValue
from weft.traffic.commands.base import Command
from weft.traffic.commands.evs import (
    MOST_EV_EVENTS,
    AskEvProfiles,
    AskEvs,
    AssignEvProfile,
    EvOfPeer,
    ModifyEvProfile,
    ProbeEvs,
    SetEvs,
    TakeEvEvents,
)
from weft.traffic.ev_profiles import EvProfileAttributes
from weft.traffic.messages import MessageError, read_message
from weft.traffic.transports.registry import TRANSPORT_KINDS

Ask = Callable[[Mapping[int, Command[Any]]], Mapping[int, Any]]
"""Has hosts carry out a command each, by their indices, and returns the answers."""
_MOST_NAMED = 8
_ATTEMPTS = 3
"""A probe is repeated, since its answer may be lost on its own path."""


class EvRow(TypedDict):
    """An EV of a queue pair: as `EntropyValue`, and the name of the other host, `peer_host`."""

    queue_pair: int | None
    peer: str
    peer_host: str
    plane: int
    value: int
    nodes: tuple[str, ...]
    outer_destination: str
    state: str
    active: bool
    turns: int
    probed: bool
    round_trip_ps: int | None


class EvProfileRow(TypedDict):
    """An EV profile of a host, see `weft.traffic.ev_profiles.EvProfile`; `evs` are plane and value of each."""

    profile_id: int
    state: str
    ev_mode: str | None
    ev_count: int | None
    ev_backups: int
    ev_min_active: int | None
    ev_event_mask: tuple[str, ...] | None
    evs: tuple[tuple[int, int], ...]
    assigned: bool
    queue_pairs: int


class EvEventRow(TypedDict):
    """As `weft.traffic.answers.EvEvent`, and the name of the other host, `peer_host`."""

    time_ps: int
    profile_id: int
    queue_pair: int
    peer: str
    peer_host: str
    plane: int
    value: int
    state: str
    drop_count: int


class EvProfileKeys(TypedDict, total=False):
    """The keys of `weft.traffic.ev_profiles.EvProfileAttributes`."""

    state: str
    ev_mode: str
    ev_count: int
    ev_backups: int
    ev_min_active: int
    ev_event_mask: Sequence[str]
    evs: Sequence[tuple[int, int]]


class EvChoiceKeys(TypedDict, total=False):
    """The keys of `EvChoice`."""

    peer: str | None
    value: int | None
    plane: int | None
    link: str | None
    switch: str | None


@dataclass(frozen=True)
class EvChoice:
    """Which EVs of a host; None: all.

    Attributes:
        peer: name of the host that they lead to.
        value: of the EV.
        plane: its number.
        link: that their paths take, as NODE-NODE.
        switch: that their paths take.

    """

    peer: str | None = None
    value: int | None = None
    plane: int | None = None
    link: str | None = None
    switch: str | None = None

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> EvChoice:
        """Return the choice in a message. Raises SettingError for a value of another type."""
        given = {each.name: message[each.name] for each in fields(cls) if message.get(each.name) is not None}
        for name, value in given.items():
            kind = int if name in ("value", "plane") else str
            if type(value) is not kind:
                raise SettingError(f"{name} is {value!r}", valid="a whole number" if kind is int else "a name")
        return cls(**given)


class EvControl:
    """Carries out an operator's requests. `let_arrive` is called between probes and the look at their answers.

    Raises TopologyError or SettingError for a host, peer, value, plane, link or switch that is not there, for a
    transport without EVs, and, except of `rows`, if no EV is chosen; and what `ask` raises if a host refuses.
    """

    def __init__(self, fabric: FabricSpec, protocol: str, ask: Ask, let_arrive: Callable[[], object]) -> None:
        self._fabric = fabric
        self._protocol = protocol
        self._ask = ask
        self._let_arrive = let_arrive
        self._hosts = {
            str(ip.ip): host.name for host in fabric.hosts for nic in host.nics for ip in (nic.ipv4, nic.ipv6)
        }
        self._probing = threading.Lock()
        """A host gives up an operator's probes for the next one's."""

    def rows(self, host: str, choice: EvChoice) -> list[EvRow]:
        """Return the EVs of a host's queue pairs."""
        return [self._row(each) for each in self._chosen(host, choice)]

    def set_denied(self, host: str, choice: EvChoice, *, denied: bool) -> int:
        """Deny or allow EVs, and return how many; queue pairs to the same peer that come later follow."""
        evs = self._evs(self._some_chosen(host, choice))
        self._ask({self._fabric.host(host).index: SetEvs(evs, denied)})
        return len(evs)

    def probe(self, host: str, choice: EvChoice) -> list[EvRow]:
        """Send EV probes over each EV, up to three, and return the EVs; one without a round trip has no answer."""
        with self._probing:
            index = self._fabric.host(host).index
            left = self._evs(self._some_chosen(host, choice, of_queue_pairs=True))
            found: dict[EvOfPeer, EvRow] = {}
            for _ in range(_ATTEMPTS):
                self._ask({index: ProbeEvs(left)})
                self._let_arrive()
                found |= {EvOfPeer(row["peer"], row["value"]): row for row in self.rows(host, choice) if row["probed"]}
                left = tuple(ev for ev, row in found.items() if row["round_trip_ps"] is None)
                if not left:
                    break
            return list(found.values())

    def profiles(self, host: str) -> list[EvProfileRow]:
        """Return a host's EV profiles; one that is not there is in the state init."""
        self._require_evs()
        index = self._fabric.host(host).index
        return [EvProfileRow(**asdict(each)) for each in self._ask({index: AskEvProfiles()})[index].profiles]  # type: ignore[typeddict-item]

    def modify_profile(self, host: str, profile_id: int, attributes: Mapping[str, Any]) -> None:
        """Change an EV profile. Raises SettingError also for an id or attributes of another type."""
        self._require_evs()
        _require_number("profile_id", profile_id)
        try:
            read = read_message(EvProfileAttributes, attributes)
        except MessageError as error:
            raise SettingError(str(error)) from None
        self._ask({self._fabric.host(host).index: ModifyEvProfile(profile_id, read)})

    def assign_profile(self, host: str, profile_id: int) -> None:
        """Have a host's queue pairs that are made from now on take an EV profile."""
        self._require_evs()
        _require_number("profile_id", profile_id)
        self._ask({self._fabric.host(host).index: AssignEvProfile(profile_id)})

    def take_events(self, host: str, most: int = MOST_EV_EVENTS) -> list[EvEventRow]:
        """Take a host's oldest EV events that nobody has taken, at most so many."""
        self._require_evs()
        if type(most) is not int or not 1 <= most <= MOST_EV_EVENTS:
            raise SettingError(f"most is {most!r}", valid=f"1 to {MOST_EV_EVENTS}")
        index = self._fabric.host(host).index
        taken = self._ask({index: TakeEvEvents(most)})[index].events
        return [EvEventRow(**asdict(each), peer_host=self._hosts.get(each.peer, each.peer)) for each in taken]  # type: ignore[typeddict-item]

    def _require_evs(self) -> None:
        if not TRANSPORT_KINDS[self._protocol].has_evs:
            carriers = (each.name for each in TRANSPORT_KINDS.values() if each.has_evs)
            raise SettingError(f"transport.protocol: {self._protocol} has no EVs", valid=", ".join(carriers))

    @staticmethod
    def _evs(chosen: Iterable[EntropyValue]) -> tuple[EvOfPeer, ...]:
        return tuple(dict.fromkeys(EvOfPeer(each.peer, each.value) for each in chosen))

    def _row(self, ev: EntropyValue) -> EvRow:
        row = asdict(ev)
        return EvRow(**{**row, "peer_host": self._hosts.get(ev.peer, ev.peer)})  # type: ignore[typeddict-item]

    def _some_chosen(self, host: str, choice: EvChoice, *, of_queue_pairs: bool = False) -> list[EntropyValue]:
        """Return the chosen EVs, or only those that a queue pair has now. Raises SettingError if there are none."""
        chosen, known = (
            [each for each in self._chosen(host, each_choice) if each.queue_pair is not None or not of_queue_pairs]
            for each_choice in (choice, EvChoice())
        )
        if not chosen:
            has = "no queue pair with such an EV now" if of_queue_pairs else "no such EV"
            raise SettingError(f"{host} has {has}", valid=_values(known))
        return chosen

    def _chosen(self, host: str, choice: EvChoice) -> list[EntropyValue]:
        self._require_evs()
        index = self._fabric.host(host).index
        evs: list[EntropyValue] = list(self._ask({index: AskEvs()})[index].evs)
        if choice.peer is not None:
            evs = self._to_peer(host, self._fabric.host(choice.peer).name, evs)
        if choice.plane is not None:
            named_element(self._fabric, "plane", str(choice.plane))
            evs = [each for each in evs if each.plane == choice.plane]
        for kind, name in (("link", choice.link), ("switch", choice.switch)):
            if name is not None:
                evs = self._over(host, named_element(self._fabric, kind, name), evs)
        if choice.value is not None:
            known = evs
            evs = [each for each in known if each.value == choice.value]
            if not evs:
                raise SettingError(f"{host} has no EV 0x{choice.value:08x}", valid=_values(known))
        return evs

    def _to_peer(self, host: str, peer: str, evs: list[EntropyValue]) -> list[EntropyValue]:
        found = [each for each in evs if self._hosts.get(each.peer) == peer]
        if not found:
            raise SettingError(
                f"{host} has no queue pair of MRC to {peer}",
                valid=_some(self._hosts.get(each.peer, "") for each in evs),
            )
        return found

    @staticmethod
    def _over(host: str, element: Element, evs: list[EntropyValue]) -> list[EntropyValue]:
        if evs and not any(each.nodes for each in evs):
            raise SettingError(f"{element.kind}: switches hash EVs, which name no paths", valid="value, plane, peer")
        found = [each for each in evs if _passes(each.nodes, element)]
        if not found:
            raise SettingError(f"no EV of {host} passes {element.name}")
        return found


def _require_number(name: str, value: object) -> None:
    if type(value) is not int:
        raise SettingError(f"{name} is {value!r}", valid="a whole number")


def _passes(nodes: tuple[str, ...], element: Element) -> bool:
    if element.link is None:
        return element.switch in nodes
    ends = {element.link.a.node, element.link.b.node}
    return any({one, next_one} == ends for one, next_one in pairwise(nodes))


def _values(evs: Iterable[EntropyValue]) -> str:
    return _some(f"0x{each.value:08x}" for each in evs)


def _some(values: Iterable[str]) -> str:
    """Return valid values, the first of many."""
    known = list(dict.fromkeys(values))
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    return (", ".join(known[:_MOST_NAMED]) or "none: it has no queue pairs of MRC now") + more
