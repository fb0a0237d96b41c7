"""The entropy values (EVs) of a host's queue pairs: those an operator or a drain denies, and all for a reader."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from weft.engine import _core
from weft.errors import InvalidValueError
from weft.traffic.answers import EntropyValue, EvEvent
from weft.traffic.commands.evs import EvOfPeer
from weft.traffic.ev_profiles import EvOfPlane, EvProfile, EvProfileAttributes, EvProfiles
from weft.traffic.transports.kind import EvPaths, QueuePair

if TYPE_CHECKING:
    from weft.engine._core import EntropyValue as EngineEv

Planes = Sequence[tuple[int, str]]
"""The planes of a queue pair, each with the other end's address there."""
_NONE: frozenset[int] = frozenset()


@dataclass(frozen=True)
class _FlowQueuePair:
    """A queue pair of a flow, which its generator owns: what `HostEvs` uses of one.

    Under the real clock the flow may end at any time; then it has no EVs, and nothing can be done to them.
    """

    generator: _core.FlowGenerator
    queue_pair: int

    def evs(self) -> list[EngineEv]:
        return self.generator.evs(self.queue_pair)

    def deny_ev(self, ev: int) -> None:
        self.generator.deny_ev(self.queue_pair, ev)

    def allow_ev(self, ev: int) -> None:
        self.generator.allow_ev(self.queue_pair, ev)

    def probe_evs(self, evs: Sequence[int]) -> None:
        self.generator.probe_evs(self.queue_pair, evs)

    def probed_round_trips(self) -> dict[int, int | None]:
        return self.generator.probed_round_trips(self.queue_pair)


@dataclass(frozen=True)
class _FlowsEvs:
    """The other ends of a generator's flows, by place, and the profile of its queue pairs."""

    peers: Mapping[int, Iterable[str]]
    profile: EvProfile


_Operated = _core.MrcQueuePair | _FlowQueuePair


class HostEvs:
    """Queue pairs and generators of flows of a host, with their EVs. They are forgotten when they end.

    `paths`: those that EVs name; None where switches hash EVs. `profiles` say which EVs queue pairs have that are made
    later. What an operator denies stays denied to the peer's address, for queue pairs that are made later, too, until
    it is allowed again.
    """

    def __init__(self, nic: _core.Nic, paths: EvPaths | None, profiles: EvProfiles) -> None:
        self._nic = nic
        self._paths = paths
        self.profiles = profiles
        self._queue_pairs: WeakKeyDictionary[_core.MrcQueuePair, Planes] = WeakKeyDictionary()
        self._generators: WeakKeyDictionary[_core.FlowGenerator, _FlowsEvs] = WeakKeyDictionary()
        self._by_operator: dict[str, set[int]] = {}
        self._plane_of: dict[str, int] = {}  # by the peer's address

    def follow(self, queue_pair: QueuePair, planes: Planes) -> None:
        """Deny a new queue pair what is denied now, and later what will be; `planes` are in the queue pair's order."""
        if isinstance(queue_pair, _core.MrcQueuePair):
            self._queue_pairs[queue_pair] = tuple(planes)
            self._plane_of |= {peer: plane for plane, peer in planes}
            if self._paths is not None or self._by_operator:
                self._apply(queue_pair, planes)

    def follow_flows(self, generator: _core.FlowGenerator, peers: Mapping[int, Mapping[str, int]]) -> None:
        """Do as `follow` for the flows of a generator; `peers` are their other ends with their planes, by place.

        Where flows draw EVs that switches hash, what an operator denies now does not hold for those that start later.
        """
        self._generators[generator] = _FlowsEvs(
            {place: tuple(each) for place, each in peers.items()}, self.profiles.of_new_queue_pairs
        )
        for each in peers.values():
            self._plane_of |= each
        self._apply_to_flows(generator)

    def _live(self) -> Iterator[tuple[_Operated, Planes]]:
        """Yield the queue pairs of connections and of flows that there are now, each with its planes."""
        yield from list(self._queue_pairs.items())
        for generator in list(self._generators):
            for number, planes in generator.mrc_queue_pairs().items():
                yield _FlowQueuePair(generator, number), planes

    def all_profiles(self) -> list[EvProfile]:
        """Return the profiles, with how many queue pairs have each (`EvProfile`)."""
        return self.profiles.all(self._in_use)

    def modify_profile(self, profile_id: int, attributes: EvProfileAttributes) -> None:
        """Change a profile; its queue pairs follow a change of `ev_event_mask`. Raises as `EvProfiles.modify`."""
        profile = self.profiles.modify(profile_id, attributes, self._in_use(profile_id))
        if attributes.ev_event_mask is None:
            return
        for queue_pair in list(self._queue_pairs):
            if queue_pair.ev_profile_id == profile_id:
                queue_pair.set_ev_event_mask(profile.event_bits)
        for generator in list(self._generators):
            generator.set_ev_event_mask(profile_id, profile.event_bits)

    def _in_use(self, profile_id: int) -> int:
        """Return how many queue pairs have a profile; a generator, which may make others, counts as one at least."""
        of_connections = sum(each.ev_profile_id == profile_id for each in list(self._queue_pairs))
        return of_connections + sum(
            max(1, len(generator.ev_profile_ids()))
            for generator, of_flows in list(self._generators.items())
            if of_flows.profile.profile_id == profile_id
        )

    def of_profile(self, profile_id: int, ev: EvOfPlane) -> Iterator[tuple[EvOfPeer, str]]:
        """Yield the peers and the states of an EV of a plane, of each queue pair that has the profile."""
        for queue_pair, planes in self._live():
            of = (
                self._generators[queue_pair.generator].profile.profile_id
                if isinstance(queue_pair, _FlowQueuePair)
                else queue_pair.ev_profile_id
            )
            if of != profile_id:
                continue
            for each in queue_pair.evs():
                plane, peer = planes[each["plane"]]
                if (plane, each["value"]) == (ev.plane, ev.value):
                    yield EvOfPeer(peer, each["value"]), each["state"]

    def take_events(self, most: int) -> list[EvEvent]:
        """Take the oldest events that nobody has taken, at most so many."""
        taken = _core.take_mrc_ev_events(self._nic, most)
        return [
            EvEvent(
                time_ps=each["time_ps"],
                profile_id=each["profile_id"],
                queue_pair=each["queue_pair"],
                peer=each["peer"],
                plane=each["port"],
                value=each["value"],
                state=each["state"],
                drop_count=each["drop_count"],
            )
            for each in taken
        ]

    def apply(self) -> None:
        """Deny and allow EVs as the paths and the operator say now."""
        for queue_pair, planes in self._live():
            if isinstance(queue_pair, _FlowQueuePair) and not self._draws(
                self._generators[queue_pair.generator].profile
            ):
                continue  # below, with those of flows to come
            self._apply(queue_pair, planes)
        for generator in list(self._generators):
            self._apply_to_flows(generator)

    def evs(self) -> Iterator[EntropyValue]:
        """Yield the EVs of all queue pairs, and those that an operator denies and none has now."""
        remembered = {EvOfPeer(peer, value) for peer, values in self._by_operator.items() for value in values}
        for queue_pair, planes in self._live():
            nodes = {peer: self._paths.nodes_to(peer) for _, peer in planes} if self._paths is not None else {}
            round_trips = queue_pair.probed_round_trips()
            for number, each in enumerate(queue_pair.evs()):
                plane, peer = planes[each["plane"]]
                remembered.discard(EvOfPeer(peer, each["value"]))
                yield EntropyValue(
                    queue_pair=queue_pair.queue_pair,
                    peer=peer,
                    plane=plane,
                    value=each["value"],
                    nodes=nodes[peer][each["value"]] if nodes else (),
                    outer_destination=each["outer_destination"],
                    state=each["state"],
                    active=each["active"],
                    turns=each["turns"],
                    probed=number in round_trips,
                    round_trip_ps=round_trips.get(number),
                )
        for peer, value in sorted(remembered):
            yield EntropyValue(
                queue_pair=None,
                peer=peer,
                plane=self._plane_of[peer],
                value=value,
                nodes=self._paths.nodes_to(peer).get(value, ()) if self._paths is not None else (),
                outer_destination=dict(self._paths.routes_to(peer)).get(value, "") if self._paths is not None else "",
                state="denied",
                active=False,
                turns=0,
            )

    def set_denied(self, evs: Collection[EvOfPeer], *, denied: bool) -> None:
        """Deny or allow EVs to peers, as an operator.

        Raises ValueError, and changes nothing, if a queue pair would have no EV left, no queue pair has such an EV,
        or an EV to allow passes what is drained or cordoned.
        """
        found = self._found(evs)
        for peer, value in evs:
            if not (found.get((peer, value)) or value in self._by_operator.get(peer, ())):
                raise InvalidValueError(f"no queue pair to {peer} has the EV 0x{value:08x}")
            if not denied and self._paths is not None and value in self._paths.denied_to(peer):
                raise ValueError(f"EV 0x{value:08x} to {peer} passes what is drained or cordoned: restore that first")
        if denied:
            self._require_others(set(evs))
        for peer, value in evs:
            values = self._by_operator.setdefault(peer, set())
            (values.add if denied else values.discard)(value)
        self._by_operator = {peer: values for peer, values in self._by_operator.items() if values}
        self.apply()

    def probe(self, evs: Collection[EvOfPeer]) -> None:
        """Send an EV probe over each of these, each for one queue pair; `evs()` has the outcomes.

        Raises ValueError if no queue pair has such an EV, or too many probes are on their way.
        """
        found = self._found(evs)
        by_queue_pair: dict[_Operated, list[int]] = {}
        for peer, value in evs:
            if not (having := found.get((peer, value))):
                raise InvalidValueError(f"no queue pair to {peer} has the EV 0x{value:08x}")
            queue_pair, number = having[0]
            by_queue_pair.setdefault(queue_pair, []).append(number)
        for queue_pair, _ in self._live():
            queue_pair.probe_evs(by_queue_pair.get(queue_pair, []))

    def _found(self, evs: Collection[EvOfPeer]) -> dict[tuple[str, int], list[tuple[_Operated, int]]]:
        """Return the queue pairs that have these EVs, with the EV's index in each."""
        wanted = {(peer, value) for peer, value in evs}
        found: dict[tuple[str, int], list[tuple[_Operated, int]]] = {}
        for queue_pair, planes in self._live():
            for number, each in enumerate(queue_pair.evs()):
                key = (planes[each["plane"]][1], each["value"])
                if key in wanted:
                    found.setdefault(key, []).append((queue_pair, number))
        return found

    def _require_others(self, evs: Collection[EvOfPeer]) -> None:
        """Raise ValueError if without these a queue pair has no EV left."""
        for queue_pair, planes in self._live():
            own = queue_pair.evs()
            left = [
                each
                for each in own
                if each["state"] != "denied" and EvOfPeer(planes[each["plane"]][1], each["value"]) not in evs
            ]
            if own and not left:  # a flow may have ended meanwhile
                raise ValueError(f"queue pair {queue_pair.queue_pair} to {planes[0][1]} would have no EV left")

    def _denied_to(self, peer: str) -> tuple[frozenset[int], frozenset[int]]:
        """Return what is denied by all, and what by the operator."""
        by_operator = frozenset(self._by_operator.get(peer, ()))
        by_paths = _NONE if self._paths is None else self._paths.denied_to(peer)
        return by_operator | by_paths, by_operator

    def _apply(self, queue_pair: _Operated, planes: Planes) -> None:
        of_planes = [self._denied_to(peer) for _, peer in planes]
        evs = queue_pair.evs()
        # A queue pair keeps its last paths: first a drain yields, then the operator.
        for denied in (
            [everything for everything, _ in of_planes],
            [by_operator for _, by_operator in of_planes],
            [_NONE] * len(planes),
        ):
            if any(each["value"] not in denied[each["plane"]] for each in evs):
                break
        # First what is allowed: the last EV that is not denied cannot be denied.
        for number, each in enumerate(evs):
            if each["state"] == "denied" and each["value"] not in denied[each["plane"]]:
                queue_pair.allow_ev(number)
        for number, each in enumerate(evs):
            if each["state"] != "denied" and each["value"] in denied[each["plane"]]:
                queue_pair.deny_ev(number)

    def _draws(self, profile: EvProfile) -> bool:
        """Whether each queue pair draws values of its own, which nobody knows before."""
        return self._paths is None and profile.ev_mode != "explicit"

    def _apply_to_flows(self, generator: _core.FlowGenerator) -> None:
        """Do as `_apply` for the flows of a generator, those to come included, unless they draw their values."""
        of_flows = self._generators[generator]
        if self._draws(of_flows.profile):
            return
        for place, peers in of_flows.peers.items():
            for peer in peers:
                denied, _ = self._denied_to(peer)
                # First what is allowed: a queue pair keeps the last EV that is not denied.
                for value in sorted(self._values_to(peer, of_flows.profile), key=denied.__contains__):
                    generator.set_ev_denied(place, peer, value, value in denied)

    def _values_to(self, peer: str, profile: EvProfile) -> list[int]:
        """Return the values that queue pairs of a profile may have to a peer's address."""
        if profile.ev_mode == "explicit":
            return profile.values_on(self._plane_of[peer])
        assert self._paths is not None
        return [value for value, _ in self._paths.routes_to(peer)]
