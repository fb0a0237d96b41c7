"""The bytes that schedules say they send are those that a collective moves."""

from __future__ import annotations

import pytest

from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.data_types import DataType
from weft.traffic.schedules import CollectiveSpec

RANKS, ELEMENTS = 8, 8 * 96


def spec() -> CollectiveSpec:
    return CollectiveSpec(
        rank_count=RANKS,
        element_count=ELEMENTS,
        dtype=DataType.FLOAT32,
        operation=Operation.SUM,
        plane_rates_bps=(100, 100),
    )


@pytest.mark.parametrize(
    ("collective", "algorithm", "factor"),
    [
        ("allreduce", "ring", 2 * (RANKS - 1)),
        ("allreduce", "halving-doubling", 2 * (RANKS - 1)),
        ("allgather", "ring", RANKS - 1),
        ("reducescatter", "ring", RANKS - 1),
        ("alltoall", "direct", RANKS - 1),
        ("broadcast", "tree", RANKS - 1),
    ],
)
def test_all_ranks_together_send_what_the_algorithm_moves(collective: str, algorithm: str, factor: int) -> None:
    """In units of the data: a ring's all-reduce moves 2 (n - 1) times the data, and so on."""
    found = COLLECTIVE_KINDS[collective]
    sent = [found.schedule(algorithm, spec(), rank).sent_bytes() for rank in range(RANKS)]
    assert sum(sum(each.values()) for each in sent) == factor * ELEMENTS * 4


def test_a_ring_sends_to_its_neighbour_on_every_plane() -> None:
    sent = COLLECTIVE_KINDS["allreduce"].schedule("ring", spec(), 3).sent_bytes()
    assert {(channel.peer, channel.plane) for channel in sent} == {(4, 0), (4, 1)}
    assert len(set(sent.values())) == 1
