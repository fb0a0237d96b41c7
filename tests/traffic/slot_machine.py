"""A reference model of the switches' aggregation slots (docs/spec/aggregation.md): a test double, in plain Python."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

COLLECTING, SENT_UP, DONE = range(3)
ALL = 0xFFFF
COMBINE = {0: np.add, 1: np.maximum, 2: np.minimum}


@dataclass
class Version:
    """One version of a slot."""

    epoch: int = 0
    round: int = 0
    bitmap: int = 0
    state: int = COLLECTING
    lanes: np.ndarray | None = None
    request: tuple[int, int] = (0, ALL)  # operation, destination


@dataclass(frozen=True)
class Output:
    """A packet to send: `to` is a child's rank, "children" or "parent". Copies to some children have no lanes."""

    to: object
    slot: int
    round: int
    operation: int
    lanes: np.ndarray | None  # None: a header only
    destination: int = ALL


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
        elif age != 0:
            self.counters["old_round"] += 1
            return []
        elif version.request != request_of(header):
            same_operation = version.request[0] == header["operation"]
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
                with np.errstate(over="ignore"):
                    version.lanes = COMBINE[header["operation"]](version.lanes, lanes, dtype=np.int32)
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
        version.lanes, version.state = copied(lanes), DONE
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
        operation, destination = version.request
        return Output(to, slot, version.round, operation, copied(version.lanes), destination)


def request_of(header: dict) -> tuple[int, int]:
    return header["operation"], header.get("destination", ALL)


def copied(lanes: np.ndarray | None) -> np.ndarray | None:
    return None if lanes is None else lanes.copy()
