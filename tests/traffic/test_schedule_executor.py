"""Schedules run natively over NICs in virtual time, with lost, duplicated and late packets."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from point_to_point import DELAY_PS, RATE_BPS, PointToPoint

from weft.engine import Engine, _core
from weft.run.collectives import random_elements
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.data_types import DataType, numbers
from weft.traffic.messages import AS_BYTES
from weft.traffic.native_schedule import build_native_schedule
from weft.traffic.patterns import flow_schedule, incast, permutation
from weft.traffic.schedule_nodes import DATA, Channel, Delay, RankSchedule, Span, WaitReceive, Write
from weft.traffic.schedules import CollectiveSpec

FAULTS = {"loss": 0.02, "duplicate": 0.02, "delay_probability": 0.02, "extra_delay_ps": 5 * DELAY_PS}


def ring(ranks, elements, dtype=DataType.INT32, operation=Operation.SUM, planes=2, piece_bytes=4096, run_tag=0):
    spec = CollectiveSpec(ranks, elements, dtype, operation, (RATE_BPS,) * planes, piece_bytes, run_tag)
    return [COLLECTIVE_KINDS["allreduce"].schedule("ring", spec, rank) for rank in range(ranks)]


def integers(ranks, elements, seed=5):
    generator = np.random.default_rng(seed)
    return [generator.integers(-(2**31), 2**31, elements, np.int32) for _ in range(ranks)]


def wrapped_sum(inputs):
    return np.add.reduce(inputs, dtype=np.int32)


@pytest.mark.parametrize("faults", [{}, FAULTS], ids=["clean", "faulty"])
@pytest.mark.parametrize(("ranks", "elements"), [(2, 5000), (3, 1), (5, 20_001), (8, 40_000)])
def test_ring_all_reduce_of_integers_is_bit_exact(ranks, elements, faults):
    schedules = ring(ranks, elements)
    network = PointToPoint(Engine(seed=ranks), ranks, **faults)
    network.connect_all(schedules)
    inputs = integers(ranks, elements)
    for result in network.run(schedules, inputs):
        np.testing.assert_array_equal(result, wrapped_sum(inputs))


@pytest.mark.parametrize("faults", [{}, FAULTS], ids=["clean", "faulty"])
def test_ring_all_reduce_of_floats_is_identical_on_all_ranks(faults):
    ranks, elements = 4, 30_000
    schedules = ring(ranks, elements, DataType.FLOAT32)
    network = PointToPoint(Engine(seed=2), ranks, **faults)
    network.connect_all(schedules)
    inputs = [np.random.default_rng(r).standard_normal(elements).astype(np.float32) for r in range(ranks)]
    results = network.run(schedules, inputs)
    assert len({result.tobytes() for result in results}) == 1
    exact = np.sum(inputs, axis=0, dtype=np.float64)
    bound = (ranks - 1) * 2.0**-23 * np.sum(np.abs(inputs), axis=0, dtype=np.float64)
    assert np.all(np.abs(results[0] - exact) <= bound)


@pytest.mark.parametrize("operation", [Operation.MAX, Operation.MIN])
@pytest.mark.parametrize("dtype", list(DataType))
def test_ring_finds_maxima_and_minima(operation, dtype):
    schedules = ring(3, 1000, dtype, operation)
    network = PointToPoint(Engine(), 3)
    network.connect_all(schedules)
    inputs = [random_elements(np.random.default_rng(rank), dtype, 1000) for rank in range(3)]
    ufunc = np.maximum if operation is Operation.MAX else np.minimum
    expected = ufunc.reduce([numbers(each, dtype) for each in inputs])
    for result in network.run(schedules, inputs):
        np.testing.assert_array_equal(numbers(result, dtype), expected)


def test_ring_takes_the_time_of_the_bytes_it_moves():
    ranks, elements = 8, 1_000_000
    schedules = ring(ranks, elements, planes=1, piece_bytes=16384)
    network = PointToPoint(Engine(), ranks)
    network.connect_all(schedules)
    inputs = integers(ranks, elements)
    runs = network.start(schedules, inputs)
    network.engine.run()
    finished_ps = max(host.executor.status(run)["finished_ps"] for host, run in zip(network.hosts, runs, strict=True))
    bytes_sent = 2 * (ranks - 1) / ranks * elements * 4
    least_ps = bytes_sent * 8 / RATE_BPS * 1e12
    assert least_ps < finished_ps < 1.25 * least_ps


def test_a_run_repeats_exactly_with_its_seed():
    def finish_times(seed):
        schedules = ring(4, 9000)
        network = PointToPoint(Engine(seed=seed), 4, **FAULTS)
        network.connect_all(schedules)
        runs = network.start(schedules, integers(4, 9000))
        network.engine.run()
        return [h.executor.status(r)["finished_ps"] for h, r in zip(network.hosts, runs, strict=True)]

    assert finish_times(1) == finish_times(1) != finish_times(2)


def test_runs_follow_each_other_over_the_same_connections():
    network = PointToPoint(Engine(seed=3), 3, **FAULTS)
    network.connect_all(ring(3, 100))
    for tag in range(5):
        schedules, inputs = ring(3, 3000, run_tag=tag), integers(3, 3000, seed=tag)
        for result in network.run(schedules, inputs):
            np.testing.assert_array_equal(result, wrapped_sum(inputs))


def test_writes_that_arrive_before_a_rank_starts_are_kept_for_it():
    schedules, inputs = ring(3, 5000), integers(3, 5000)
    network = PointToPoint(Engine(seed=3), 3)
    network.connect_all(schedules)
    late_ps = 10_000 * DELAY_PS
    runs = network.start(schedules, inputs, start_ps=[0, 0, late_ps])
    network.engine.run()
    for host, run in zip(network.hosts, runs, strict=True):
        assert host.executor.status(run)["finished_ps"] > late_ps
        np.testing.assert_array_equal(host.arrays[DATA], wrapped_sum(inputs))


def test_a_cancelled_rank_leaves_the_others_waiting():
    schedules = ring(3, 5000)
    network = PointToPoint(Engine(seed=3), 3)
    network.connect_all(schedules)
    runs = network.start(schedules, integers(3, 5000))
    executors = [host.executor for host in network.hosts]
    executors[2].cancel(runs[2])
    network.engine.run()
    states = [executor.status(run)["state"] for executor, run in zip(executors, runs, strict=True)]
    assert states == ["running", "running", "cancelled"]
    with pytest.raises(RuntimeError, match="has not ended"):
        executors[0].forget(runs[0])


@pytest.mark.parametrize("faults", [{}, FAULTS], ids=["clean", "faulty"])
def test_incast_and_permutation_deliver_every_byte(faults):
    flows = [
        *permutation(4, 50_000, seed=1, queue_pairs=3),
        *incast(0, range(4), 20_000, start_ps=10 * DELAY_PS),
    ]
    schedules = [flow_schedule(dict(enumerate(flows)), rank) for rank in range(4)]
    network = PointToPoint(Engine(seed=4), 4, **faults)
    network.connect_all(schedules)
    network.run(schedules, [np.zeros(1, np.int32)] * 4)
    received = sum(q.stats()["data_bytes_received"] for h in network.hosts for q in h.queue_pairs.values())
    assert received == 4 * 50_000 + 3 * 20_000


@given(st.data())
def test_every_message_goes_to_one_that_waits_for_it(data):
    """Be it early or late, one of several with the same immediate, or after those who waited have given up."""
    sent = data.draw(st.lists(st.integers(0, 40) | st.integers(2**32 - 3, 2**32 - 1), min_size=1, max_size=60))
    waited = data.draw(st.permutations(sent))
    sender, receiver, gives_up = (RankSchedule(rank, {DATA: 4}) for rank in (0, 1, 1))
    word = Span(DATA, 0, 4)
    for immediate in sent:
        pause = sender.add(Delay(data.draw(st.integers(0, 3)) * DELAY_PS))
        sender.add(Write(Channel(0, 1), word, word, immediate), [pause])
    for immediate in waited:
        pause = receiver.add(Delay(data.draw(st.integers(0, 6)) * DELAY_PS))
        receiver.add(WaitReceive(Channel(0, 0), immediate), [pause])
        gives_up.add(WaitReceive(Channel(0, 0), immediate))
    network = PointToPoint(Engine(), 2)
    network.connect_all([sender, receiver])
    far = network.hosts[1]
    given_up = far.executor.start(build_native_schedule(gives_up, {}, far.channels, {}, {}, AS_BYTES))
    network.engine.run()
    far.executor.cancel(given_up)
    network.run([sender, receiver], [np.zeros(1, np.int32)] * 2)


def test_a_dead_peer_fails_the_run_with_its_reason():
    schedules = ring(2, 1000)
    network = PointToPoint(Engine(), 2)
    network.connect_all(schedules)
    for link in network.links:
        link.set_faults(loss=1.0)
    runs = network.start(schedules, integers(2, 1000))
    network.engine.run()
    status = network.hosts[0].executor.status(runs[0])
    assert status["state"] == "failed"
    assert "retry_exceeded (fault: network)" in status["error"]
    assert network.hosts[0].executor.take_ended() == [runs[0]]
    network.hosts[0].executor.forget(runs[0])
    with pytest.raises(ValueError, match=f"no run {runs[0]}"):
        network.hosts[0].executor.status(runs[0])


def test_delays_and_dependencies_take_their_time():
    engine = Engine()
    executor = _core.ScheduleExecutor(engine)
    schedule = _core.Schedule()
    data = schedule.add_buffer(np.array([1.0, math.nan, 3.0], np.float32))
    other_array = np.array([4.0, 5.0, math.nan], np.float32)
    other = schedule.add_buffer(other_array)
    first = schedule.add_delay(500)
    second = schedule.add_delay(700, after=[first])
    schedule.add_reduce((other, 0, 12), (data, 0, 12), dtype="float32", operation="max", after=[second])
    run = executor.start(schedule, start_ps=100)
    engine.run()
    status = executor.status(run)
    assert (status["started_ps"], status["finished_ps"], status["nodes_done"]) == (100, 1300, 3)
    np.testing.assert_array_equal(other_array, [4.0, math.nan, math.nan])


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda s: s.add_write(0, (1, 0, 4), remote_address=0, rkey=0), "node 0 names buffer 1"),
        (lambda s: s.add_write(0, (0, 4, 13), remote_address=0, rkey=0), r"bytes 4\+13 of a buffer of 16"),
        (lambda s: s.add_copy((0, 0, 4), (0, 8, 8)), "different lengths"),
        (
            lambda s: s.add_reduce((0, 0, 6), (0, 8, 6), dtype="int32", operation="sum"),
            "whole aligned elements",
        ),
        (
            lambda s: s.add_reduce((0, 0, 4), (0, 8, 4), dtype="int64", operation="sum"),
            "'int64'.*valid: int32",
        ),
        (lambda s: s.add_reduce((0, 0, 4), (0, 8, 4), dtype="int32", operation="nor"), "'nor'.*valid: sum"),
        (lambda s: s.add_delay(-1), "delays by -1 ps"),
        (lambda s: s.add_delay(1, after=[0]), "follows node 0"),
    ],
)
def test_senseless_nodes_are_refused_when_they_are_added(add, message):
    schedule = _core.Schedule()
    schedule.add_buffer(np.zeros(4, np.int32))
    with pytest.raises(ValueError, match=message):
        add(schedule)
    assert schedule.node_count == 0


def test_a_schedule_may_only_name_known_channels():
    schedule = _core.Schedule()
    schedule.add_wait_receive(3, 0)
    with pytest.raises(ValueError, match="names channel 3"):
        _core.ScheduleExecutor(Engine()).start(schedule)
