"""The figures of a run from which its limits are decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from weft.quantities.arrays import Integers
from weft.recording.tables import Table, integers_of, names_of
from weft.results.credits import CREDITS
from weft.results.flows import FLOWS, FlowsResult
from weft.results.host_links import BUSY, HOST_LINKS
from weft.results.kinds import ItemResult
from weft.results.model import Results
from weft.results.port_loads import port_loads
from weft.results.step_parts import StepParts
from weft.results.switch_memory import MEMORY
from weft.topologies import FabricSpec, Path, TopologyError, base_rtt_ps, shortest_path
from weft.traffic.schedule_nodes import ALL_PLANES

Side = Literal["host", "receiver", "link"]
"""A port by its ends: from a host, to a host, between switches."""

_TIE = 0.02
"""Ports that differ by no more are equally busy: headers and acknowledgements differ by as much."""
LEAST_LOAD = 0.5
"""A port that is idle for longer than it is busy does not limit a run, unless packets queue there."""
_WHOLE = 0.9
"""From this share on, a flow lasts for all of the traffic's time: one that starts and ends with the others does."""
_LEAST_PRODUCTS = 4
"""Flows of fewer bandwidth-delay products wait for round trips, not for a window."""


@dataclass(frozen=True)
class Bottleneck:
    """The busiest ports of one side in a run. `share` is the busiest port's, `count` how many are as busy."""

    side: Side
    port: str
    peer: str
    share: float
    count: int


@dataclass(frozen=True)
class Paths:
    """Paths of flows without queues, mean over the flows."""

    product_bytes: float
    """Bytes in flight that fill a path: its bandwidth-delay product."""
    in_flight_bytes: float
    """Bytes of a flow in flight: its rate times the round-trip time, headers included."""


@dataclass(frozen=True)
class Evidence:
    """Figures of a run, the same from a run that has just ended and from one read from its directory.

    Args:
        results: all results, as results.json has them.
        fabric: the run's fabric.
        tables: recorded tables; `ports` decides about links.
        flows: results of patterns, with their flows' records if these are known; by default those of `results`.
    """

    results: Results
    fabric: FabricSpec
    tables: Mapping[str, Table]
    flows: Sequence[FlowsResult] | None = field(default=None)

    @property
    def is_valid(self) -> bool:
        """Whether times mean something: no late events, and all of the traffic ended."""
        late = self.results.lateness
        return not self.results.failures and (late is None or late.valid) and self.results.traffic_ps > 0

    @property
    def shows_trouble(self) -> bool:
        """Whether packets were lost, marked or held, or ranks waited: `weft run` then says what limited the run."""
        results, steps = self.results, self.steps
        return bool(
            results.drops
            or results.losses
            or results.retransmissions
            or results.cnps
            or any(plane.ecn_marked_packets for plane in results.planes)
            or any(each.paused_ps for each in results.of(MEMORY))
            or results.link_retries
            or any(each.busy_share >= BUSY for each in results.of(HOST_LINKS))
            or (steps is not None and steps.total_ps > steps.compute_ps)
        )

    @property
    def traffic_ps(self) -> int:
        """Time in which traffic ran."""
        return self.results.traffic_ps

    @cached_property
    def loads(self) -> dict[str, float]:
        """Share of the traffic's time in which each port sent; {} if a port's bytes are unknown, or not all packets.

        Fast-forward repeats operations without packets, which no port counts.
        """
        if "ports" not in self.tables or any(each.repeated for each in self.results.fast_forward):
            return {}
        if (integers_of(self.tables["ports"], "transmitted_bytes") < 0).any():
            return {}
        return port_loads(self.tables["ports"], self.traffic_ps)

    @cached_property
    def _peers(self) -> dict[str, str]:
        ports = self.tables.get("ports")
        return {} if ports is None else dict(zip(_texts(ports, "port"), _texts(ports, "peer"), strict=True))

    @cached_property
    def host_ports(self) -> frozenset[str]:
        """Names of hosts' ports."""
        return frozenset(f"{host.name}:{nic.number}" for host in self.fabric.hosts for nic in host.nics)

    def side(self, port: str) -> Side:
        """Return which ends a port's link has."""
        if port in self.host_ports:
            return "host"
        return "receiver" if self.receiver_at(port) else "link"

    def receiver_at(self, port: str) -> str:
        """Return the host to which a switch's port leads, empty if it leads to none."""
        peer = self._peers.get(port, "")
        return peer.rpartition(":")[0] if peer in self.host_ports else ""

    @cached_property
    def bottleneck(self) -> Bottleneck | None:
        """The busiest ports; None if none was busy for long enough to limit the run.

        Hosts come before receivers, and these before links between switches, if they are equally busy: a link behind a
        full one carries no more than that one. A port limits a run if it was busy for half of the time in which ranks
        communicate, or if it has the longest queue of a run whose switches marked or dropped packets.
        """
        if not self.loads:
            return None
        sides: dict[Side, dict[str, float]] = {"host": {}, "receiver": {}, "link": {}}
        for port, share in self.loads.items():
            sides[self.side(port)][port] = share
        most = {side: max(shares.values(), default=0.0) for side, shares in sides.items()}
        side = next(each for each in sides if most[each] >= max(most.values()) - _TIE)
        shares = sides[side]
        port = max(shares, key=lambda name: shares[name])
        share = shares[port]
        if share < LEAST_LOAD * self.communication_share and port not in self._congested:
            return None
        count = sum(each >= share - _TIE for each in shares.values())
        return Bottleneck(side, port, self._peers[port], share, count)

    @cached_property
    def _congested(self) -> set[str]:
        """The longest queue of each plane that marked or dropped packets."""
        return {
            plane.largest_queue_port for plane in self.results.planes if plane.ecn_marked_packets or plane.tail_drops
        }

    @cached_property
    def steps(self) -> StepParts | None:
        """Parts of the steps of training and other jobs, all together; None if nothing computed."""
        items = (each for kind in self.results.kinds for each in self.results.of(kind) if isinstance(each, ItemResult))
        parts = [each.step_parts for each in items]
        found = [each for each in parts if each is not None and each.total_ps > 0]
        return StepParts.sum_of(found) if found else None

    def step_share(self, part_ps: float) -> float:
        """Return the share of the traffic's time that a part of all steps takes; 0 without steps.

        Steps that run at the same time count once: their parts are averaged.
        """
        if self.steps is None:
            return 0.0
        return part_ps / self.steps.total_ps * min(1.0, self.steps.total_ps / self.traffic_ps)

    @property
    def communication_share(self) -> float:
        """Share of the traffic's time in which ranks communicate and compute nothing; 1 without jobs that compute."""
        steps = self.steps
        return 1.0 if steps is None else 1.0 - self.step_share(steps.total_ps - steps.exposed_ps)

    @cached_property
    def idle_share(self) -> float | None:
        """Share of the time in which even the busiest link was idle while a host had data to send; None if unknown.

        It is known if the traffic is one pattern with a flow that lasts from the beginning to the end. Failed links and
        hosts with costs of `nic` have other reasons to be idle.
        """
        if any(_mapping(self.results.made_by.parameters.get("nic")).values()):
            return None
        if not self.loads or len(self.results.phases) != 1 or len(self.patterns) != 1 or self.results.link_events:
            return None
        pattern = self.patterns[0]
        if pattern.largest_completion_ps < _WHOLE * self.traffic_ps:
            return None
        paths = self.paths
        if paths is None or pattern.bytes_delivered < _LEAST_PRODUCTS * paths.product_bytes * pattern.flows:
            return None
        return max(0.0, 1.0 - max(self.loads.values()))

    @property
    def patterns(self) -> Sequence[FlowsResult]:
        """Results of patterns of flows."""
        return self.results.of(FLOWS) if self.flows is None else self.flows

    @property
    def was_held(self) -> bool:
        """Whether PFC or a lack of credits held any port."""
        return any(each.paused_ps for each in self.results.of(MEMORY)) or any(
            each.stalls for each in self.results.of(CREDITS)
        )

    @property
    def transport(self) -> Mapping[str, Any]:
        """Transport of queue pairs in force; {} if results.json does not have it."""
        return _mapping(_mapping(self.results.made_by.parameters.get("effective")).get("transport"))

    @property
    def transport_of_planes(self) -> Sequence[Mapping[str, Any]]:
        """The transport's figures of each plane; empty if results.json does not have them."""
        planes = self.transport.get("planes")
        return [_mapping(each) for each in planes] if isinstance(planes, list) else []

    @cached_property
    def paths(self) -> Paths | None:
        """Paths of the first pattern's flows; None if they are unknown.

        Cut-through switches are left out: a frame's round trip there depends on the links' rates.
        """
        records = self.patterns[0].records if self.patterns else {}
        made_by = self.results.made_by.parameters
        switching = _mapping(made_by.get("switching"))
        frame_bytes = max((_count(each.get("frame_bytes")) for each in self.transport_of_planes), default=0)
        payload_bytes, latency_ps = _count(made_by.get("mtu_bytes")), _count(switching.get("latency"))
        if not records or not frame_bytes or not payload_bytes or switching.get("mode") != "store-and-forward":
            return None
        ends = np.stack([records[each] for each in ("source", "destination", "plane")], axis=1)
        pairs, of_flow = np.unique(ends, axis=0, return_inverse=True)
        times: dict[tuple[str, str], tuple[int, int]] = {}
        round_trips, rates = [], []
        try:
            for source, destination, plane in pairs.tolist():
                first, last = (self.fabric.hosts[each] for each in (source, destination))
                # Planes are alike, and a flow over all of them has the rate of all.
                planes = self.fabric.nics_per_host if plane == ALL_PLANES else 1
                plane = max(plane, 0)
                key = (first.nic(plane).switch, last.nic(plane).switch)
                if key not in times:
                    path = shortest_path(self.fabric, first.name, last.name, plane)
                    times[key] = (_round_trip_ps(path, frame_bytes, latency_ps), planes * path.rate_bps)
                round_trip_ps, rate_bps = times[key]
                round_trips.append(round_trip_ps)
                rates.append(rate_bps)
        except (TopologyError, IndexError):
            return None
        of_flow = of_flow.reshape(-1)
        round_trip: Integers = np.array(round_trips, np.int64)[of_flow]
        rate: Integers = np.array(rates, np.int64)[of_flow]
        taken_ps = np.maximum(1, records["completion_ps"])
        return Paths(
            product_bytes=float((rate * (round_trip * 1e-12) / 8).mean()),
            in_flight_bytes=float((records["size_bytes"] / taken_ps * round_trip).mean()) * frame_bytes / payload_bytes,
        )


def _mapping(found: Any) -> Mapping[str, Any]:
    """Return a part of a run's parameters, which no model checks; {} if it is none."""
    return found if isinstance(found, dict) else {}


def _count(found: Any) -> int:
    return found if isinstance(found, int) and found > 0 else 0


def _round_trip_ps(path: Path, frame_bytes: int, switch_latency_ps: int) -> int:
    return base_rtt_ps(path, frame_bytes) + 2 * (len(path.hops) - 1) * switch_latency_ps


def _texts(table: Table, column: str) -> list[str]:
    names: list[str] = names_of(table, column).texts().tolist()
    return names
