"""A job: groups of ranks, the collectives that they call, and what each rank does."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.errors import Refusal
from weft.traffic.aggregation_format import Operation
from weft.traffic.class_reference import is_class_reference
from weft.traffic.clear_to_send import ClearToSend
from weft.traffic.data_types import DataType
from weft.traffic.jobs.operations import Operations
from weft.traffic.protocols import NONE, ProtocolName

MAX_NAME_LENGTH = 200


class JobError(Refusal, ValueError):
    """The ranks of a job do not fit together; the message names ranks and operations."""


@dataclass(frozen=True)
class Group:
    """Ranks that call collectives together (a communicator, a process group), in the order of their group ranks."""

    name: str
    ranks: tuple[int, ...]

    def __post_init__(self) -> None:
        """Raise JobError for no ranks, a rank twice, or too long a name."""
        if not self.ranks or len(set(self.ranks)) < len(self.ranks) or min(self.ranks) < 0:
            raise JobError(f"group {self.name!r} of ranks {list(self.ranks)[:20]}", valid="one or more, each once")
        if len(self.name) > MAX_NAME_LENGTH:
            raise JobError(f"a group's name of {len(self.name)} characters", valid=f"up to {MAX_NAME_LENGTH}")


@dataclass(frozen=True)
class CollectiveCall:
    """A collective as groups call it; many operations may name it.

    Attributes:
        collective: one of `weft.traffic.collectives`.
        size_bytes: nccl-tests' size: of input or result, whichever is larger.
        algorithm: one of the collective's; "" for the first that suits the group.
        dtype: type of the elements.
        operation: reduces the elements, if the collective reduces.
        root: a broadcast's or a reduce's root, a group rank.
        protocol: NCCL's, in which messages travel; "" for none.
        clear_to_send: how much receivers clear; None: senders do not wait.
    """

    collective: str
    size_bytes: int
    algorithm: str = ""
    dtype: DataType = DataType.FLOAT32
    operation: Operation = Operation.SUM
    root: int = 0
    protocol: ProtocolName = NONE
    clear_to_send: ClearToSend | None = None

    @property
    def name(self) -> str:
        """The collective's name in words for users: without parameters."""
        return self.collective if is_class_reference(self.collective) else self.collective.partition(":")[0]


@dataclass(frozen=True)
class RankPart:
    """One rank's operations.

    Attributes:
        operations: maybe shared with other ranks.
        peers: the rank in each slot for peers, each once.
        groups: the place in `Job.groups` of the group in each slot for groups, each once.
        compute_scale: factor on all its computing times (a straggler is above 1).
        communication_share: share of the accelerator that its collectives and messages take while they are under way.
    """

    operations: Operations
    peers: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()
    compute_scale: float = 1.0
    communication_share: float = 0.0


@dataclass(frozen=True)
class Job:
    """Operations of ranks 0 to n-1. `weft.traffic.jobs.checks` says whether they can all end.

    Attributes:
        name: for people.
        parts: each rank's operations, in order.
        groups: groups of ranks that run collectives.
        calls: collectives that operations name.
        traffic_classes: the fabric's class for each category that has one.
        clear_to_send: how much receivers clear of sends between hosts; None: senders do not wait. Calls have their own.
    """

    name: str
    parts: tuple[RankPart, ...]
    groups: tuple[Group, ...] = ()
    calls: tuple[CollectiveCall, ...] = ()
    traffic_classes: dict[str, int] = field(default_factory=dict)
    clear_to_send: ClearToSend | None = None

    def __post_init__(self) -> None:
        """Raise JobError for slots, peers, groups and calls that there are not."""
        callers: dict[int, list[int]] = {}
        for rank, part in enumerate(self.parts):
            self._check_part(rank, part)
            for number in part.groups[: part.operations.group_slots]:
                callers.setdefault(number, []).append(rank)
        # By group, because a search of each rank in a group's ranks takes quadratic time.
        for number, ranks in callers.items():
            group = self.groups[number]
            if strangers := set(ranks).difference(group.ranks):
                raise JobError(f"rank {min(strangers)} calls a collective of {group.name!r}, without being in it")
        for group in self.groups:
            self._check_ranks(f"group {group.name!r}", group.ranks)

    def _check_part(self, rank: int, part: RankPart) -> None:
        operations = part.operations
        if len(part.peers) < operations.peer_slots or len(part.groups) < operations.group_slots:
            raise JobError(
                f"rank {rank} has {len(part.peers)} peers and {len(part.groups)} groups",
                valid=f"{operations.peer_slots} and {operations.group_slots}",
            )
        self._check_ranks(f"rank {rank}'s peers", part.peers)
        if rank in part.peers:
            raise JobError(f"rank {rank} has itself as a peer")
        for what, slots in (("peers", part.peers), ("groups", part.groups)):
            # Transfers and collectives are numbered by slot.
            if len(set(slots)) < len(slots):
                raise JobError(f"rank {rank} has one in two slots for {what}: {list(slots)[:20]}", valid="each once")
        for number in part.groups[: operations.group_slots]:
            if not 0 <= number < len(self.groups):
                raise JobError(f"rank {rank} names group {number}", valid=f"below {len(self.groups)}")
        for _, call in operations.calls:
            if call >= len(self.calls):
                raise JobError(f"rank {rank} names call {call}", valid=f"below {len(self.calls)}")

    def _check_ranks(self, who: str, ranks: tuple[int, ...]) -> None:
        for rank in ranks:
            if not 0 <= rank < len(self.parts):
                raise JobError(f"{who}: rank {rank}", valid=f"0 to {len(self.parts) - 1}")

    @property
    def operation_count(self) -> int:
        """Operations of all ranks."""
        return sum(len(part.operations) for part in self.parts)
