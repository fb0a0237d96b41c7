"""Round trips between hosts of a fabric."""

from __future__ import annotations

from dataclasses import dataclass, replace

from weft.topologies.fabric import FabricSpec
from weft.topologies.paths import Path, base_rtt_ps, longest_path, nearest_path, serialisation_ps


@dataclass(frozen=True)
class RoundTrips:
    """Round trips of the farthest and the nearest pair of hosts, and the time that each further switch adds."""

    farthest_ps: int
    nearest_ps: int
    nearest_switches: int
    switch_ps: int = 0

    def longer_by(self, time_ps: int) -> RoundTrips:
        """Return these round trips with the time that hosts add to them."""
        return replace(self, farthest_ps=self.farthest_ps + time_ps, nearest_ps=self.nearest_ps + time_ps)


def path_round_trip_ps(fabric: FabricSpec, frame_bytes: int, switch_latency_ps: int = 0) -> int:
    """Return the largest base round-trip time between two hosts; of a host to its leaf where there is one host."""
    if len(fabric.hosts) > 1:
        return _idle_ps(longest_path(fabric, frame_bytes), frame_bytes, switch_latency_ps)
    link = fabric.hosts[0].nics[0].link
    return 2 * (link.delay_ps + serialisation_ps(frame_bytes, link.rate_bps)) + switch_latency_ps


def latencies_ps(path: Path, switch_latency_ps: int) -> int:
    """Return the time that a path's switches take there and back."""
    return 2 * _switches(path) * switch_latency_ps


def loaded_round_trip_ps(fabric: FabricSpec, frame_bytes: int, switch_latency_ps: int = 0) -> int:
    """Return the round trip for sizing windows and timeouts: on a path that also carries other traffic.

    Beyond the base round trip, an acknowledgement waits at every hop for a frame that is being sent. A window of the
    idle path's bandwidth-delay product would leave links idle.
    """
    if len(fabric.hosts) < 2:
        return 2 * path_round_trip_ps(fabric, frame_bytes, switch_latency_ps)
    return _loaded_ps(longest_path(fabric, frame_bytes), frame_bytes, switch_latency_ps)


def loaded_round_trips(fabric: FabricSpec, frame_bytes: int, switch_latency_ps: int = 0) -> RoundTrips:
    """Return `loaded_round_trip_ps` of the farthest pair, and of the nearest."""
    farthest_ps = loaded_round_trip_ps(fabric, frame_bytes, switch_latency_ps)
    if len(fabric.hosts) < 2:
        return RoundTrips(farthest_ps, farthest_ps, 1)
    near, far = nearest_path(fabric, frame_bytes), longest_path(fabric, frame_bytes)
    nearest_ps = _loaded_ps(near, frame_bytes, switch_latency_ps)
    more_switches = _switches(far) - _switches(near)
    # An idle switch's: if it held the waiting that loaded round trips allow for, far flows might queue more.
    more_ps = _idle_ps(far, frame_bytes, switch_latency_ps) - _idle_ps(near, frame_bytes, switch_latency_ps)
    per_switch_ps = max(0, more_ps // more_switches) if more_switches else 0
    return RoundTrips(farthest_ps, nearest_ps, _switches(near), per_switch_ps)


def round_trips_of_planes(
    fabric: FabricSpec, frame_bytes: int, switch_latency_ps: int = 0, added_ps: int = 0
) -> tuple[RoundTrips, ...]:
    """Return `loaded_round_trips`, and `added_ps` by hosts, by plane: the same of all but the storage network's."""
    found = [
        loaded_round_trips(network, frame_bytes, switch_latency_ps).longer_by(added_ps) for network in fabric.networks
    ]
    return tuple(found[plane == fabric.storage_plane] for plane in range(fabric.planes))


def slowest_configuration(fabric: FabricSpec, frame_bytes: int, switch_latency_ps: int = 0) -> FabricSpec:
    """Return the fabric with the circuits of the longest paths; the fabric itself where there are no circuits."""
    return max(fabric.configurations, key=lambda each: loaded_round_trip_ps(each, frame_bytes, switch_latency_ps))


def _idle_ps(path: Path, frame_bytes: int, switch_latency_ps: int) -> int:
    return base_rtt_ps(path, frame_bytes) + latencies_ps(path, switch_latency_ps)


def _loaded_ps(path: Path, frame_bytes: int, switch_latency_ps: int) -> int:
    return base_rtt_ps(path, frame_bytes, frame_bytes) + latencies_ps(path, switch_latency_ps)


def _switches(path: Path) -> int:
    return len(path.nodes) - 2
