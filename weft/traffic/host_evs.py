"""The entropy values (EVs) of a host's queue pairs that name paths: those an operator denies, and all for a reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypedDict
from weakref import WeakKeyDictionary

from weft.engine import _core
from weft.traffic.transports.kind import EvPaths, QueuePair


class NamedEv(TypedDict):
    """An EV of a queue pair.

    `peer`: address of the other host; `nodes`: hosts and switches on its path; `state`: good, skip, assumed_bad or
    denied; `active`: false for backups, and for EVs not in use; `turns`: how often it was chosen for a packet.
    """

    queue_pair: int
    peer: str
    value: int
    nodes: tuple[str, ...]
    outer_destination: str
    state: str
    active: bool
    turns: int


class NamedPaths:
    """Queue pairs and generators of flows of a host whose EVs name paths. They are forgotten when they end."""

    def __init__(self, paths: EvPaths) -> None:
        self._paths = paths
        self._queue_pairs: WeakKeyDictionary[_core.MrcQueuePair, tuple[str, ...]] = WeakKeyDictionary()
        self._generators: WeakKeyDictionary[_core.FlowGenerator, Mapping[int, Iterable[str]]] = WeakKeyDictionary()

    def follow(self, queue_pair: QueuePair, peers: Iterable[str]) -> None:
        """Deny a new queue pair what is denied now, and later what will be; `peers` are the other end's addresses."""
        if isinstance(queue_pair, _core.MrcQueuePair):
            self._queue_pairs[queue_pair] = tuple(peers)
            self._apply(queue_pair, self._queue_pairs[queue_pair])

    def follow_flows(self, generator: _core.FlowGenerator, peers: Mapping[int, Iterable[str]]) -> None:
        """Do as `follow` for the flows of a generator; `peers` are their other ends, by place."""
        self._generators[generator] = {place: tuple(dict.fromkeys(each)) for place, each in peers.items()}
        self._apply_to_flows(generator)

    def apply(self) -> None:
        """Deny and allow EVs as the paths say now."""
        for queue_pair, peers in self._queue_pairs.items():
            self._apply(queue_pair, peers)
        for generator in self._generators:
            self._apply_to_flows(generator)

    def evs(self) -> Iterator[NamedEv]:
        """Yield the EVs of all connections, flows left out."""
        for queue_pair, peers in self._queue_pairs.items():
            leads = {value: (peer, nodes) for peer in peers for value, nodes in self._paths.nodes_to(peer).items()}
            for each in queue_pair.evs():
                peer, nodes = leads[each["value"]]
                yield {
                    "queue_pair": queue_pair.queue_pair,
                    "peer": peer,
                    "value": each["value"],
                    "nodes": nodes,
                    "outer_destination": each["outer_destination"],
                    "state": each["state"],
                    "active": each["active"],
                    "turns": each["turns"],
                }

    def _apply(self, queue_pair: _core.MrcQueuePair, peers: Iterable[str]) -> None:
        denied: frozenset[int] = frozenset().union(*map(self._paths.denied_to, peers))
        evs = queue_pair.evs()
        if all(each["value"] in denied for each in evs):
            denied = frozenset()  # a queue pair keeps its last paths
        for number, each in enumerate(evs):
            is_denied = each["state"] == "denied"
            if each["value"] in denied and not is_denied:
                queue_pair.deny_ev(number)
            elif is_denied and each["value"] not in denied:
                queue_pair.allow_ev(number)

    def _apply_to_flows(self, generator: _core.FlowGenerator) -> None:
        for place, peers in self._generators[generator].items():
            for peer in peers:
                denied = self._paths.denied_to(peer)
                # First what is allowed: a queue pair keeps the last EV that is not denied.
                for value, _ in sorted(self._paths.routes_to(peer), key=lambda route: route[0] in denied):
                    generator.set_ev_denied(place, peer, value, value in denied)
