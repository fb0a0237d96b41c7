"""Lossless tori: with datelines they run at load, without them they deadlock, which is noticed and named."""

from __future__ import annotations

import re

import pytest

from tests.refusals import refused
from weft import Fabric
from weft.errors import BadInputError, DeadlockError
from weft.scenario import CreditsSection, RoutingSection
from weft.topologies.kinds.torus import torus
from weft.traffic.patterns import Flow

SIDE = 5
SIZE_BYTES = 100_000
FLOWS = [
    Flow(row * SIDE + column, row * SIDE + (column + 2) % SIDE, SIZE_BYTES)
    for row in range(SIDE)
    for column in range(SIDE)
]
"""Each host sends two switches on along its row: all of a ring's links carry two flows."""


def fabric(routing: str, allow_deadlock: bool = False) -> Fabric:
    """A lossless torus, its buffers small enough to fill."""
    return Fabric(
        torus(shape=(SIDE, SIDE)),
        clock="virtual",
        routing=RoutingSection(kind=routing),
        credits=CreditsSection(classes=[3, 4], buffer=2560, allow_deadlock=allow_deadlock),
    )


def test_without_datelines_it_is_refused() -> None:
    with (
        refused(BadInputError, place="credits.classes", problem="may deadlock: routes by"),
        fabric("dimension_order_one_lane"),
    ):
        pass


def test_without_datelines_it_deadlocks_around_a_ring() -> None:
    with (
        fabric("dimension_order_one_lane", allow_deadlock=True) as lossless,
        pytest.raises(DeadlockError) as caught,
    ):
        lossless.run_flows("along the rows", FLOWS)
    numbers = [int(found) for found in re.findall(r"p0n(\d+):", caught.value.cycle)]
    assert numbers[0] == numbers[-1]
    assert len(set(numbers)) == SIDE
    assert len({number // SIDE for number in numbers}) == 1, "the switches of one row"


def test_with_datelines_it_runs_at_load() -> None:
    with fabric("dimension_order") as lossless:
        result = lossless.run_flows("along the rows", FLOWS)
    assert result.bytes_delivered == SIZE_BYTES * len(FLOWS)
    assert result.retransmissions == 0
