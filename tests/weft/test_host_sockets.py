"""Sockets between the processes of a host: each two ranks have a pair, and the runner keeps none."""

from __future__ import annotations

import os
import socket

import pytest

from weft.clocks.real.host_sockets import HostSockets, ranks_of_host, scale_up_config
from weft.topologies import FabricSpec, leaf_spine, with_scale_up

RANKS = 8


def fabric(rail_optimised: bool) -> FabricSpec:
    return with_scale_up(
        leaf_spine(planes=1, leaves=4, spines=1, hosts_per_leaf=RANKS // 4), 2, rail_optimised=rail_optimised
    )


@pytest.mark.parametrize("rail_optimised", [False, True])
def test_each_two_ranks_of_a_host_are_joined(rail_optimised: bool) -> None:
    described = fabric(rail_optimised)
    inherited: dict[tuple[int, int], socket.socket] = {}
    with HostSockets(described) as sockets:
        for rank in range(RANKS):
            for peer, number in sockets.of(rank).items():
                inherited[rank, peer] = socket.socket(fileno=os.dup(number))
            sockets.passed_on(rank)
            config = scale_up_config(described, rank, sockets.of(rank))
            assert config is not None
            assert set(config.sockets) == set(config.ranks) - {rank}
    assert {rank: [peer] for rank, peer in inherited} == {
        rank: [peer for peer in ranks_of_host(described, rank) if peer != rank] for rank in range(RANKS)
    }
    for (rank, peer), end in inherited.items():
        end.send(bytes([rank, peer]))
    for (rank, peer), end in inherited.items():
        assert end.recv(2) == bytes([peer, rank])
    # The end of one is seen at the other, because nobody else holds it.
    while inherited:
        (rank, peer), end = inherited.popitem()
        end.close()
        if (other := inherited.pop((peer, rank), None)) is not None:
            assert other.recv(1) == b""
            other.close()


def test_what_was_not_passed_on_is_closed() -> None:
    with HostSockets(fabric(rail_optimised=False)) as sockets:
        (number,) = sockets.of(0).values()
        copy = socket.socket(fileno=os.dup(number))
    assert copy.recv(1) == b""
    copy.close()


def test_hosts_of_one_rank_have_none() -> None:
    plain = leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    with HostSockets(plain) as sockets:
        assert sockets.of(1) == {}
    assert scale_up_config(plain, 1, {}) is None
