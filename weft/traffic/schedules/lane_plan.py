"""Builds a rank's lanes over one plane."""

from __future__ import annotations

from collections.abc import Iterable

from weft.traffic.lane_schedule import Chunk, ChunkTable, Formula, LaneSchedule
from weft.traffic.schedules.plan import Plan
from weft.traffic.schedules.spec import CollectiveSpec


def new_schedule(spec: CollectiveSpec, rank: int, buffer_bytes: dict[str, int]) -> LaneSchedule:
    """Return a rank's schedule with one stage and no lanes yet."""
    schedule = LaneSchedule(rank, buffer_bytes, spec.dtype, spec.operation, spec.run_tag, spec.divisor)
    schedule.add_stage()
    return schedule


class LanePlan(Plan[LaneSchedule]):
    """Adds lanes to a rank's schedule."""

    def pieces_of(self, elements: range) -> Chunk:
        """Return a range of elements that is shared out among the lanes, a piece each."""
        return self.whole(elements)._replace(is_cut=True)

    def whole(self, elements: range) -> Chunk:
        """Return a range of elements that every lane has as a whole."""
        return Chunk(self.schedule.add_table(ChunkTable.evenly(elements, 1)))

    def channel(self, peer: int) -> Formula:
        """Return the channel to a peer."""
        return Formula(self.schedule.channel(self.channel_to(peer)))

    def channel_row(self, peers: Iterable[int]) -> int:
        """See `LaneSchedule.channel_row`."""
        return self.schedule.channel_row(map(self.channel_to, peers))

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
        terms: int = 1,
        is_copy: bool = False,
        is_to_itself: bool = False,
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
            terms=terms,
            is_copy=is_copy,
            is_to_itself=is_to_itself,
        )

    def receive(self, chunk: Chunk, channel: Formula, *, slot: int, transfer: int = 0, in_turn: bool = False) -> None:
        """See `LaneSchedule.receive`."""
        self.schedule.receive(chunk, channel, transfer=self.first_transfer + transfer, slot=slot, in_turn=in_turn)
