"""Messages of one packet between the hosts of a dragonfly, at times of a Poisson process (Kim et al., ISCA 2008)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import weft
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.topologies import FabricSpec


@dataclass(frozen=True)
class Shape:
    """p, a, h and g of the paper."""

    hosts_per_router: int
    routers: int
    global_links: int
    groups: int

    @property
    def hosts_per_group(self) -> int:
        """Hosts of a group."""
        return self.hosts_per_router * self.routers

    @property
    def hosts(self) -> int:
        """Hosts of all groups."""
        return self.hosts_per_group * self.groups


Destination = Callable[[Shape, int, np.random.Generator], int]


def any_host(shape: Shape, source: int, random: np.random.Generator) -> int:
    """Every other host is as likely."""
    other = int(random.integers(shape.hosts - 1))
    return other + (other >= source)


def of_next_group(shape: Shape, source: int, random: np.random.Generator) -> int:
    """Every host of the group after the source's is as likely."""
    after = (source // shape.hosts_per_group + 1) % shape.groups
    return after * shape.hosts_per_group + int(random.integers(shape.hosts_per_group))


PATTERNS: Mapping[str, Destination] = {"uniform": any_host, "adversarial": of_next_group}


def messages(shape: Shape, pattern: str, size_bytes: int, interval_ps: float, duration_ps: int) -> list[weft.Flow]:
    """All messages, in order of their starts; each host starts one every `interval_ps` on average."""
    random = np.random.default_rng(1)
    flows = []
    for source in range(shape.hosts):
        start_ps = random.exponential(interval_ps)
        while start_ps < duration_ps:
            destination = PATTERNS[pattern](shape, source, random)
            flows.append(weft.Flow(source, destination, size_bytes, start_ps=round(start_ps)))
            start_ps += random.exponential(interval_ps)
    return sorted(flows, key=lambda flow: (flow.start_ps, flow.source))


class DragonflyMessages(weft.TrafficPattern):
    """`shape`: p, a, h, g. Messages of `size_bytes` take `frame_bytes` of a line of `rate_gbps`, at a share `load`."""

    def __init__(
        self,
        shape: Sequence[int],
        pattern: str,
        load: float,
        duration_us: float,
        size_bytes: int,
        frame_bytes: int,
        rate_gbps: float,
    ) -> None:
        self._shape = Shape(*shape)
        self._pattern = pattern
        self._size_bytes = size_bytes
        self._interval_ps = frame_bytes * 8 * PS_PER_S / (rate_gbps * 1e9) / load
        self._duration_ps = round(duration_us * PS_PER_US)

    def flows(self, fabric: FabricSpec, rng: np.random.Generator) -> list[weft.Flow]:
        """See weft.TrafficPattern; the same for all kinds of routes."""
        return messages(self._shape, self._pattern, self._size_bytes, self._interval_ps, self._duration_ps)
