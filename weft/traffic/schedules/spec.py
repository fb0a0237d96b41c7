"""A collective's ranks, data and planes, and which ranks share a host."""

from __future__ import annotations

from dataclasses import dataclass

from weft.errors import InvalidValueError
from weft.traffic.aggregation_format import Operation
from weft.traffic.clear_to_send import ClearToSend
from weft.traffic.data_types import DataType
from weft.traffic.protocols import NONE, ProtocolName
from weft.traffic.schedule_nodes import Span
from weft.traffic.striping import split_evenly, stripe

DEFAULT_PIECE_BYTES = 16 * 1024
MAX_RANKS = 1 << 16


@dataclass(frozen=True)
class CollectiveSpec:
    """The data exchanged, and the planes used; `run_tag` as in `run_immediate`.

    Every rank's data is `element_count` elements. Where ranks contribute or get different parts of it
    (reduce-scatter, all-gather, all-to-all), part r is `chunk(r)`; an all-gather's input is the rank's own chunk in
    its place. `root` is that of a broadcast, reduce, gather or scatter.

    `ranks_per_host` ranks share a host and are `rank_stride` apart: 1 where a host's ranks follow each other,
    the number of hosts on a leaf where every rank of a host has its own leaf (rail). A *position* counts the ranks
    host by host. Where ranks share hosts in another way, `hosts` has the host of each: scale-up links join ranks of the
    same host; it has no other effect.

    `is_scale_up` if the network that joins the ranks is a scale-up domain; schedules do not depend on it.
    `host_reductions` if the switch between the ranks of a host reduces and multicasts.

    Messages travel in NCCL's `protocol`, "" for none. With `clear_to_send`, receivers clear those between hosts.

    In the network every plane has `trees`, over which its elements are striped. Schedules name tree t of plane p as
    plane p + t times the number of planes.
    """

    rank_count: int
    element_count: int
    dtype: DataType
    operation: Operation
    plane_rates_bps: tuple[int, ...]
    piece_bytes: int = DEFAULT_PIECE_BYTES
    run_tag: int = 0
    root: int = 0
    ranks_per_host: int = 1
    rank_stride: int = 1
    hosts: tuple[int, ...] = ()
    trees: int = 1
    protocol: ProtocolName = NONE
    clear_to_send: ClearToSend | None = None
    is_scale_up: bool = False
    host_reductions: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for counts and sizes that make no collective."""
        if not 1 <= self.rank_count <= MAX_RANKS:
            raise InvalidValueError(f"{self.rank_count} ranks", valid=f"1 to {MAX_RANKS}")
        if self.element_count < 0:
            raise InvalidValueError(f"{self.element_count} elements", valid="0 or more")
        if self.piece_bytes < self.element_bytes:
            raise InvalidValueError(f"pieces of {self.piece_bytes} bytes", valid=f"{self.element_bytes} or more")
        if not 0 <= self.root < self.rank_count:
            raise InvalidValueError(f"root {self.root}", valid=f"0 to {self.rank_count - 1}")
        if self.ranks_per_host < 1 or self.rank_stride < 1:
            raise InvalidValueError(f"{self.ranks_per_host} ranks a host, {self.rank_stride} apart", valid="1 or more")
        if self.trees < 1:
            raise InvalidValueError(f"{self.trees} trees a plane", valid="1 or more")
        if self.hosts and (len(self.hosts) != self.rank_count or self.ranks_per_host > 1):
            raise InvalidValueError(
                f"hosts of {len(self.hosts)} ranks, {self.ranks_per_host} ranks a host",
                valid=f"of {self.rank_count}, with 1 rank a host",
            )
        if self.ranks_per_host > 1 and self.rank_count % (self.ranks_per_host * self.rank_stride):
            raise InvalidValueError(
                f"{self.rank_count} ranks do not fill hosts of {self.ranks_per_host} ranks that are "
                f"{self.rank_stride} apart",
                valid=f"a multiple of {self.ranks_per_host * self.rank_stride}",
            )

    @property
    def element_bytes(self) -> int:
        """Size of an element."""
        return self.dtype.element_bytes

    @property
    def size_bytes(self) -> int:
        """Size of every rank's data."""
        return self.element_count * self.element_bytes

    def span(self, buffer: str, elements: range) -> Span:
        """Return where elements of a buffer lie."""
        return Span(buffer, elements.start * self.element_bytes, len(elements) * self.element_bytes)

    @property
    def divisor(self) -> int:
        """By what every rank divides its data in the end: an average's sums by the number of ranks."""
        return self.rank_count if self.operation is Operation.AVERAGE else 1

    def stripes(self) -> list[range]:
        """Return the elements of each plane."""
        return stripe(self.element_count, self.plane_rates_bps)

    def of_trees(self, elements: range, plane: int) -> list[tuple[int, range]]:
        """Return each tree of a plane that has some of the plane's elements, and which."""
        shares = stripe(len(elements), (1,) * self.trees)
        return [
            (plane + tree * len(self.plane_rates_bps), elements[share.start : share.stop])
            for tree, share in enumerate(shares)
            if share
        ]

    def chunk(self, rank: int) -> range:
        """Return the elements that belong to one rank."""
        count, ranks = self.element_count, self.rank_count
        return range(count * rank // ranks, count * (rank + 1) // ranks)

    def chunk_stripes(self, plane: int) -> list[range]:
        """Return the plane's share of every rank's chunk."""
        return [self.stripe_of(chunk, plane) for chunk in split_evenly(range(self.element_count), self.rank_count)]

    def stripe_of(self, elements: range, plane: int) -> range:
        """Return the plane's share of some elements."""
        share = stripe(len(elements), self.plane_rates_bps)[plane]
        return range(elements.start + share.start, elements.start + share.stop)

    @property
    def host_count(self) -> int:
        """Hosts of all ranks."""
        return self.rank_count // self.ranks_per_host

    @property
    def host_size(self) -> int:
        """Ranks of a host; all ranks where they share one."""
        return self.rank_count if self.is_within_a_host else self.ranks_per_host

    @property
    def is_within_a_host(self) -> bool:
        """Whether all ranks share a host, so that nothing crosses the network."""
        return len(set(self.hosts)) == 1 or (not self.hosts and self.host_count == 1 < self.rank_count)

    def position(self, rank: int) -> int:
        """Return where a rank stands when ranks are counted host by host."""
        block, place = divmod(rank, self.ranks_per_host * self.rank_stride)
        local, host = divmod(place, self.rank_stride)
        return (block * self.rank_stride + host) * self.ranks_per_host + local

    def rank_at(self, position: int) -> int:
        """Return the rank at a position: the inverse of `position`."""
        host, local = divmod(position, self.ranks_per_host)
        block, place = divmod(host, self.rank_stride)
        return (block * self.ranks_per_host + local) * self.rank_stride + place

    def share_a_host(self, rank: int, other: int) -> bool:
        """Return whether two ranks are of the same host, so that scale-up links join them."""
        if self.hosts:
            return self.hosts[rank] == self.hosts[other]
        if self.ranks_per_host == 1:
            return rank == other
        return self.position(rank) // self.ranks_per_host == self.position(other) // self.ranks_per_host
