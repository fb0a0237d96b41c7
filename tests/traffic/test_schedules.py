"""Schedules, interpreted in random order, against NumPy and their bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_interpreter import UFUNC, Interpreter

from traffic.aggregation_format import Operation
from traffic.patterns import Flow, flow_schedule, incast, permutation
from traffic.schedule_nodes import DataType, WaitReceive, Write, run_immediate
from traffic.schedules import CollectiveSpec, generate, peers_of
from traffic.striping import split_evenly, stripe


def spec_of(ranks, elements, dtype=DataType.INT32, operation=Operation.SUM, rates=(1, 1), **options):
    return CollectiveSpec(ranks, elements, dtype, operation, tuple(rates), **options)


def inputs_of(spec: CollectiveSpec, seed: int) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    if spec.dtype is DataType.INT32:
        draw = lambda: generator.integers(-(2**31), 2**31, spec.element_count, np.int32)  # noqa: E731
    else:
        draw = lambda: generator.standard_normal(spec.element_count).astype(np.float32)  # noqa: E731
    return [draw() for _ in range(spec.rank_count)]


@given(
    ranks=st.integers(1, 9),
    elements=st.integers(0, 700),
    rates=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    operation=st.sampled_from(list(Operation)),
    algorithm=st.sampled_from(["ring", "in-network"]),
    piece_bytes=st.sampled_from([4, 64, 4096]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40, deadline=None)
def test_all_reduce_of_integers_is_exact(ranks, elements, rates, operation, algorithm, piece_bytes, seed):
    if elements > 100 and piece_bytes == 4:
        elements = 100
    spec = spec_of(ranks, elements, operation=operation, rates=rates, piece_bytes=piece_bytes)
    inputs = inputs_of(spec, seed)
    schedules = [generate("allreduce", algorithm, spec, rank) for rank in range(ranks)]
    expected = UFUNC[operation].reduce(inputs, dtype=np.int32)
    for result in Interpreter(schedules, inputs, seed).results("int32"):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_ring_of_floats_is_identical_on_all_ranks_and_close_to_numpy(ranks):
    spec = spec_of(ranks, 1000, DataType.FLOAT32, piece_bytes=256)
    inputs = inputs_of(spec, 7)
    schedules = [generate("allreduce", "ring", spec, rank) for rank in range(ranks)]
    results = Interpreter(schedules, inputs, 3).results("float32")
    assert len({result.tobytes() for result in results}) == 1
    exact = np.sum(inputs, axis=0, dtype=np.float64)
    bound = (ranks - 1) * 2.0**-23 * np.sum(np.abs(inputs), axis=0, dtype=np.float64)
    assert np.all(np.abs(results[0] - exact) <= bound)


@pytest.mark.parametrize(("ranks", "elements"), [(2, 4096), (8, 65536), (5, 12345)])
def test_ring_moves_the_optimal_number_of_bytes(ranks, elements):
    spec = spec_of(ranks, elements, rates=(3, 1))
    for rank in range(ranks):
        writes = [n for n in generate("allreduce", "ring", spec, rank).nodes if isinstance(n, Write)]
        sent = sum(write.source.length_bytes for write in writes)
        optimal = 2 * (ranks - 1) / ranks * elements * 4
        assert abs(sent - optimal) <= 2 * ranks * 4 * 2


def test_every_write_is_waited_for_exactly_once():
    spec = spec_of(6, 10_000, piece_bytes=1024, run_tag=5)
    schedules = [generate("allreduce", "ring", spec, rank) for rank in range(6)]
    sent = sorted(
        (s.rank, n.channel.plane, n.channel.peer, n.immediate)
        for s in schedules
        for n in s.nodes
        if isinstance(n, Write)
    )
    awaited = sorted(
        (n.channel.peer, n.channel.plane, s.rank, n.immediate)
        for s in schedules
        for n in s.nodes
        if isinstance(n, WaitReceive)
    )
    assert sent == awaited
    assert {immediate >> 20 for *_, immediate in sent} == {5}
    assert len(peers_of(schedules)) == 6 * 2 * 2


def test_chunks_are_cut_into_pieces_that_pipeline():
    spec = spec_of(4, 4 * 8192, rates=(1,), piece_bytes=4096)
    schedule = generate("allreduce", "ring", spec, 0)
    first_step = [n for n, after in zip(schedule.nodes, schedule.after, strict=True) if not after]
    assert sum(isinstance(node, Write) for node in first_step) == 8


def test_in_network_stripes_follow_the_rates_of_the_planes():
    spec = spec_of(8, 64 * 100, rates=(30, 10))
    spans = [node.span for node in generate("allreduce", "in-network", spec, 3).nodes]
    assert [(span.offset_bytes, span.length_bytes) for span in spans] == [(0, 19200), (19200, 6400)]


@given(st.integers(0, 5000), st.lists(st.integers(1, 10**12), min_size=1, max_size=9))
def test_stripes_cover_everything_once_in_whole_blocks(elements, rates):
    ranges = stripe(elements, rates)
    assert [i for r in ranges for i in (r.start, r.stop)][1:-1:2] == [r.start for r in ranges[1:]]
    assert (ranges[0].start, ranges[-1].stop) == (0, elements)
    assert all(r.start % 64 == 0 or r.start == elements for r in ranges)
    assert all(
        abs(len(r) - elements * rate / sum(rates)) < 128 for r, rate in zip(ranges, rates, strict=True)
    )


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 50))
def test_even_splits_differ_by_at_most_one(start, length, parts):
    pieces = split_evenly(range(start, start + length), parts)
    assert [i for piece in pieces for i in piece] == list(range(start, start + length))
    assert max(map(len, pieces)) - min(map(len, pieces)) <= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank_count": 0}, "0 ranks"),
        ({"element_count": -1}, "-1 elements"),
        ({"piece_bytes": 3}, "pieces of 3 bytes"),
        ({"plane_rates_bps": ()}, "plane rates"),
        ({"plane_rates_bps": (1, 0)}, "plane rates"),
        ({"run_tag": 4096}, "run tag 4096"),
    ],
)
def test_senseless_collectives_are_refused(change, message):
    fields = {
        "rank_count": 4,
        "element_count": 1000,
        "dtype": DataType.INT32,
        "operation": Operation.SUM,
        "plane_rates_bps": (1, 1),
    }
    with pytest.raises(ValueError, match=message):
        generate("allreduce", "ring", CollectiveSpec(**(fields | change)), 0)


def test_unknown_algorithms_and_ranks_are_refused_by_name():
    with pytest.raises(ValueError, match=r"unknown collective 'allreduce' by 'rings'.*allreduce by ring"):
        generate("allreduce", "rings", spec_of(2, 1), 0)
    with pytest.raises(ValueError, match="rank 2"):
        generate("allreduce", "ring", spec_of(2, 1), 2)
    with pytest.raises(ValueError, match="1048576"):
        run_immediate(0, 1 << 20)


def test_incast_and_permutation_say_who_sends_to_whom():
    assert incast(0, range(3), 100, plane=1) == [Flow(1, 0, 100, 1), Flow(2, 0, 100, 1)]
    flows = permutation(16, 4096, seed=3)
    assert (
        sorted(flow.source for flow in flows) == sorted(flow.destination for flow in flows) == list(range(16))
    )
    assert all(flow.source != flow.destination for flow in flows)
    assert flows == permutation(16, 4096, seed=3) != permutation(16, 4096, seed=4)


def test_flows_run_and_every_byte_is_written():
    flows = [*permutation(5, 300, seed=1), *incast(2, range(5), 77, start_ps=10)]
    schedules = [flow_schedule(flows, rank, run_tag=9) for rank in range(5)]
    interpreter = Interpreter(schedules, [np.zeros(0, np.int32)] * 5)
    interpreter.results("int32")
    assert sum(interpreter.written_bytes.values()) == 5 * 300 + 4 * 77


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (Flow(1, 1, 10), "flow 0 goes from rank 1 to itself"),
        (Flow(0, 1, 0), "flow 0 of 0 bytes"),
        (Flow(0, 1, 2**31 + 1), "flow 0 of 2147483649 bytes"),
        (Flow(0, 1, 1, start_ps=-1), "flow 0 starts at -1 ps"),
    ],
)
def test_senseless_flows_are_refused(flow, message):
    with pytest.raises(ValueError, match=message):
        flow_schedule([flow], 0)
