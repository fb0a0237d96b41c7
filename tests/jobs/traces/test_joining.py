"""The part of ranks without a record in the calls of others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.refusals import refused
from weft.jobs.traces import assembling
from weft.jobs.traces.assembling import JobAssembler, digest_of
from weft.jobs.traces.calls.joining import _Filling, _Program, trace_of_calls
from weft.jobs.traces.calls.recorded import EXCHANGE, RECEIVE, SEND, Place, RecordedCall
from weft.jobs.traces.errors import TraceError
from weft.traffic.jobs import Group

Calls = dict[int, list[RecordedCall]]
Communicators = dict[str, tuple[int, ...]]
OTHER = {SEND: RECEIVE, RECEIVE: SEND}


def parts_of(rank: int, calls: Calls, communicators: Communicators) -> Iterator[RecordedCall]:
    """Yield a rank's parts by a look at each call of each recorded rank."""
    for recorded, of_rank in calls.items():
        for call in of_rank:
            ranks = communicators[call.communicator]
            if rank not in ranks:
                continue
            part, place, own = None, ranks.index(rank), ranks.index(recorded)
            if call.operation in OTHER:
                if call.root == place:
                    part = replace(call, operation=OTHER[call.operation], root=own)
            elif call.operation == EXCHANGE:
                if call.sent[place] or call.received[place]:
                    sent = tuple(call.received[place] * (each == own) for each in range(len(ranks)))
                    received = tuple(call.sent[place] * (each == own) for each in range(len(ranks)))
                    part = replace(call, sent=sent, received=received)
            elif recorded == min(each for each in ranks if each in calls):
                part = call
            if part is not None:
                yield replace(part, stream=f"{recorded} {call.stream}")


def random_call(number: int, chance: random.Random, communicators: Communicators, rank: int) -> RecordedCall:
    name = chance.choice([each for each, ranks in communicators.items() if rank in ranks])
    size = len(communicators[name])
    operation = chance.choice([SEND, RECEIVE, EXCHANGE, "allreduce"])
    shares = (
        [tuple(chance.choice([0, 0, 5]) for _ in range(size)) for _ in range(2)] if operation == EXCHANGE else [()] * 2
    )
    place = Place(f"rank {rank}: call", number)
    root = chance.randrange(size) if operation in OTHER else 0
    return RecordedCall(
        operation, 8, "int8", name, place, root, chance.choice("ab"), sent=shares[0], received=shares[1]
    )


@pytest.mark.parametrize("seed", range(5))
def test_ranks_take_part_in_the_order_of_the_recorded_ones(seed: int) -> None:
    chance = random.Random(seed)
    communicators = {"all": tuple(range(8))}
    communicators |= {f"c{number}": tuple(chance.sample(range(8), 4)) for number in range(4)}
    recorded = chance.sample(range(8), 3)
    calls = {rank: [random_call(each, chance, communicators, rank) for each in range(30)] for rank in recorded}
    filling = _Filling(Path("trace"), calls, communicators, 8)
    found = 0
    for rank in set(range(8)) - set(recorded):
        parts = list(filling.calls_of(rank))
        assert parts == list(parts_of(rank, calls, communicators))
        found += len(parts)
    assert found > 50


def test_only_a_ranks_own_messages_are_visited(monkeypatch: pytest.MonkeyPatch) -> None:
    world, messages, visited = 500, 1000, []
    ours = _Filling._ours
    monkeypatch.setattr(_Filling, "_ours", lambda *given: visited.append(given) or ours(*given))
    sends = [
        RecordedCall(SEND, 8, "int8", "all", Place("call", number), root=1 + number % (world - 1))
        for number in range(messages)
    ]
    filling = _Filling(Path("trace"), {0: sends}, {"all": tuple(range(world))}, world)
    assert sum(len(list(filling.calls_of(rank))) for rank in range(1, world)) == messages
    assert len(visited) == messages


@pytest.mark.parametrize("seed", range(5))
def test_ranks_that_only_share_calls_have_one_part(seed: int) -> None:
    chance = random.Random(seed)
    communicators = {"all": tuple(range(60)), "some": tuple(chance.sample(range(60), 20)), "free": (3, 5)}
    recorded = [communicators["some"][0]]
    names = {rank: [each for each in ("all", "some") if rank in communicators[each]] for rank in range(60)}
    calls = {
        rank: [
            random_call(each, chance, {name: communicators[name] for name in names[rank]}, rank) for each in range(12)
        ]
        for rank in recorded
    }
    calls[recorded[0]] = [call for call in calls[recorded[0]] if call.operation != EXCHANGE]
    job = trace_of_calls(Path("trace"), calls, communicators).job
    filling = _Filling(Path("trace"), calls, communicators, 60)
    expected = JobAssembler("trace")
    for name, ranks in communicators.items():
        expected.add_group(Group(name, ranks))
    for rank in range(60):
        program = _Program(expected, rank)
        for call in calls.get(rank) or filling.calls_of(rank):
            program.add(call)
        expected.add_rank(rank, program.assembler, "trace")
    one_by_one = expected.job()
    assert [digest_of(each.operations) for each in job.parts] == [
        digest_of(each.operations) for each in one_by_one.parts
    ]
    assert [(each.peers, each.groups) for each in job.parts] == [(each.peers, each.groups) for each in one_by_one.parts]
    assert job.calls == one_by_one.calls
    senders = {call.root for call in calls[recorded[0]] if call.operation in OTHER}
    assert len({id(part) for part in job.parts}) <= 1 + 2 * len(senders) + 2


def test_equal_ranks_count_as_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembling, "MAX_TRACE_OPERATIONS", 99)
    calls = {0: [RecordedCall("allreduce", 8, "int8", "all", Place("call", 0))]}
    assert len(trace_of_calls(Path("trace"), calls, {"all": tuple(range(99))}).job.parts) == 99
    with refused(TraceError, problem="100 operations", place="trace", valid="up to 99 in a trace"):
        trace_of_calls(Path("trace"), calls, {"all": tuple(range(101))})
