"""A cluster as NCCL's model sees it: its nodes, and the channels that a search for rings and trees finds in them.

NCCL searches the graph of a host's PCI switches, NICs and NVLinks (`ncclTopoCompute` in src/graph/search.cc). Here
every NIC lies next to its accelerator, and NVLinks join all accelerators of a node. Of the search there remain the
rates that it tries, in their order, what it counts as better, and how it duplicates channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from weft.errors import InvalidValueError
from weft.quantities.definitions import Rate, whole
from weft.quantities.example import Example

Generation = Literal["volta", "ampere", "hopper", "blackwell"]
Vendor = Literal["intel", "amd"]
GENERATIONS: tuple[str, ...] = get_args(Generation)
MAX_CHANNELS = 64
"""MAXCHANNELS in src/include/device.h."""
_GB_BITS = 8 * 10**9
_MOST_HEADS = 32
"""NCCL_MAX_NVLS_ARITY in src/include/device.h."""
_PASS_LIMIT = 0.49
"""The search ends when the next rate is at most this share of the best one's."""
_NVLINK_SHARES = {"volta": 20 / 25, "ampere": 20 / 25, "hopper": 20.6 / 25, "blackwell": 40.1 / 50}
"""Share of an NVLink's nominal rate that NCCL counts (SM70_NVLINK_BW … in src/graph/topo.h; of 25 or 50 GB/s)."""
_INTRA = {
    "volta": (40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3),
    "hopper": (60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3),
    "blackwell": (90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18),
}
_INTER = {
    "volta": (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12),
    "hopper": (48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
    "blackwell": (96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
}
"""GB/s of a channel within a node, and between nodes (speedArrayIntra … in src/graph/search.cc); Ampere has Volta's."""


@dataclass(frozen=True)
class NcclSettings:
    """Inputs of NCCL's model that a fabric does not give: the keys of a scenario's section `nccl`."""

    accelerator: Generation = "hopper"
    """Generation of the GPUs, of which the model has tables of its own."""
    cpu: Vendor = "intel"
    """Vendor of the CPUs."""
    channels: Annotated[int | None, whole(1, MAX_CHANNELS // 2), Example("8", (".channel_rate=360Gb/s",))] = None
    """Channels of NCCL's rings, as NCCL_DEBUG_SUBSYS=GRAPH prints them (`nChannels 8, bw 45.0/45.0`). By default what
    a simple search finds in the fabric. Requires `channel_rate`."""
    channel_rate: Annotated[Rate | None, Example("360Gb/s", (".channels=8",))] = None
    """Rate of a channel, which the same line has in GB/s. Requires `channels`."""


@dataclass(frozen=True)
class Graph:
    """Channels of an algorithm, and the GB/s of each within a node and between nodes."""

    channels: int
    intra: float
    inter: float


@dataclass(frozen=True)
class Cluster:
    """The ranks of a collective and their nodes.

    Attributes:
        ranks: all of them.
        nodes: hosts, or scale-up domains.
        nic_rates_bps: of all NICs of a node.
        scale_up_bps: rate of a rank's links to others of its node; None if it has none.
        has_switch: whether switches that reduce join the ranks of a node (NVLS).
        settings: what else NCCL's model depends on.

    """

    ranks: int
    nodes: int
    nic_rates_bps: tuple[int, ...]
    scale_up_bps: int | None = None
    has_switch: bool = False
    settings: NcclSettings = NcclSettings()

    def __post_init__(self) -> None:
        """Raise ValueError for counts that make no cluster."""
        if not 1 <= self.nodes <= self.ranks:
            raise InvalidValueError(f"{self.nodes} nodes of {self.ranks} ranks", valid=f"1 to {self.ranks}")
        if self.nodes > 1 and not self.nic_rates_bps:
            raise InvalidValueError("nodes without NICs", valid="one or more")

    @property
    def ranks_per_node(self) -> float:
        """Ranks of a node, on average."""
        return self.ranks / self.nodes

    @property
    def capability(self) -> int:
        """The lowest compute capability of the generation, times ten."""
        return {"volta": 70, "ampere": 80, "hopper": 90, "blackwell": 100}[self.settings.accelerator]

    @property
    def _nvlink(self) -> float:
        """GB/s of a rank's NVLinks as NCCL counts them; no bound for a node of one rank."""
        if self.scale_up_bps is None or self.ranks == self.nodes:
            return float("inf")
        return self.scale_up_bps / _GB_BITS * _NVLINK_SHARES[self.settings.accelerator]

    @property
    def _nics(self) -> list[float]:
        return [rate / _GB_BITS for rate in self.nic_rates_bps]

    @property
    def _speeds(self) -> Sequence[float]:
        tables = _INTRA if self.nodes == 1 else _INTER
        return tables.get(self.settings.accelerator, tables["volta"])

    def ring(self) -> Graph:
        """Return the channels of rings."""
        settings = self.settings
        if settings.channels is not None and settings.channel_rate is not None:
            rate = settings.channel_rate / _GB_BITS
            return Graph(settings.channels, rate, rate)
        best = self._searched()
        if not best.channels:
            return Graph(1, 0.1, 0.1)
        return self._duplicated(best)

    def tree(self) -> Graph:
        """Return the channels of trees, as many as of rings; within two nodes a channel may be faster."""
        ring = self.ring()
        intra = ring.intra
        for speed in reversed([each for each in self._speeds if each > ring.inter]):
            if intra >= 2 * ring.inter or ring.channels * speed > self._nvlink:
                break
            intra = speed
        return Graph(ring.channels, intra, ring.inter)

    def nvls(self) -> Graph:
        """Return the channels of reductions by nodes' switches, one for each head; none without such switches.

        A head's own link carries its channel twice (`ncclTopoSearchTryNvls`). Between nodes a head has a NIC, and the
        rate there grows as long as the NIC has it (`ncclTopoCompute`, pass 2).
        """
        if not self.has_switch or self.capability < 90 or self.ranks == self.nodes:
            return Graph(0, 0.0, 0.0)
        most = min(_MOST_HEADS, int(self.ranks_per_node))
        if self.nodes == 1:
            fitting = [each for each in self._speeds if (most + 1) * each <= self._nvlink]
            speed = fitting[0] if fitting else self._nvlink / (most + 1)
            return Graph(most, speed, speed)
        best = Graph(0, 0.0, 0.0)
        for speed in self._speeds:
            with_nics = sum(nic >= speed for nic in self._nics)
            fit = min(most, with_nics, int(self._nvlink / speed) - 1)
            if fit > best.channels or fit * speed > best.channels * best.inter:
                best = Graph(fit, speed, speed)
        inter = best.inter
        for speed in reversed([each for each in self._speeds if each > best.inter]):
            if inter >= 2 * best.intra or sum(nic >= speed for nic in self._nics) < best.channels:
                break
            inter = speed
        return Graph(best.channels, best.intra, inter)

    @property
    def rings_share_an_order(self) -> bool:
        """Whether all rings go through the ranks in the same order, since no channel has a NIC of its own."""
        return self.nodes == 1 or self.ranks == self.nodes or len(self.nic_rates_bps) == 1

    @property
    def channels(self) -> int:
        """Channels of a communicator (`ncclTopoPostset` in src/graph/connect.cc): two of each ring."""
        ring = self.ring()
        channels = min(MAX_CHANNELS, 2 * ring.channels)
        if self.capability >= 90 and self.nodes > 1 and ring.intra > 45.0 and channels < 16:
            channels *= 2
        return channels

    @property
    def nvls_channels(self) -> int:
        """Channels of reductions by nodes' switches (NVLS_NCHANNELS_… in src/transport/nvls.cc)."""
        return 24 if self.capability >= 100 else 16

    def _searched(self) -> Graph:
        best = Graph(0, 0.0, 0.0)
        most = self._nvlink if self.nodes == 1 else max(self._nics)
        for speed in (each for each in self._speeds if each <= most):
            if best.channels and speed / best.inter <= _PASS_LIMIT:
                break
            fit = MAX_CHANNELS // 2
            if self._nvlink != float("inf"):
                fit = min(fit, int(self._nvlink / speed))
            if self.nodes > 1:
                fit = min(fit, sum(int(nic / speed) for nic in self._nics))
            if fit * speed > best.channels * best.inter:
                best = Graph(fit, speed, speed)
            if self.nodes > 1 and best.channels * best.inter >= self._nvlink:
                break
        return best

    def _duplicated(self, graph: Graph) -> Graph:
        """Return the channels after `ncclTopoDupChannels` of src/graph/search.cc."""
        is_enough = self.capability > 80 and graph.intra < 50.0 and graph.channels > 4
        if graph.intra < 25.0 or is_enough:
            return graph
        channels = min(2 * graph.channels, MAX_CHANNELS // 2)
        parts = -(-channels // graph.channels)
        return Graph(channels, graph.intra / parts, graph.inter / parts)
