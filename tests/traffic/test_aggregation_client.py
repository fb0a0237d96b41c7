"""The aggregation client against a model of the switches, under every fault that the protocol must survive."""

import itertools
import re

import numpy as np
import pytest
from aggregation_network import EPOCH, HOP_PS, JOB_ID, Q_KEY, AggregationNetwork, Faults
from hypothesis import given, settings
from hypothesis import strategies as st
from slot_machine import Output

from weft.engine import _core
from weft.paths import ROOT
from weft.run.collectives import random_elements
from weft.scenario.options import MAX_SLOTS
from weft.traffic.data_types import FLOAT_FORMATS, DataType, elements_of, numbers

FLOAT_MAX = float(np.finfo(np.float32).max)
HARSH = Faults(loss=0.05, duplicate=0.05, late=0.05)


def integers(workers, elements, seed=0):
    generator = np.random.default_rng(seed)
    return [generator.integers(-(2**31), 2**31, elements, np.int32) for _ in range(workers)]


def floats(workers, elements, seed=0, spread=20):
    generator = np.random.default_rng(seed)
    scale = np.exp2(generator.integers(-spread, spread, elements))
    return [(generator.standard_normal(elements) * scale).astype(np.float32) for _ in range(workers)]


def float_bound(inputs: list[np.ndarray], lane_bits: int = 32) -> np.ndarray:
    """The bound per element of docs/spec/aggregation.md, by the exponent that the ranks agree on per block of 64."""
    count, bits = len(inputs), (len(inputs) - 1).bit_length()
    largest = np.max(np.abs(inputs), axis=0)
    blocks = [largest[start : start + 64] for start in range(0, largest.size, 64)]
    exponents = np.concatenate([np.full(len(b), np.frexp(b.max())[1]) for b in blocks])
    return count * 0.5 * np.exp2(exponents.astype(float) - (lane_bits - 1) + bits)


@given(
    leaf_sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    slot_count=st.integers(1, 9),
    elements=st.integers(0, 2000),
    operation=st.sampled_from(["sum", "max", "min"]),
    faults=st.builds(Faults, loss=st.floats(0, 0.15), duplicate=st.floats(0, 0.3), late=st.floats(0, 0.3)),
    chunks=st.integers(1, 3),
    ip_version=st.sampled_from([4, 6]),
    early=st.sampled_from([0, 1, 4]),
    lane_count=st.sampled_from([64, 128, 256, 1024]),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=30, deadline=None)
def test_integers_are_exact_whatever_the_network_does(
    leaf_sizes, slot_count, elements, operation, faults, chunks, ip_version, early, lane_count, seed
):
    options = {"early_retransmit_distance": early, "lane_count": lane_count}
    network = AggregationNetwork(leaf_sizes, slot_count, faults, seed, ip_version, **options)
    inputs = integers(sum(leaf_sizes), elements, seed)
    combine = {"sum": np.add, "max": np.maximum, "min": np.minimum}[operation]
    expected = combine.reduce(inputs, dtype=np.int32)
    for result in network.all_reduce(inputs, "int32", operation, chunks):
        np.testing.assert_array_equal(result, expected)
    assert network.total("messages_in_flight") == network.total("outstanding_requests") == 0


def parts(ranks, elements):
    bounds = [elements * rank // ranks for rank in range(ranks + 1)]
    return [slice(*each) for each in itertools.pairwise(bounds)]


def check_collective(kind, inputs, results, reduced, root):
    """Check what each rank must hold: results where it gets some, else what it began with."""
    own = parts(len(inputs), inputs[0].size)
    for rank, result in enumerate(results):
        expected = inputs[rank].copy()
        if kind == "all_reduce" or (kind == "reduce" and rank == root):
            expected = reduced
        elif kind == "broadcast":
            expected = inputs[root]
        elif kind == "reduce_scatter":
            expected[own[rank]] = reduced[own[rank]]
        elif kind == "all_gather":
            expected = np.concatenate([each[part] for each, part in zip(inputs, own, strict=True)])
        np.testing.assert_array_equal(result.view(np.int32), expected.view(np.int32))


@given(
    kind=st.sampled_from(["reduce", "broadcast", "reduce_scatter", "all_gather", "barrier"]),
    leaf_sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    slot_count=st.integers(1, 9),
    elements=st.integers(0, 1200),
    operation=st.sampled_from(["sum", "max", "min"]),
    faults=st.builds(Faults, loss=st.floats(0, 0.15), duplicate=st.floats(0, 0.3), late=st.floats(0, 0.3)),
    root=st.integers(0, 8),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=40, deadline=None)
def test_every_collective_is_exact_whatever_the_network_does(
    kind, leaf_sizes, slot_count, elements, operation, faults, root, seed
):
    ranks = sum(leaf_sizes)
    root %= ranks
    network = AggregationNetwork(leaf_sizes, slot_count, faults, seed)
    inputs = integers(ranks, elements, seed)
    reduced = {"sum": np.add, "max": np.maximum, "min": np.minimum}[operation].reduce(inputs, dtype=np.int32)
    check_collective(kind, inputs, network.collective(kind, inputs, "int32", operation, root=root), reduced, root)
    # The slots are in step: the next one, of another kind, uses them from where this one has stopped.
    check_collective("all_reduce", inputs, network.all_reduce(inputs, "int32", operation), reduced, root)
    assert network.total("messages_in_flight") == network.total("outstanding_requests") == 0


@pytest.mark.parametrize("kind", ["broadcast", "all_gather"])
def test_what_is_moved_is_bits_of_any_kind(kind):
    """NaN with payloads, infinities, subnormals and negative zeros come as they were sent."""
    generator = np.random.default_rng(1)
    inputs = [generator.integers(0, 2**32, 500, np.uint32).view(np.float32) for _ in range(4)]
    inputs[2][:4] = np.nan, -np.inf, 2.0**-149, -0.0
    results = AggregationNetwork([2, 2], 8, HARSH, seed=2).collective(kind, inputs, "float32", root=2)
    check_collective(kind, inputs, results, None, 2)


def test_floats_of_a_reduce_scatter_are_those_of_an_all_reduce():
    inputs = floats(4, 64 * 70 + 3)
    scattered = AggregationNetwork([2, 2], 16, HARSH, seed=3).collective("reduce_scatter", inputs, "float32")
    exact = np.sum(inputs, axis=0, dtype=np.float64)
    for rank, own in enumerate(parts(4, inputs[0].size)):
        bound = float_bound([each[own] for each in inputs]) + np.abs(exact[own]) * 2.0**-24
        assert np.all(np.abs(scattered[rank][own] - exact[own]) <= bound)


UFUNCS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("dtype", list(DataType))
@pytest.mark.parametrize("operation", UFUNCS)
def test_every_type_is_right_and_the_same_on_all_ranks(dtype, operation):
    inputs = [random_elements(np.random.default_rng(rank), dtype, 64 * 64 + 7) for rank in range(4)]
    results = AggregationNetwork([2, 2], 16, HARSH, seed=3).all_reduce(inputs, dtype.value, operation)
    assert len({result.tobytes() for result in results}) == 1
    values, got = [numbers(each, dtype) for each in inputs], numbers(results[0], dtype)
    if not dtype.is_float or operation != "sum":
        np.testing.assert_array_equal(got, UFUNCS[operation].reduce(values, dtype=values[0].dtype))
        return
    exact = np.sum(values, axis=0, dtype=np.float64)
    rounding = np.abs(exact) * FLOAT_FORMATS[dtype].epsilon / 2
    bound = float_bound(values, 8 * dtype.element_bytes)  # four ranks leave 16-bit floats room in 16 bits
    assert np.all(np.abs(got - exact) <= bound + rounding * 1.001)


@pytest.mark.parametrize("dtype", list(DataType))
def test_blocks_whose_sums_leave_the_type_are_counted(dtype):
    largest = FLOAT_FORMATS[dtype].infinite_from * 0.75 if dtype.is_float else 2 ** (8 * dtype.element_bytes - 1) - 1
    data = elements_of(np.ones(64 * 4 * 5), dtype)
    data[[1, 300]] = elements_of(np.full(2, largest), dtype)
    network = AggregationNetwork([2, 1], 8)
    network.all_reduce([data, data, data], dtype.value)
    # Two blocks on each of three workers.
    assert network.total("overflowed_messages") == 6
    network.all_reduce([data, data, data], dtype.value, "max")
    assert network.total("overflowed_messages") == 6


@pytest.mark.parametrize("faults", [Faults(), HARSH], ids=["clean", "harsh"])
@pytest.mark.parametrize("elements", [1, 64, 65, 64 * 64, 64 * 64 + 1, 3 * 64 * 64 - 5])
def test_floats_keep_the_bound_and_agree_bit_for_bit(elements, faults):
    network = AggregationNetwork([2, 2], 16, faults, seed=elements)
    inputs = floats(4, elements)
    results = network.all_reduce(inputs, "float32")
    assert len({result.tobytes() for result in results}) == 1
    exact = np.sum(inputs, axis=0, dtype=np.float64)
    error = np.abs(results[0] - exact)
    assert np.all(error <= float_bound(inputs) + np.abs(exact) * 2.0**-24)


@pytest.mark.parametrize("elements", [1, 1024, 64 * 1024 + 1, 2 * 64 * 256 - 5])
@pytest.mark.parametrize("dtype", [DataType.FLOAT32, DataType.FLOAT16])
def test_sums_of_floats_are_the_same_bits_at_any_width(elements, dtype):
    inputs = [elements_of(each, dtype) for each in floats(4, elements, spread=4)]
    sums = set()
    for lane_count in (64, 128, 256, 1024):
        network = AggregationNetwork([2, 2], 64, lane_count=lane_count)
        sums |= {result.tobytes() for result in network.all_reduce(inputs, dtype.value)}
        data = -(-elements * dtype.element_bytes // (4 * lane_count))
        assert network.total("contributions_sent") == 4 * (data + -(-data // 64))
    assert len(sums) == 1


@pytest.mark.parametrize("dtype", [DataType.FLOAT32, DataType.BFLOAT16])
@pytest.mark.parametrize("lane_count", [256, 1024])
def test_exponents_run_ahead_by_what_a_switch_holds(dtype, lane_count):
    """4096 · 64 lanes of messages: more data than that has exponents among its messages."""
    inputs = [elements_of(each, dtype) for each in floats(2, 600_000, spread=4)]
    network = AggregationNetwork([2], 1024, lane_count=lane_count)
    results = network.all_reduce(inputs, dtype.value)
    values = [numbers(each, dtype) for each in inputs]
    exact = np.sum(values, axis=0, dtype=np.float64)
    bound = float_bound(values, 8 * dtype.element_bytes) + np.abs(exact) * FLOAT_FORMATS[dtype].epsilon / 2
    assert np.all(np.abs(numbers(results[0], dtype) - exact) <= bound * 1.001)
    assert results[0].tobytes() == results[1].tobytes()
    data = -(-600_000 * dtype.element_bytes // (4 * lane_count))
    assert data > 4096 * 64 // lane_count
    assert network.total("contributions_sent") == 2 * (data + -(-data // 64))


@pytest.mark.parametrize("lane_count", [0, 63, 65, 512])
def test_a_number_of_lanes_that_no_packet_has_is_refused(lane_count):
    with pytest.raises(ValueError, match=f"lane_count {lane_count} .valid: 64, 128, 256 or 1024"):
        AggregationNetwork([1], lane_count=lane_count)


@pytest.mark.parametrize("operation", ["max", "min"])
def test_maxima_and_minima_of_floats_are_exact(operation):
    inputs = floats(3, 700)
    inputs[0][5], inputs[1][6], inputs[2][7] = np.inf, -np.inf, 2.0**-149
    ufunc = np.maximum if operation == "max" else np.minimum
    for result in AggregationNetwork([2, 1], 8, HARSH, seed=1).all_reduce(inputs, "float32", operation):
        np.testing.assert_array_equal(result, ufunc.reduce(inputs))


def test_zeros_denormals_and_extremes_survive():
    inputs = [np.zeros(640, np.float32) for _ in range(2)]
    inputs[0][64:128], inputs[1][64:128] = 2.0**-149, 2.0**-148
    inputs[0][128:192], inputs[1][128:192] = FLOAT_MAX, -FLOAT_MAX
    inputs[0][192:256], inputs[1][192:256] = FLOAT_MAX, FLOAT_MAX
    results = AggregationNetwork([2], 4).all_reduce(inputs, "float32")
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(results[0], inputs[0] + inputs[1])
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize(
    ("dtype_operation", "value", "message"),
    [
        ("sum", np.nan, "element 70 is nan"),
        ("sum", np.inf, "element 70 is inf"),
        ("max", np.nan, "element 70 is nan"),
    ],
)
def test_what_has_no_place_in_a_reduction_fails_the_run_by_name(dtype_operation, value, message):
    network = AggregationNetwork([1], 4)
    data = np.ones(100, np.float32)
    data[70] = value
    _, runs = network.start([data], "float32", dtype_operation)
    (status,) = network.finish(runs)
    assert status["state"] == "failed"
    assert message in status["error"]
    assert network.total("contributions_sent") == 0


def test_the_stream_goes_on_over_many_reductions_of_an_epoch():
    network = AggregationNetwork([2, 1], 4, HARSH, seed=3)
    for step in range(6):
        inputs = integers(3, 300 + 64 * step, seed=step)
        for result in network.all_reduce(inputs, "int32"):
            np.testing.assert_array_equal(result, np.add.reduce(inputs, dtype=np.int32))


def test_without_faults_nothing_is_sent_twice_and_the_window_is_full():
    network = AggregationNetwork([4], 32)
    inputs = integers(4, 64 * 200)
    network.all_reduce(inputs, "int32")
    assert network.total("contributions_sent") == 4 * 200
    assert network.total("retransmitted_packets") == network.total("timeouts") == 0
    assert network.total("results_accepted") == 4 * 200
    assert network.leaves[0].counters == {"completed": 200}


def test_losses_are_mended_without_waiting_for_the_timeout():
    faults = Faults(loss=0.02)
    patient = AggregationNetwork([4], 32, faults, seed=5, early_retransmit_distance=0)
    eager = AggregationNetwork([4], 32, faults, seed=5, early_retransmit_distance=8)
    inputs = integers(4, 64 * 400)
    times = []
    for network in (patient, eager):
        network.all_reduce(inputs, "int32")
        times.append(network.engine.now_ps)
    assert patient.total("early_retransmissions") == 0 < eager.total("early_retransmissions")
    assert times[1] < 0.7 * times[0]


def forged(network, **changes):
    """A result for slot 0 of round 0, of lanes no honest switch sends, changed in one respect."""
    output = Output("children", changes.pop("slot", 0), changes.pop("round", 0), 0, np.full(64, 666, np.int32))
    return network.result_frame(0, output, changes.pop("lanes", output.lanes), **changes)


@pytest.mark.parametrize(
    ("changes", "counter"),
    [
        ({"job_id": JOB_ID + 1}, "foreign_results"),
        ({"q_key": Q_KEY + 1}, "foreign_results"),
        ({"epoch": EPOCH + 1}, "wrong_epoch_results"),
        ({"slot": 4}, "unexpected_results"),
        ({"round": 9}, "unexpected_results"),
        ({"operation": 1}, "unexpected_results"),
        ({"destination": 0}, "unexpected_results"),
        ({"data_type": 1}, "unexpected_results"),
        ({"flags": 2}, "unexpected_results"),
        ({"lanes": None}, "unexpected_results"),
        ({"lanes": np.full(128, 666, np.int32)}, "unexpected_results"),
        ({"kind": 0}, "unexpected_packets"),
    ],
)
def test_forged_results_are_counted_and_change_nothing(changes, counter):
    network = AggregationNetwork([2], 4)
    inputs = integers(2, 64 * 4)
    arrays, runs = network.start(inputs, "int32")
    network.engine.run_for(25 * HOP_PS)  # all slots are in flight, nothing has been answered
    network.engine.inject(network.workers[0][0], 0, forged(network, **changes))
    network.finish(runs)
    assert network.workers[0][3].stats()[counter] == 1
    for array in arrays:
        np.testing.assert_array_equal(array, np.add.reduce(inputs, dtype=np.int32))


def test_a_result_of_a_finished_round_is_ignored_and_counted():
    network = AggregationNetwork([2], 4)
    inputs = integers(2, 64 * 4)
    arrays = network.all_reduce(inputs, "int32")
    network.engine.inject(network.workers[0][0], 0, forged(network))
    network.engine.run_for(HOP_PS)
    assert network.workers[0][3].stats()["stale_results"] == 1
    np.testing.assert_array_equal(arrays[0], np.add.reduce(inputs, dtype=np.int32))


def test_an_impossible_exponent_is_refused():
    network = AggregationNetwork([2], 4)
    inputs = floats(2, 64)
    arrays, runs = network.start(inputs, "float32")
    network.engine.run_for(25 * HOP_PS)
    network.engine.inject(network.workers[0][0], 0, forged(network, operation=1))
    network.finish(runs)
    assert network.workers[0][3].stats()["invalid_results"] == 1
    np.testing.assert_array_equal(arrays[0], arrays[1])


def test_a_silent_network_fails_the_run_after_the_retries():
    network = AggregationNetwork([1, 1], 4, Faults(loss=1.0), retry_limit=3)
    _, runs = network.start(integers(2, 100), "int32")
    for status in network.finish(runs):
        assert status["state"] == "failed"
        assert "retry_exceeded (fault: network)" in status["error"]
    assert network.workers[0][3].stats()["error"] == "retry_exceeded"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slot_count": 0}, "slot_count 0"),
        ({"retransmission_timeout_ps": 0}, "retransmission_timeout_ps 0"),
        ({"rank_count": 0}, "rank_count 0"),
        ({"timeout_backoff_limit": 21}, "timeout_backoff_limit 21"),
        ({"destination_ip": "fd00::1"}, "different IP versions"),
    ],
)
def test_senseless_parameters_are_refused_by_name(options, message):
    network = AggregationNetwork([1], 4)
    nic, _, executor, _ = network.workers[0]
    parameters = {
        "job_id": 1,
        "epoch": 1,
        "q_key": 1,
        "rank": 0,
        "rank_count": 2,
        "slot_count": 4,
        "destination_mac": "02:01:00:00:00:00",
        "destination_ip": "10.0.0.254",
        "group_ip": "239.87.0.1",
        "retransmission_timeout_ps": 1000,
    }
    with pytest.raises(ValueError, match=message):
        _core.AggregationClient(nic, 0, executor, **(parameters | options))


def test_the_slots_of_a_switch_are_the_program_s() -> None:
    """Exponents lead by as many packets as p4/include/aggregation.p4 has slots for; scenarios may name as many."""
    program = (ROOT / "p4" / "include" / "aggregation.p4").read_text(encoding="utf-8")
    engine = (ROOT / "engine" / "hosts" / "aggregation_request.hpp").read_text(encoding="utf-8")
    (slots, lanes) = re.search(r"#define SLOTS +\((\d+) \* (\d+) / AGGREGATION_LANES\)", program).groups()  # type: ignore[union-attr]
    assert f"kSwitchLanes = {slots} * {lanes};" in engine
    assert int(slots) == MAX_SLOTS
