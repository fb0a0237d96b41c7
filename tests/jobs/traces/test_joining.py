"""The part of ranks without a record in the calls of others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from weft.jobs.traces.calls.joining import _Filling
from weft.jobs.traces.calls.recorded import EXCHANGE, RECEIVE, SEND, Place, RecordedCall

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
