"""Runs that carry lengths take the same times and count the same as runs that carry bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from point_to_point import DELAY_PS, PointToPoint

from weft.engine import Engine, _core
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.data_types import DataType
from weft.traffic.lane_schedule import Schedule
from weft.traffic.messages import AS_BYTES, AS_LENGTHS
from weft.traffic.patterns import Flow, flow_schedule
from weft.traffic.schedules import CollectiveSpec

RANKS = 3


def outcome(schedules: list[Schedule], payload: str, element_count: int, **options):
    """When each rank was done, and everything that was counted."""
    network = PointToPoint(Engine(seed=5), RANKS, **options)
    network.connect_all(schedules)
    runs = network.start(schedules, [np.zeros(element_count, np.int32)] * RANKS, payload=payload)
    network.engine.run()
    return (
        [host.executor.status(run) for host, run in zip(network.hosts, runs, strict=True)],
        [pair.stats() for host in network.hosts for pair in host.queue_pairs.values()],
        [link.stats() for link in network.links],
        [[host.nic.stats(port) for port in range(len(host.queue_pairs))] for host in network.hosts],
    )


flows = st.lists(
    st.builds(
        Flow,
        source=st.integers(0, RANKS - 1),
        destination=st.integers(0, RANKS - 1),
        size_bytes=st.integers(1, 20_000),
        start_ps=st.integers(0, 5 * DELAY_PS),
    ).filter(lambda flow: flow.source != flow.destination),
    min_size=1,
    max_size=6,
)
faults = st.fixed_dictionaries(
    {
        "loss": st.sampled_from([0.0, 0.05]),
        "duplicate": st.sampled_from([0.0, 0.05]),
        "telemetry": st.booleans(),
    }
)


@settings(max_examples=40, deadline=None)
@given(flows, faults)
def test_flows(drawn, options):
    schedules = [flow_schedule(dict(enumerate(drawn)), rank) for rank in range(RANKS)]
    of_bytes = outcome(schedules, AS_BYTES, 1, **options)
    assert outcome(schedules, AS_LENGTHS, 1, **options) == of_bytes
    assert all(status["state"] == "finished" for status in of_bytes[0])


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 9000), faults)
def test_a_ring(element_count, options):
    spec = CollectiveSpec(RANKS, element_count, DataType.INT32, Operation.SUM, (10**10,), piece_bytes=4096)
    schedules = [COLLECTIVE_KINDS["allreduce"].schedule("ring", spec, rank).of_lengths() for rank in range(RANKS)]
    of_bytes = outcome(schedules, AS_BYTES, element_count, **options)
    assert outcome(schedules, AS_LENGTHS, element_count, **options) == of_bytes
    assert all(status["state"] == "finished" for status in of_bytes[0])


def test_lengths_are_for_writes_only():
    schedule = _core.Schedule()
    schedule.add_lengths(16)
    schedule.add_buffer(np.zeros(4, np.int32))
    with pytest.raises(ValueError, match="node 0 works on a source of zeros"):
        schedule.add_copy((1, 0, 4), (0, 0, 4))
    with pytest.raises(ValueError, match=r"bytes 8\+12 of a buffer of 16"):
        schedule.add_write(0, (0, 8, 12), remote_address=0, rkey=0)
