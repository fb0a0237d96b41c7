"""Jobs of all kinds of operations, by a seed, that can come to an end; and whether two jobs are the same."""

import random

import numpy as np

from weft.traffic.aggregation_format import Operation
from weft.traffic.data_types import DataType
from weft.traffic.jobs import NO_STREAM, CollectiveCall, Group, Job, OperationsBuilder, RankPart

NAMES = ("", "layer 0", "grad", "été")
CALLS = (
    CollectiveCall("allreduce", 4096, "tree", DataType.INT32, Operation.MAX),
    CollectiveCall("allgather", 8000),
    CollectiveCall("broadcast", 64, root=1),
    CollectiveCall("moe_dispatch", 1 << 20),
    CollectiveCall("reducescatter", 960),
)


def random_job(seed: int, collectives: tuple[CollectiveCall, ...] = CALLS) -> Job:
    """Two to six ranks; operations follow earlier ones of their rank, and events happen in one order."""
    draws = random.Random(seed)
    ranks = draws.randint(2, 6)
    groups = (Group("all", tuple(range(ranks))), Group("pair", (1, 0)), Group("pair", (0, 1)))
    builders = [OperationsBuilder() for _ in range(ranks)]
    peers = [draws.sample([each for each in range(ranks) if each != rank], ranks - 1) for rank in range(ranks)]
    own_groups = [draws.sample([0, 1, 2] if rank < 2 else [0], 3 if rank < 2 else 1) for rank in range(ranks)]
    for _ in range(draws.randint(1, 30)):
        kind = draws.randrange(4)
        if kind == 0:
            source, destination = draws.sample(range(ranks), 2)
            size, tag = draws.choice([0, 1, 10**6]), draws.choice([0, 5, 1 << 40])
            builders[source].send(peers[source].index(destination), size, tag, **common(draws, builders[source]))
            builders[destination].receive(
                peers[destination].index(source), size, tag, **common(draws, builders[destination])
            )
        elif kind == 1 and collectives:
            group, call = draws.randrange(3), draws.randrange(len(collectives))
            for rank in groups[group].ranks:
                slot = own_groups[rank].index(group)
                builders[rank].collective(slot, call, **common(draws, builders[rank]))
        else:
            builder = builders[draws.randrange(ranks)]
            duration_ps = draws.choice([0, 1, 1_499_999, 10**9])
            if kind == 2:
                builder.compute(duration_ps, **{**common(draws, builder), "stream": draws.choice([-1, 0, 1, 7])})
            else:
                builder.timer(duration_ps, name=draws.choice(NAMES))
    parts = tuple(
        RankPart(builder.build(), tuple(peers[rank]), tuple(own_groups[rank]), draws.choice([1.0, 1.25]))
        for rank, builder in enumerate(builders)
    )
    return Job(draws.choice(["", "job"]), parts, groups, collectives, {"grad": 3} if draws.random() < 0.5 else {})


def common(draws: random.Random, builder: OperationsBuilder) -> dict:
    def some() -> list[int]:
        return draws.sample(range(len(builder)), min(len(builder), draws.choice([0, 0, 1, 2])))

    return {
        "after": some(),
        "after_start": some(),
        "name": draws.choice(NAMES),
        "category": draws.choice(["", "grad", "forward"]),
        "stream": draws.choice([NO_STREAM, NO_STREAM, 4]),
    }


def differences(ours: Job, theirs: Job) -> list[str]:
    """Say what differs between two jobs, but for which ranks share their operations."""
    found = [
        key for key in ("name", "groups", "calls", "traffic_classes") if getattr(ours, key) != getattr(theirs, key)
    ]
    if len(ours.parts) != len(theirs.parts):
        return [*found, "ranks"]
    for rank, (one, two) in enumerate(zip(ours.parts, theirs.parts, strict=True)):
        found += [
            f"rank {rank}'s {key}"
            for key in ("peers", "groups", "compute_scale")
            if getattr(one, key) != getattr(two, key)
        ]
        for key, value in vars(one.operations).items():
            other = getattr(two.operations, key)
            same = np.array_equal(value, other) if isinstance(value, np.ndarray) else value == other
            if not same or type(value) is not type(other):
                found.append(f"rank {rank}'s operations' {key}: {value} {other}")
    return found
