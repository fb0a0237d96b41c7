"""One rank's steps: a dependency graph of plain values, named by plane, peer and buffer.

It serves flows and everything else without a regular pattern; collectives use `weft.traffic.lane_schedule`.
`weft.traffic.native_schedule` turns either into what the engine's executor runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Annotated

from weft.errors import InvalidValueError
from weft.quantities.traffic_classes import DATA_CLASS, DATA_CLASSES
from weft.traffic.aggregation_format import Operation
from weft.traffic.clear_to_send import ClearToSend
from weft.traffic.data_types import DataType
from weft.traffic.messages import Between
from weft.traffic.protocols import NONE, ProtocolName

DATA = "data"
"""The rank's buffer: input, and in the end the result."""
SCRATCH = "scratch"
"""Buffer for peers' partial results."""
ZEROS = "zeros"
"""A source of zeros without memory behind it."""
SINK = "sink"
"""A destination that counts and discards bytes."""
SCALE_UP = "scale-up"
"""Label of channels over the links between the ranks of a host."""
ALL_PLANES = -1
"""In results, the plane of what travels over all planes at once."""


def scale_up_label(label: str) -> str:
    """Return the label for scale-up channels that go with a label's channels over planes."""
    return f"{SCALE_UP}/{label}"


def is_scale_up_label(label: str) -> bool:
    """Return whether a label is `SCALE_UP` or of `scale_up_label`."""
    return label == SCALE_UP or label.startswith(f"{SCALE_UP}/")


TrafficClass = Annotated[int, Between(DATA_CLASSES[0], DATA_CLASSES[-1])]
IMMEDIATE_INDEX_BITS = 20
MAX_RUN_TAG = (1 << (32 - IMMEDIATE_INDEX_BITS)) - 1


def run_immediate(run_tag: int, index: int) -> int:
    """Return the immediate of a run's transfer `index`; tags keep successive runs over a channel apart.

    Raises ValueError if either does not fit its share of the 32 bits.
    """
    if not 0 <= run_tag <= MAX_RUN_TAG:
        raise InvalidValueError(f"run tag {run_tag}", valid=f"0 to {MAX_RUN_TAG}")
    max_index = (1 << IMMEDIATE_INDEX_BITS) - 1
    if not 0 <= index <= max_index:
        raise InvalidValueError(f"transfer {index} of a run", valid=f"0 to {max_index}; use larger pieces")
    return run_tag << IMMEDIATE_INDEX_BITS | index


@dataclass(frozen=True, slots=True)
class Channel:
    """A reliable connection to `peer` (a rank) over `plane`; `label` distinguishes connections of the same pair.

    Over scale-up links (`is_scale_up`), which use no plane's network, `plane` only distinguishes connections of the
    same pair. Its messages travel in the fabric's `traffic_class`, in the form of an NCCL `protocol` ("": as they are).
    With `clear_to_send`, receivers clear its messages, by another channel of the pair: `is_clearance`, in the
    acknowledgements' class.
    """

    plane: int
    peer: int
    label: str = "collective"
    traffic_class: TrafficClass = DATA_CLASS
    protocol: ProtocolName = NONE
    clear_to_send: ClearToSend | None = None
    is_clearance: bool = False

    def with_clearances(self) -> tuple[Channel, ...]:
        """Return the channel, and the one that clears its messages if receivers do so."""
        if self.clear_to_send is None:
            return (self,)
        return self, replace(self, is_clearance=True)

    def towards(self, peer: int) -> Channel:
        """Return the same channel to another peer, such as its other end's."""
        return replace(self, peer=peer)

    @property
    def is_scale_up(self) -> bool:
        """Return whether it goes over the links inside a host."""
        return is_scale_up_label(self.label)


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a named buffer, the rank's own or (as the destination of a write) the peer's."""

    buffer: str
    offset_bytes: int
    length_bytes: int


@dataclass(frozen=True, slots=True)
class Write:
    """RDMA WRITE from `source` to the peer's `destination`, done when acknowledged."""

    channel: Channel
    source: Span
    destination: Span
    immediate: int | None = None


@dataclass(frozen=True, slots=True)
class WaitReceive:
    """Done when a write with this immediate has come in over the channel."""

    channel: Channel
    immediate: int


@dataclass(frozen=True, slots=True)
class Reduce:
    """destination[i] = operation(destination[i], source[i])."""

    destination: Span
    source: Span
    dtype: DataType
    operation: Operation


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy within the rank."""

    destination: Span
    source: Span


@dataclass(frozen=True, slots=True)
class Aggregate:
    """All-reduce `span` in place, in the network of `plane`."""

    plane: int
    span: Span
    dtype: DataType
    operation: Operation


@dataclass(frozen=True, slots=True)
class Delay:
    """Stands for computation that takes time."""

    duration_ps: int


Node = Write | WaitReceive | Reduce | Copy | Aggregate | Delay


@dataclass
class RankSchedule:
    """The graph of one rank: `nodes[i]` starts when all nodes in `after[i]` (all of them below i) are done.

    `buffer_bytes` says how large each named buffer must be.
    """

    rank: int
    buffer_bytes: dict[str, int]
    nodes: list[Node] = field(default_factory=list)
    after: list[tuple[int, ...]] = field(default_factory=list)

    def add(self, node: Node, after: Iterable[int | None] = ()) -> int:
        """Append a node and return its number; None among `after` stands for no predecessor."""
        self.nodes.append(node)
        self.after.append(tuple(number for number in after if number is not None))
        return len(self.nodes) - 1

    def of_lengths(self) -> RankSchedule:
        """Return a schedule that transfers as much, in the same order, without data: zeros into sinks.

        Reductions and copies, which take no time, are left out; their successors follow their predecessors. What the
        network aggregates stays data.
        """
        largest = max(self.buffer_bytes.values(), default=0)
        lengths = RankSchedule(self.rank, {ZEROS: largest, SINK: largest})
        if self.planes_aggregated():
            lengths.buffer_bytes[DATA] = self.buffer_bytes[DATA]
        stands_for: list[tuple[int, ...]] = []
        for node, before in zip(self.nodes, self.after, strict=True):
            after = tuple(dict.fromkeys(number for each in before for number in stands_for[each]))
            if isinstance(node, Reduce | Copy):
                stands_for.append(after)
                continue
            if isinstance(node, Write):
                length = node.source.length_bytes
                node = Write(node.channel, Span(ZEROS, 0, length), Span(SINK, 0, length), node.immediate)
            stands_for.append((lengths.add(node, after),))
        return lengths

    def channels(self) -> list[Channel]:
        """Return the channels that the nodes name, each once, in order of first use, and channels for clearances."""
        used = (node.channel for node in self.nodes if isinstance(node, Write | WaitReceive))
        return [each for channel in dict.fromkeys(used) for each in channel.with_clearances()]

    def written_peers(self) -> list[int]:
        """Return the ranks that the nodes write to, each once."""
        return list(dict.fromkeys(node.channel.peer for node in self.nodes if isinstance(node, Write)))

    def sent_bytes(self) -> Counter[Channel]:
        """Return the bytes that the nodes write over each channel."""
        sent: Counter[Channel] = Counter()
        for node in self.nodes:
            if isinstance(node, Write):
                sent[node.channel] += node.source.length_bytes
        return sent

    def planes_aggregated(self) -> list[int]:
        """Return the planes with aggregation in their network, in order."""
        return sorted({node.plane for node in self.nodes if isinstance(node, Aggregate)})
