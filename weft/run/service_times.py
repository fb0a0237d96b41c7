"""Closed forms for requests to a switch service on an otherwise idle store-and-forward fabric."""

from __future__ import annotations

from collections.abc import Sequence

from weft.controller.trees import AggregationTree
from weft.scenario.options import FabricOptions
from weft.topologies import FabricSpec, LinkSpec, serialisation_ps
from weft.traffic.service_format import FRAME_BYTES


class ServiceTimes:
    """Closed forms for a group with a given tree; `hosts` are its members' names, in order. Times are in ps."""

    def __init__(
        self, topology: FabricSpec, options: FabricOptions, tree: AggregationTree, hosts: Sequence[str]
    ) -> None:
        self._topology = topology
        self._latency_ps = options.switching.latency
        self._frame_bytes = FRAME_BYTES[options.ip_version]
        self._is_known = not options.switching.cut_through
        self._parents = {node.switch: node.parent for node in tree.nodes}
        nic = topology.first_nics[tree.plane]
        self._to_root_ps = [self._to_root(name, nic) for name in hosts]

    def barrier_ps(self) -> int | None:
        """Return how long a barrier takes if all ranks enter it together; None with cut-through switching.

        One frame goes up from each rank and one down; the slowest ones determine the time.
        """
        return self._and_back(max(self._to_root_ps)) if self._is_known else None

    def counter_ps(self) -> float | None:
        """Return the mean time of a request to a counter over all clients; None with cut-through switching."""
        round_trips = [self._and_back(each) for each in self._to_root_ps]
        return sum(round_trips) / len(round_trips) if self._is_known else None

    def _and_back(self, to_root_ps: int) -> int:
        # The root's latency counts once.
        return 2 * to_root_ps - self._latency_ps

    def _to_root(self, host: str, number: int) -> int:
        nic = self._topology.host(host).nic(number)
        time_ps = self._hop_ps(nic.link)
        switch = nic.switch
        while (parent := self._parents[switch]) is not None:
            time_ps += self._hop_ps(self._topology.switch(switch).port(parent.port).link)
            switch = parent.name
        return time_ps

    def _hop_ps(self, link: LinkSpec) -> int:
        """Return the time from a frame's first bit on a link until the switch behind it forwards the frame."""
        return serialisation_ps(self._frame_bytes, link.rate_bps) + link.delay_ps + self._latency_ps
