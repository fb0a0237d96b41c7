"""Reductions that go on when a failure has given their job other trees: from where the slowest worker was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.traffic.aggregation_format import IN_PACKETS, LANE_BYTES, Operation
from weft.traffic.answers import StreamPositions
from weft.traffic.commands.aggregation import (
    EndMessages,
    Membership,
    MovedStream,
    MoveStreams,
    ReadResults,
    StopStreams,
    StreamPart,
    WriteContributions,
)
from weft.traffic.data_types import DataType
from weft.traffic.endpoint_calls import EndpointCalls

AllReduce = Callable[[list[Path], int, DataType, Operation], None]
"""Reduces integers of a type in the ranks' files, so many in each, in place."""
_ORDER = [
    (operation, dtype)
    for operation in sorted(IN_PACKETS, key=lambda each: each is not Operation.MAX)
    for dtype in (DataType.INT32, DataType.INT16, DataType.INT8)
]


@dataclass(frozen=True)
class Agreed:
    """State of a stream on which a job's workers agree: the first message without a result at one of them.

    All of them have posted the messages before `posted`. `repeated` is how many messages all workers together sent from
    there on.
    """

    first_message: int
    posted: int
    repeated: int


class StoppedStreams:
    """A job's streams on some ranks, which stop as this is made; `agreed` is where they go on, by plane."""

    def __init__(self, calls: EndpointCalls, job_id: int, ranks: Sequence[int]) -> None:
        self._calls = calls
        self._job_id = job_id
        self._ranks = list(ranks)
        answers = calls.all(dict.fromkeys(ranks, StopStreams(job_id)))
        self.agreed = _agreed(list(answers.values()))

    def reduce(self, directory: Path, all_reduce: AllReduce) -> None:
        """Have something else than switches reduce what all workers have posted, with the same results to the bit.

        It works on files in a directory. Exponents are messages of maxima, which data wait for, so these come first.
        """
        for plane, agreed in self.agreed.items():
            for operation, dtype in _ORDER if agreed.posted > agreed.first_message else ():
                part = StreamPart(self._job_id, plane, agreed.first_message, agreed.posted, operation, dtype)
                files = {rank: directory / f"rank{rank}.bin" for rank in self._ranks}
                answers = self._calls.all({rank: WriteContributions(part, str(file)) for rank, file in files.items()})
                if lanes := min(answer.lanes for answer in answers.values()):
                    # Packed integers are reduced each by itself, so their order in a lane does not matter.
                    count = lanes * LANE_BYTES // dtype.element_bytes
                    all_reduce(list(files.values()), count, dtype, operation)
                    self._calls.all({rank: ReadResults(part, str(file)) for rank, file in files.items()})
            self._calls.all(dict.fromkeys(self._ranks, EndMessages(self._job_id, plane, agreed.posted)))

    def move(self, memberships: Mapping[int, Mapping[int, Membership]]) -> None:
        """Have all go on, by new memberships, which are given by rank and the stream's plane."""
        self._calls.all(
            {
                rank: MoveStreams(
                    self._job_id,
                    tuple(
                        MovedStream(plane, self.agreed[plane].first_message, membership)
                        for plane, membership in of_rank.items()
                    ),
                )
                for rank, of_rank in memberships.items()
            }
        )


def _agreed(positions: Sequence[StreamPositions]) -> dict[int, Agreed]:
    agreed = {}
    for place, plane in enumerate(positions[0].planes):
        first = min(each.first_unfinished[place] for each in positions)
        posted = min(each.posted[place] for each in positions)
        agreed[plane] = Agreed(first, posted, sum(max(0, each.sent[place] - first) for each in positions))
    return agreed
