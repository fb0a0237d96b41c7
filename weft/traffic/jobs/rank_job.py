"""A rank's part of a job on a fabric: the channels to its peers, and how it takes part in collectives of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Annotated

from weft.errors import InvalidValueError
from weft.quantities.traffic_classes import DATA_CLASS
from weft.traffic.messages import Between
from weft.traffic.schedule_nodes import Channel, TrafficClass, scale_up_label
from weft.traffic.schedules import CollectiveSpec

SHARE_UNIT = 1 << 16
"""The whole of a message, as shares of it are counted."""


def shares_of_planes(rates_bps: Sequence[int]) -> tuple[list[int], tuple[int, ...]]:
    """Return the planes in use (rate above 0), and up to which part (in 1/65536) each carries a message."""
    planes = [plane for plane, rate_bps in enumerate(rates_bps) if rate_bps]
    ends = accumulate(rates_bps[plane] for plane in planes)
    return planes, tuple(SHARE_UNIT * end // sum(rates_bps) for end in ends)


@dataclass(frozen=True)
class PeerPaths:
    """The channels to a peer, and up to which part (in 1/65536) each carries a message that is striped."""

    channels: tuple[Channel, ...]
    end_shares: tuple[int, ...]

    def __post_init__(self) -> None:
        """Raise ValueError unless each channel has a share, and the last one ends at the whole."""
        shares = (0, *self.end_shares)
        if len(self.channels) != len(self.end_shares) or list(shares) != sorted(shares) or shares[-1] != SHARE_UNIT:
            raise InvalidValueError(f"shares {self.end_shares}", valid=f"one a channel, ascending to {SHARE_UNIT}")


@dataclass(frozen=True)
class RankCall:
    """A rank's part in a collective of a group, over connections of the group's own (`label`) in a traffic class.

    `ranks` are the fabric's, by group rank; `spec` and the schedule use group ranks. With `data` (their name), the
    collective has data, which begin at an offset in the data of all the rank's collectives. With `aggregation_job`,
    this job's trees reduce.
    """

    collective: str
    algorithm: str
    spec: CollectiveSpec
    group_rank: int
    ranks: tuple[int, ...]
    label: str
    traffic_class: TrafficClass = DATA_CLASS
    data: str | None = None
    aggregation_job: Annotated[int, Between(1, 0xFFFF)] | None = None
    offset_bytes: Annotated[int, Between(0)] = 0

    def __post_init__(self) -> None:
        """Raise ValueError unless each group rank has a rank of the fabric."""
        if len(self.ranks) != self.spec.rank_count:
            raise ValueError(f"{len(self.ranks)} ranks of a group of {self.spec.rank_count}")

    def channel(self, channel: Channel) -> Channel:
        """Return the fabric's channel for one of the schedule."""
        label = scale_up_label(self.label) if channel.is_scale_up else self.label
        return replace(channel, peer=self.ranks[channel.peer], label=label, traffic_class=self.traffic_class)


@dataclass(frozen=True)
class RankJob:
    """A rank's paths to peers and calls of collectives, by slot, which a host needs in addition to the operations.

    There is a call for each slot of the operations, or, where collectives have data, for each collective. After the
    peers in slots come further ones, which read from the rank. `read_bytes` is the largest READ by a peer.
    """

    peers: tuple[PeerPaths, ...]
    calls: tuple[RankCall, ...]
    run_tag: int
    compute_scale: float = 1.0
    communication_share: float = 0.0
    read_bytes: Annotated[int, Between(0)] = 0
