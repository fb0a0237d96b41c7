"""Builds a rank's lanes over one plane."""

from __future__ import annotations

from collections.abc import Iterable

from weft.traffic.lane_schedule import Chunk, ChunkTable, Formula, LaneSchedule
from weft.traffic.schedule_nodes import Channel
from weft.traffic.schedules.plan import channel_between
from weft.traffic.schedules.spec import CollectiveSpec


def new_schedule(spec: CollectiveSpec, rank: int, buffer_bytes: dict[str, int]) -> LaneSchedule:
    """Return a rank's schedule with one stage and no lanes yet."""
    schedule = LaneSchedule(rank, buffer_bytes, spec.dtype, spec.operation, spec.run_tag)
    schedule.add_stage()
    return schedule


class LanePlan:
    """Adds lanes to a rank's schedule, over one plane or over scale-up links where two ranks share a host.

    Transfers from one rank to another have numbers that both know; they count from `first_transfer`. Nothing empty is
    ever transferred.
    """

    def __init__(
        self, spec: CollectiveSpec, rank: int, schedule: LaneSchedule, plane: int, first_transfer: int = 0
    ) -> None:
        self.spec, self.rank, self.plane = spec, rank, plane
        self.schedule = schedule
        self.first_transfer = first_transfer

    def from_transfer(self, number: int) -> LanePlan:
        """Return a plan of the same schedule whose transfers count from `number` of this one."""
        return LanePlan(self.spec, self.rank, self.schedule, self.plane, self.first_transfer + number)

    def pieces_of(self, elements: range) -> Chunk:
        """Return a range of elements that is shared out among the lanes, a piece each."""
        return self.whole(elements)._replace(is_cut=True)

    def whole(self, elements: range) -> Chunk:
        """Return a range of elements that every lane has as a whole."""
        return Chunk(self.schedule.add_table(ChunkTable.evenly(elements, 1)))

    def channel(self, peer: int) -> Formula:
        """Return the channel to a peer."""
        return Formula(self.schedule.channel(self._channel_to(peer)))

    def channel_row(self, peers: Iterable[int]) -> int:
        """See `LaneSchedule.channel_row`."""
        return self.schedule.channel_row(map(self._channel_to, peers))

    def _channel_to(self, peer: int) -> Channel:
        return channel_between(self.spec, self.plane, self.rank, peer)

    def send(
        self,
        chunk: Chunk,
        channel: Formula,
        *,
        slot: int,
        transfer: int = 0,
        to_scratch: bool = False,
        landing: Chunk | None = None,
        shift: int = 0,
        ahead: int = 0,
    ) -> None:
        """See `LaneSchedule.send`."""
        self.schedule.send(
            chunk,
            channel,
            transfer=self.first_transfer + transfer,
            slot=slot,
            to_scratch=to_scratch,
            landing=landing,
            shift=shift,
            ahead=ahead,
        )

    def receive(
        self, chunk: Chunk, channel: Formula, *, slot: int, transfer: int = 0, in_turn: bool = False
    ) -> None:
        """See `LaneSchedule.receive`."""
        self.schedule.receive(
            chunk, channel, transfer=self.first_transfer + transfer, slot=slot, in_turn=in_turn
        )
