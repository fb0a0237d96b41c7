"""A fabric of 512 endpoints: 48 switches that the controller programs, and a permutation of them all."""

import json

import pytest

from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

LEAVES, SPINES, HOSTS_PER_LEAF = 32, 16, 16
ENDPOINTS = LEAVES * HOSTS_PER_LEAF
SIZE_BYTES = 64 * 1024
MTU_BYTES = 4096
MAX_RESULT_BYTES = 20_000


@pytest.fixture(scope="module")
def result():
    return run_scenario(
        parse_scenario(
            {
                "clock": "virtual",
                "mtu": MTU_BYTES,
                "fabric": {
                    "planes": 1,
                    "leaves": LEAVES,
                    "spines": SPINES,
                    "hosts_per_leaf": HOSTS_PER_LEAF,
                    "host_rate": "400Gbps",
                    "delay": "500ns",
                    "queue_capacity": "4MiB",
                },
                "traffic": [{"permutation": SIZE_BYTES, "data": "lengths"}],
            }
        )
    )


def test_every_byte_arrives_and_nothing_is_lost(result):
    (flows,) = result.flows
    assert (flows.flows, flows.bytes_delivered) == (ENDPOINTS, ENDPOINTS * SIZE_BYTES)
    assert (result.retransmissions, result.drops) == (0, {})
    assert (result.planes[0].tail_drops, result.planes[0].injected_losses) == (0, 0)


def test_paths_that_share_a_link_take_longer_than_the_bytes_alone(result):
    line_ps = SIZE_BYTES * 8 * 10**12 // (400 * 10**9)
    assert line_ps < result.flows[0].time_ps < 100 * line_ps
    assert result.planes[0].largest_queue_bytes > MTU_BYTES
    assert len(result.int_paths[0].hops) == 3


def test_results_do_not_grow_with_the_fabric(result):
    assert len(json.dumps(result.as_dict())) < MAX_RESULT_BYTES
