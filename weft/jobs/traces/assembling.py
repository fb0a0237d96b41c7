"""Assembles a job rank by rank: numbers peers, groups and calls, and keeps one copy of equal programs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from weft.errors import InvalidValueError
from weft.jobs.traces.errors import TraceError
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.jobs import CollectiveCall, Group, Job, Operations, OperationsBuilder, RankPart
from weft.traffic.jobs.operations import MAX_SIZE_BYTES

MAX_RANKS = 65_536
MAX_TRACE_OPERATIONS = 20_000_000
MAX_TRACE_DEPENDENCIES = 60_000_000


class JobAssembler:
    """Collects the ranks of a job; `operation_count` counts the operations added so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.groups: list[Group] = []
        self.calls: list[CollectiveCall] = []
        self.traffic_classes: dict[str, int] = {}
        self._group_numbers: dict[str, int] = {}
        self._call_numbers: dict[CollectiveCall, int] = {}
        self._parts: dict[int, RankPart] = {}
        self._programs: dict[bytes, Operations] = {}
        self.operation_count = 0
        self._dependency_count = 0

    def add_group(self, group: Group) -> int:
        """Add a group with a new name; return its number."""
        self._group_numbers[group.name] = len(self.groups)
        self.groups.append(group)
        return len(self.groups) - 1

    def group_number(self, name: str) -> int | None:
        """Return the number of the group with this name, None if it does not exist."""
        return self._group_numbers.get(name)

    def call_number(self, call: CollectiveCall) -> int:
        """Return the number of a call; a call not seen before gets a new one."""
        if call not in self._call_numbers:
            self._call_numbers[call] = len(self.calls)
            self.calls.append(call)
        return self._call_numbers[call]

    def add_rank(self, number: int, rank: RankAssembler, source: str) -> None:
        """Add a rank. Raises TraceError, with `source`, for more operations or dependencies than a trace may have."""
        operations = rank.operations.build()
        self.operation_count += len(operations)
        self._dependency_count += len(operations.after)
        check_count(self.operation_count, self._dependency_count, source)
        shared = self._programs.setdefault(digest_of(operations), operations)
        self._parts[number] = RankPart(
            shared, tuple(rank.peers), tuple(rank.groups), rank.compute_scale, rank.communication_share
        )

    def add_equal_ranks(self, numbers: Sequence[int], of: int, source: str) -> None:
        """Add ranks that do the same as rank `of`, without work for each. Raises TraceError as `add_rank`."""
        part = self._parts[of]
        self.operation_count += len(numbers) * len(part.operations)
        self._dependency_count += len(numbers) * len(part.operations.after)
        check_count(self.operation_count, self._dependency_count, source)
        self._parts.update(dict.fromkeys(numbers, part))

    def job(self) -> Job:
        """Return the job of all ranks added, in order. Raises JobError if they do not fit together."""
        parts = tuple(self._parts[rank] for rank in sorted(self._parts))
        return Job(self.name, parts, tuple(self.groups), tuple(self.calls), self.traffic_classes)


class RankAssembler:
    """Collects the operations of a rank. `peers` and `groups`, if given, take the first slots in their order."""

    def __init__(self, peers: tuple[int, ...] = (), groups: tuple[int, ...] = ()) -> None:
        self.operations = OperationsBuilder()
        self.compute_scale = 1.0
        self.communication_share = 0.0
        self.peers = {peer: slot for slot, peer in enumerate(peers)}
        self.groups = {group: slot for slot, group in enumerate(groups)}

    def peer_slot(self, peer: int) -> int:
        """Return the slot of a peer."""
        return self.peers.setdefault(peer, len(self.peers))

    def group_slot(self, group: int) -> int:
        """Return the slot of a group."""
        return self.groups.setdefault(group, len(self.groups))


def check_count(operations: int, dependencies: int, source: str) -> None:
    """Raise TraceError, with `source`, for more operations or dependencies than a trace may have."""
    for count, most, what in (
        (operations, MAX_TRACE_OPERATIONS, "operations"),
        (dependencies, MAX_TRACE_DEPENDENCIES, "dependencies"),
    ):
        if count > most:
            raise TraceError(f"{count} {what} up to here", place=source, valid=f"up to {most} in a trace")


def digest_of(operations: Operations) -> bytes:
    """Return a hash that is equal for equal operations and differs otherwise."""
    digest = hashlib.sha256()
    for name, value in vars(operations).items():
        content = value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
        digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.digest()


def whole_call(collective: str, size_bytes: int, ranks: int, root: int = 0) -> CollectiveCall | None:
    """Return the call of a collective, with a size as in nccl-tests; None for no bytes or a single rank.

    The size is rounded up to whole elements for each rank. Raises ValueError for more bytes than a call may have.
    """
    if size_bytes == 0 or ranks == 1:
        return None
    whole_bytes = COLLECTIVE_KINDS[collective].least_elements(ranks) * CollectiveCall.dtype.element_bytes
    rounded = -(-size_bytes // whole_bytes) * whole_bytes
    if rounded > MAX_SIZE_BYTES:
        raise InvalidValueError(f"{collective} of {rounded} B", valid=f"up to {MAX_SIZE_BYTES}")
    return CollectiveCall(collective, rounded, root=root)
