"""Runs the schedules of all ranks on NumPy buffers, over a network that delivers when it is asked to."""

import random
from collections import Counter, defaultdict

import numpy as np

from weft.traffic.aggregation_format import Operation
from weft.traffic.schedule_nodes import (
    DATA,
    SINK,
    ZEROS,
    Aggregate,
    Copy,
    Delay,
    RankSchedule,
    Reduce,
    Span,
    WaitReceive,
    Write,
)

UFUNC = {Operation.SUM: np.add, Operation.MAX: np.maximum, Operation.MIN: np.minimum}


class Interpreter:
    """Executes ready nodes in a seeded random order, so that a missing dependency shows as a wrong result."""

    def __init__(self, schedules: list[RankSchedule], inputs: list[np.ndarray], seed: int = 0):
        self.schedules = schedules
        self.memory = []
        for schedule, buffer in zip(schedules, inputs, strict=True):
            assert schedule.buffer_bytes.get(DATA, 0) <= buffer.nbytes
            own = {name: np.zeros(size, np.uint8) for name, size in schedule.buffer_bytes.items()}
            own[DATA] = buffer.copy().view(np.uint8)
            self.memory.append(own)
        self.random = random.Random(seed)
        self.arrived = set()
        self.parked = {}
        self.aggregating = defaultdict(list)
        self.ready = []
        self.written_bytes = Counter()

    def results(self, dtype: str) -> list[np.ndarray]:
        """Run to the end and return every rank's data. Fails if the graphs deadlock."""
        predecessors = {(s.rank, i): len(after) for s in self.schedules for i, after in enumerate(s.after)}
        successors = defaultdict(list)
        for schedule in self.schedules:
            for number, after in enumerate(schedule.after):
                for before in after:
                    successors[schedule.rank, before].append((schedule.rank, number))
        self.ready = [key for key, count in predecessors.items() if count == 0]
        left = len(predecessors)
        while self.ready:
            position = self.random.randrange(len(self.ready))
            self.ready[position], self.ready[-1] = self.ready[-1], self.ready[position]
            for finished in self.run(*self.ready.pop()):
                left -= 1
                for successor in successors[finished]:
                    predecessors[successor] -= 1
                    if predecessors[successor] == 0:
                        self.ready.append(successor)
        assert left == 0, f"deadlock: {left} nodes left"
        return [memory[DATA].view(dtype) for memory in self.memory]

    def run(self, rank: int, number: int) -> list[tuple[int, int]]:
        """Run a node and return the nodes that are done by it."""
        node = self.schedules[rank].nodes[number]
        if isinstance(node, Write):
            self.write(rank, node)
        elif isinstance(node, WaitReceive):
            if (rank, node.channel, node.immediate) not in self.arrived:
                self.parked[rank, node.channel, node.immediate] = (rank, number)
                return []
        elif isinstance(node, Reduce):
            target = self.view(rank, node.destination).view(node.dtype)
            UFUNC[node.operation](target, self.view(rank, node.source).view(node.dtype), out=target)
        elif isinstance(node, Copy):
            self.view(rank, node.destination)[:] = self.view(rank, node.source)
        elif isinstance(node, Aggregate):
            return self.aggregate(rank, number, node)
        else:
            assert isinstance(node, Delay)
        return [(rank, number)]

    def write(self, rank: int, node: Write):
        assert node.source.length_bytes == node.destination.length_bytes
        peer = node.channel.peer
        self.written_bytes[rank, node.channel.plane] += node.source.length_bytes
        if node.destination.buffer != SINK:
            self.view(peer, node.destination)[:] = self.view(rank, node.source)
        back = type(node.channel)(node.channel.plane, rank, node.channel.label)
        if node.immediate is not None:
            assert (peer, back, node.immediate) not in self.arrived, "an immediate is used twice"
            self.arrived.add((peer, back, node.immediate))
            waiting = self.parked.pop((peer, back, node.immediate), None)
            self.ready += [waiting] if waiting else []

    def aggregate(self, rank: int, number: int, node: Aggregate) -> list[tuple[int, int]]:
        together = self.aggregating[node]
        together.append((rank, number))
        if len(together) < len(self.schedules):
            return []
        parts = [self.view(member, node.span).view(node.dtype) for member, _ in together]
        total = UFUNC[node.operation].reduce(parts, dtype=node.dtype)
        for part in parts:
            part[:] = total
        return together

    def view(self, rank: int, span: Span) -> np.ndarray:
        assert span.buffer != ZEROS
        buffer = self.memory[rank][span.buffer]
        assert span.offset_bytes >= 0
        assert span.offset_bytes + span.length_bytes <= buffer.nbytes
        return buffer[span.offset_bytes : span.offset_bytes + span.length_bytes]
