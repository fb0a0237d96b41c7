"""Runs the schedules of all ranks on NumPy buffers, over a network that delivers when it is asked to."""

import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from weft.engine import _core
from weft.results.verification import UFUNCS
from weft.traffic.aggregation_format import Operation
from weft.traffic.data_types import DataType, elements_of, numbers
from weft.traffic.lane_schedule import Schedule
from weft.traffic.native_schedule import RemoteBuffer, build_native_schedule
from weft.traffic.schedule_nodes import DATA, SINK, ZEROS, Channel

UFUNC = {**UFUNCS, Operation.AVERAGE: np.add}
_BUFFER_BITS = 40
"""A buffer's address is its number, shifted by so much."""


@dataclass
class Sent:
    """A write; its payload is taken as it was posted, or as it is when it arrives (None)."""

    rank: int
    channel: Channel
    immediate: int | None
    step: int
    time_ps: int
    source: np.ndarray | None
    payload: np.ndarray | None
    length_bytes: int
    address: int
    rkey: int
    to_itself: bool = False


class Interpreter:
    """Delivers in a seeded random order, so that a missing dependency shows as a wrong result.

    Writes of a channel arrive in order, as those of a queue pair do. Delays pass when nothing is under way.
    """

    def __init__(
        self,
        schedules: list[Schedule],
        inputs: list[np.ndarray],
        seed: int = 0,
        dtype: DataType = DataType.INT32,
        operation: Operation = Operation.SUM,
        team_of: Callable[[int], int] = lambda _: 0,
    ):
        self.teams = [team_of(schedule.rank) for schedule in schedules]
        self.schedules, self.dtype, self.operation = schedules, dtype, operation
        self.random = random.Random(seed)
        self.memory = []
        for schedule, buffer in zip(schedules, inputs, strict=True):
            assert schedule.buffer_bytes.get(DATA, 0) <= buffer.nbytes
            own = {
                name: np.zeros(size, np.uint8)
                for name, size in schedule.buffer_bytes.items()
                if name not in (ZEROS, SINK)
            }
            if DATA in own:
                own[DATA] = buffer.copy().view(np.uint8)
            self.memory.append(own)
        self.channels = [schedule.channels() for schedule in schedules]
        peers = {schedule.rank: self.buffers_of(rank) for rank, schedule in enumerate(schedules)}
        self.natives = [
            build_native_schedule(
                schedule,
                self.memory[rank],
                {channel: number for number, channel in enumerate(self.channels[rank])},
                {plane: plane for plane in schedule.planes_aggregated()},
                peers,
            )
            for rank, schedule in enumerate(schedules)
        ]
        self.steppers = [_core.ScheduleStepper(native) for native in self.natives]
        self.under_way: dict[tuple[int, Channel], deque[Sent]] = defaultdict(deque)
        self.unacknowledged: dict[tuple[int, Channel], deque[Sent]] = defaultdict(deque)
        self.aggregating: dict[tuple[int, int], dict[int, deque]] = defaultdict(lambda: defaultdict(deque))
        self.reducing: dict[tuple, list[Sent]] = defaultdict(list)
        self.reduced: list[tuple[np.ndarray | None, list[Sent]]] = []
        self.delays: list[tuple[int, int, int]] = []
        self.now_ps = 0
        self.sent: list[Sent] = []
        self.aggregated_ps: list[int] = []
        self.written_bytes = Counter()

    def buffers_of(self, rank: int) -> dict[str, RemoteBuffer]:
        """Return the addresses of a rank's buffers; a sink's number is above all others."""
        names = [*self.memory[rank], SINK]
        return {name: RemoteBuffer(number << _BUFFER_BITS, number) for number, name in enumerate(names)}

    def source_of(self, rank: int, address: int, length: int) -> np.ndarray:
        """Return the bytes of a rank's buffers at an address."""
        for buffer in self.memory[rank].values():
            offset = address - buffer.ctypes.data
            if 0 <= offset <= buffer.nbytes - length:
                return buffer[offset : offset + length]
        raise AssertionError(f"rank {rank} sends {length} bytes that are in none of its buffers")

    def results(self, dtype: str) -> list[np.ndarray]:
        """Run to the end and return every rank's data. Fails on a deadlock, and unless each step is done once."""
        for rank, stepper in enumerate(self.steppers):
            stepper.begin()
            self.collect(rank)
        while self.deliver() or self.pass_time():
            pass
        for rank, stepper in enumerate(self.steppers):
            assert stepper.is_done, f"deadlock: rank {rank} has done {len(stepper.done)} steps"
            assert sorted(stepper.done) == list(range(len(stepper.done)))
            assert stepper.unclaimed_arrivals == 0
        return [memory.get(DATA, np.zeros(0, np.uint8)).view(dtype) for memory in self.memory]

    def collect(self, rank: int) -> None:
        """Read the steps that a rank's schedule has posted."""
        stepper = self.steppers[rank]
        original = None
        for step, number, source, length, address, rkey, immediate, switched in stepper.take_writes():
            terms, is_copy, to_itself = switched
            assert not is_copy or original == length, "a copy of something else"
            original = length
            channel = self.channels[rank][number]
            data = None
            if source:
                data = self.source_of(rank, source, length)
            early = data.copy() if data is not None and self.random.random() < 0.5 else None
            sent = Sent(rank, channel, immediate, step, self.now_ps, data, early, length, address, rkey, to_itself)
            self.sent.append(sent)
            if not is_copy:
                self.written_bytes[rank, channel.plane] += length
            if terms > 1:
                self.reduce(sent, terms)
            elif to_itself:
                self.unacknowledged[rank, channel].append(sent)
            else:
                self.under_way[rank, channel].append(sent)
        for step, plane, address, length, parts in stepper.take_aggregations():
            offset = address - self.memory[rank][DATA].ctypes.data
            data = self.memory[rank][DATA][offset : offset + length].view(self.dtype.storage)
            self.aggregating[plane, self.teams[rank]][rank].append((step, data, parts))
            self.aggregated_ps.append(self.now_ps)
        self.delays += [(self.now_ps + duration, rank, token) for _, duration, token in stepper.take_delays()]

    def reduce(self, term: Sent, terms: int) -> None:
        """Take a term of a host's switch's reduction; the last one makes the result."""
        receiver = term.rank if term.to_itself else term.channel.peer
        of_group = replace(term.channel, peer=receiver)
        waiting = self.reducing[of_group, term.immediate]
        waiting.append(term)
        assert len({each.rank for each in waiting}) == len(waiting), "two terms of a rank"
        if len(waiting) < terms:
            return
        del self.reducing[of_group, term.immediate]
        waiting.sort(key=lambda each: each.rank)
        assert sum(each.to_itself for each in waiting) == 1, "the receiver's own term"
        sent = [each for each in waiting if not each.to_itself]
        assert len({(each.address, each.rkey, each.length_bytes) for each in sent}) == 1, "terms for different places"
        assert {each.length_bytes for each in waiting} == {sent[0].length_bytes}
        result = None
        if all(each.source is not None for each in waiting):
            data = [each.source if each.payload is None else each.payload for each in waiting]
            numbers_of = [numbers(each.view(self.dtype.storage), self.dtype) for each in data]
            result = elements_of(UFUNC[self.operation].reduce(numbers_of, dtype=numbers_of[0].dtype), self.dtype)
        self.reduced.append((result, waiting))

    def deliver_result(self) -> None:
        """Place a result and notify its receiver, as if each term had been written there."""
        result, terms = self.reduced.pop(self.random.randrange(len(self.reduced)))
        for term in terms:
            if term.to_itself:
                self.unacknowledged[term.rank, term.channel].append(term)
            else:
                data = None if result is None else result.view(np.uint8)
                self.arrive(replace(term, source=data, payload=None))

    def deliver(self) -> bool:
        """Deliver a write, an acknowledgement or an aggregation that all ranks have posted; False without any."""
        arriving = [key for key, waiting in self.under_way.items() if waiting]
        acknowledging = [key for key, waiting in self.unacknowledged.items() if waiting]
        if not arriving and not acknowledging and not self.reduced:
            return self.aggregate()
        number = self.random.randrange(len(arriving) + len(acknowledging) + bool(self.reduced))
        if number == len(arriving) + len(acknowledging):
            self.deliver_result()
            return True
        if number < len(arriving):
            self.arrive(self.under_way[arriving[number]].popleft())
        else:
            sent = self.unacknowledged[acknowledging[number - len(arriving)]].popleft()
            self.steppers[sent.rank].completed(sent.step)
            self.collect(sent.rank)
        return True

    def arrive(self, sent: Sent) -> None:
        """Place a write's payload and notify its receiver."""
        peer = sent.channel.peer
        if sent.source is not None:
            buffer = list(self.memory[peer].values())[sent.rkey]
            offset = sent.address - (sent.rkey << _BUFFER_BITS)
            assert 0 <= offset <= buffer.nbytes - sent.length_bytes
            buffer[offset : offset + sent.length_bytes] = sent.source if sent.payload is None else sent.payload
        back = Channel(sent.channel.plane, sent.rank, sent.channel.label)
        self.unacknowledged[sent.rank, sent.channel].append(sent)
        if sent.immediate is not None:
            self.steppers[peer].arrived(self.channels[peer].index(back), sent.immediate)
            self.collect(peer)

    def aggregate(self) -> bool:
        """Carry out an aggregation that all ranks of a team have posted."""
        for (_, team), by_rank in self.aggregating.items():
            if len(by_rank) < self.teams.count(team) or not all(by_rank.values()):
                continue
            together = {rank: waiting.popleft() for rank, waiting in by_rank.items()}
            for parts in zip(*(parts for _, _, parts in together.values()), strict=True):
                start, stop, receiver, is_reduced, _ = parts[0]
                assert {each[:4] for each in parts} == {parts[0][:4]}, "ranks disagree on a part"
                places = [data[start:stop] for _, data, _ in together.values()]
                brought = [place for place, part in zip(places, parts, strict=True) if part[4]]
                if start == stop:
                    continue
                if is_reduced:
                    assert len(brought) == len(places)
                    terms = [numbers(each, self.dtype) for each in brought]
                    outcome = elements_of(UFUNC[self.operation].reduce(terms, dtype=terms[0].dtype), self.dtype)
                else:
                    (outcome,) = (each.copy() for each in brought)
                for rank, place in zip(together, places, strict=True):
                    if receiver in (None, rank):
                        place[:] = outcome
            for rank, (step, _, _) in together.items():
                self.steppers[rank].completed(step)
                self.collect(rank)
            return True
        return False

    def pass_time(self) -> bool:
        """Advance time to the end of the next delay; False without any."""
        if not self.delays:
            return False
        self.delays.sort()
        self.now_ps, rank, token = self.delays.pop(0)
        self.steppers[rank].delay_over(token)
        self.collect(rank)
        return True
