"""A reference model of the switches' aggregation slots (docs/spec/aggregation.md): a test double, in plain Python."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

COLLECTING, SENT_UP, DONE = range(3)
ALL = 0xFFFF
COMBINE = {0: np.add, 1: np.maximum, 2: np.minimum, 3: np.bitwise_and, 4: np.bitwise_or, 5: np.bitwise_xor}
OVERFLOW = 1


def combined(operation: int, data_type: int, one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, int]:
    """Lanes combined as integers of 4, 2 or 1 bytes, the first in the highest bits; OVERFLOW if one left its range."""
    size = 4 >> data_type
    wide = COMBINE[operation](*(each.astype(">i4").view(f">i{size}").astype(np.int64) for each in (one, other)))
    narrow = wide.astype(f">i{size}")
    return narrow.view(">i4").astype(np.int32), OVERFLOW if np.any(narrow != wide) else 0


@dataclass
class Version:
    """One version of a slot."""

    epoch: int = 0
    round: int = 0
    bitmap: int = 0
    state: int = COLLECTING
    lanes: np.ndarray | None = None
    request: tuple[int, int, int] = (0, 0, ALL)  # operation, data type, destination
    flags: int = 0


@dataclass(frozen=True)
class Output:
    """A packet to send: `to` is a child's rank, "children" or "parent". Copies to some children have no lanes."""

    to: object
    slot: int
    round: int
    operation: int
    lanes: np.ndarray | None  # None: a header only
    destination: int = ALL
    data_type: int = 0
    flags: int = 0


class SlotMachine:
    """One tree node of one job. A root has no parent. `workers` are those below each child, by their numbers."""

    def __init__(
        self, child_count: int, slot_count: int, epoch: int, is_root: bool, workers: list[range] | None = None
    ):
        self.workers = workers or [range(child, child + 1) for child in range(child_count)]
        self.full = (1 << child_count) - 1
        self.child_count, self.slot_count, self.epoch, self.is_root = child_count, slot_count, epoch, is_root
        self.versions = [Version() for _ in range(2 * slot_count)]
        self.counters = Counter()

    def lanes_to(self, child: int, output: Output) -> np.ndarray | None:
        """Return the lanes of a child's copy of a result."""
        for_child = output.destination == ALL or output.destination in self.workers[child]
        return output.lanes if for_child else None

    def contribution(self, child: int, header: dict, lanes: np.ndarray | None) -> list[Output]:
        """Take a contribution that arrived from a child; without lanes it is a header only."""
        refusal = self.refusal(child, header)
        if refusal:
            self.counters[refusal] += 1
            return []
        slot, round_number = header["slot"], header["round"]
        version = self.versions[2 * slot + (round_number & 1)]
        bit = 1 << child
        age = np.int64(np.uint32(round_number)) - np.int64(np.uint32(version.round))
        if version.epoch != self.epoch or not version.bitmap or 0 < age % 2**32 < 2**31:
            version.epoch, version.round, version.bitmap = self.epoch, round_number, bit
            version.state, version.lanes, version.request = COLLECTING, copied(lanes), request_of(header)
            version.flags = flags_of(header, lanes)
        elif age != 0:
            self.counters["old_round"] += 1
            return []
        elif version.request != request_of(header):
            same_operation = version.request[:2] == request_of(header)[:2]
            self.counters["wrong_destination" if same_operation else "wrong_operation"] += 1
            return []
        elif version.state == DONE:
            return [self.output(child, slot, version)]
        elif version.state == SENT_UP:
            return [self.output("parent", slot, version)]
        elif version.bitmap & bit:
            self.counters["absorbed"] += 1
            return []
        else:
            if version.lanes is None:
                version.lanes = copied(lanes)
            elif lanes is not None:
                version.lanes, overflow = combined(*version.request[:2], version.lanes, lanes)
                version.flags |= overflow
            version.flags |= flags_of(header, lanes)
            version.bitmap |= bit
        if version.bitmap != self.full:
            return []
        self.counters["completed"] += 1
        version.state = DONE if self.is_root else SENT_UP
        return [self.output("children" if self.is_root else "parent", slot, version)]

    def result(self, header: dict, lanes: np.ndarray | None) -> list[Output]:
        """Take a result that arrived from the parent."""
        version = self.versions[2 * header["slot"] + (header["round"] & 1)]
        expected = (self.epoch, header["round"], SENT_UP, request_of(header))
        found = (version.epoch, version.round, version.state, version.request)
        if header["epoch"] != self.epoch or found != expected:
            self.counters["unexpected_result"] += 1
            return []
        version.lanes, version.state, version.flags = copied(lanes), DONE, header.get("flags", 0)
        return [self.output("children", header["slot"], version)]

    def refusal(self, child: int, header: dict) -> str | None:
        if header["epoch"] != self.epoch:
            return "wrong_epoch"
        if header["rank"] != child:
            return "wrong_rank"
        if header["slot"] >= self.slot_count:
            return "slot_out_of_range"
        return None

    @staticmethod
    def output(to: object, slot: int, version: Version) -> Output:
        operation, data_type, destination = version.request
        return Output(to, slot, version.round, operation, copied(version.lanes), destination, data_type, version.flags)


def request_of(header: dict) -> tuple[int, int, int]:
    return header["operation"], header.get("data_type", 0), header.get("destination", ALL)


def flags_of(header: dict, lanes: np.ndarray | None) -> int:
    """Flags count with the lanes that they are of."""
    return 0 if lanes is None else header.get("flags", 0)


def copied(lanes: np.ndarray | None) -> np.ndarray | None:
    return None if lanes is None else lanes.copy()
