"""Reductions in the network while links fail at any time: they are right, or end with why they could not be."""

from __future__ import annotations

import asyncio
import random
import re

import numpy as np
import pytest

from weft import Fabric, topologies
from weft.errors import CheckFailedError
from weft.run.collectives import CollectiveRequest
from weft.scenario import ControlSection

US = 10**6
WHILE_PS = 400 * US
TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2, host_rate_bps=100 * 10**9, delay_ps=US)
LINKS = [(leaf, spine) for leaf in ("p0l0", "p0l1") for spine in ("p0s0", "p0s1")]
# The permitted errors: a run met a failure, or there is no tree at the moment.
KNOWN = re.compile("aggregation tree has failed|no switch of plane 0 reaches all leaves|has lost its trees")


def attempt(fabric: Fabric, seed: int) -> bool:
    """Reduce vectors that take about as long as control does; returns whether that was possible."""
    inputs = [np.random.default_rng((seed, rank)).integers(-99, 99, 8000, np.int32) for rank in range(4)]
    try:
        run = fabric.run(CollectiveRequest("allreduce", inputs, "in-network"))
    except CheckFailedError as error:
        if KNOWN.search(str(error)) is None:
            raise
        return False
    assert run.result.ok
    return True


@pytest.mark.parametrize("seed", range(3))
def test_failures_at_any_time_leave_sums_right_and_reasons_clear(seed: int) -> None:
    draw = random.Random(seed)
    control = ControlSection(latency=draw.choice([0, 40, 200]) * US, detection=draw.choice([0, 15]) * US)
    succeeded = 0
    with Fabric(TOPOLOGY, clock="virtual", seed=seed, control=control) as fabric:
        for number in range(6):
            for link in draw.sample(LINKS, draw.choice([1, 2, 2, 3])):
                down_ps = draw.randrange(WHILE_PS)
                fabric.schedule_link(*link, "down", down_ps)
                fabric.schedule_link(*link, "up", down_ps + draw.randrange(1, WHILE_PS))
            for repetition in range(4):
                succeeded += attempt(fabric, 100 * number + repetition)
            fabric.lab.controller.call(asyncio.sleep(0.002))  # of virtual time: all links are up again
            assert not fabric.lab.controller.failures.links
            assert attempt(fabric, number)
        fabric.summary()  # raises what has gone wrong while links failed
    assert succeeded > 2


@pytest.mark.parametrize("apart_ps", [0, 10 * US, 60 * US, 110 * US])
def test_a_leaf_that_loses_its_spines_one_after_the_other(apart_ps: int) -> None:
    """The second failure comes at each stage of the recovery from the first, including the hosts' rejoining."""
    control = ControlSection(latency=100 * US, detection=5 * US)
    with Fabric(TOPOLOGY, clock="virtual", control=control) as fabric:
        controller = fabric.lab.controller
        outcomes = set()
        for first_ps in range(0, 400 * US, 50 * US):
            for spine, after_ps in (("p0s0", first_ps), ("p0s1", first_ps + apart_ps)):
                fabric.schedule_link("p0l0", spine, "down", after_ps)
                fabric.schedule_link("p0l0", spine, "up", after_ps + 3000 * US)
            written_ps = fabric.hosts.now_ps() + first_ps + apart_ps + 400 * US
            while fabric.hosts.now_ps() < written_ps:
                outcomes.add(attempt(fabric, 0))
                controller.call(asyncio.sleep(20e-6))
            controller.call(asyncio.sleep(0.005))
            assert attempt(fabric, 0)
        fabric.summary()
    assert outcomes == {True, False}
