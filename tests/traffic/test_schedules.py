"""Schedules, interpreted in random order, against NumPy and their bounds."""

from dataclasses import replace

import numpy as np
import pytest
from collective_results import assert_right, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_interpreter import Interpreter

from tests.refusals import refused
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.costs import Links, Wire
from weft.traffic.data_types import DataType
from weft.traffic.patterns import Flow, flow_schedule, incast, permutation
from weft.traffic.schedule_nodes import DATA, SCALE_UP, RankSchedule, run_immediate
from weft.traffic.schedules import CollectiveSpec, peers_of
from weft.traffic.schedules.tree import children_of, parent_of
from weft.traffic.striping import split_evenly, stripe

IDLE = Links(Wire(1000.0, 2.0), Wire(100.0, 1.0), Wire(1500.0, 2.0))
"""Links of which only the latencies and times a byte matter."""


def spec_of(ranks, elements, dtype=DataType.INT32, operation=Operation.SUM, rates=(1, 1), **options):
    return CollectiveSpec(ranks, elements, dtype, operation, tuple(rates), **options)


def interpreted(collective, algorithm, spec, inputs, seed=0):
    """All ranks' schedules of a collective, about to run on these inputs."""
    schedules = [COLLECTIVE_KINDS[collective].schedule(algorithm, spec, rank) for rank in range(spec.rank_count)]
    return Interpreter(schedules, inputs, seed, spec.dtype, spec.operation, teams_of(collective, algorithm, spec))


def teams_of(collective, algorithm, spec):
    """Which ranks the network reduces together, by a number."""
    by_rail = COLLECTIVE_KINDS[collective].algorithm(algorithm).by_rail
    return (lambda rank: spec.position(rank) % spec.ranks_per_host) if by_rail else (lambda _: 0)


@st.composite
def drawn_collectives(draw):
    """Any collective by any algorithm, on hosts of one rank or several, with a size and ranks that it takes."""
    collective = draw(st.sampled_from(sorted(COLLECTIVE_KINDS)))
    kind = COLLECTIVE_KINDS[collective]
    # Other names of an algorithm make the same schedules; test_nvls_schedules.py draws those by hosts' switches.
    names = [each.name for each in kind.algorithms if not each.general_name and not each.name.startswith("nvls")]
    algorithm = draw(st.sampled_from(sorted(names)))
    per_host, stride, blocks = draw(
        st.sampled_from([(1, 1, n) for n in range(1, 10)] + [(2, 1, 3), (4, 1, 2), (2, 2, 2), (3, 2, 1), (2, 4, 1)])
    )
    if algorithm.startswith("hierarchical") and per_host == 1:
        per_host, stride = 3, 2
    ranks = per_host * stride * blocks
    if algorithm == "halving-doubling" and collective != "allreduce":
        per_host, stride, ranks = 2, 2, draw(st.sampled_from([4, 8]))
    elements = draw(st.integers(0, 700))
    dtype, operation = draw(
        st.sampled_from(
            [
                (dtype, operation)
                for dtype in DataType
                for operation in Operation
                if not kind.objection_to_operation(operation, dtype)
                and (operation is not Operation.AVERAGE or kind.algorithm(algorithm).has_lanes)
            ]
        )
    )
    if collective == "alltoall":
        elements -= elements % ranks
    if collective == "moe_dispatch":
        elements *= COLLECTIVE_KINDS[collective].choice.data_per_input
    return (
        collective,
        algorithm,
        spec_of(
            ranks,
            elements,
            dtype,
            operation,
            draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)),
            piece_bytes=draw(st.sampled_from([64, 256, 4096])),
            run_tag=draw(st.integers(0, 4095)),
            root=draw(st.integers(0, ranks - 1)),
            ranks_per_host=per_host,
            rank_stride=stride,
            trees=draw(st.integers(1, 3)),
        ),
    )


def steps_of(schedule):
    return len(schedule.nodes) if isinstance(schedule, RankSchedule) else schedule.step_count


@given(drawn_collectives(), st.integers(0, 1000))
@settings(max_examples=150, deadline=None)
def test_collectives_leave_what_numpy_computes(drawn, seed):
    collective, algorithm, spec = drawn
    inputs = inputs_of(spec, seed)
    interpreter = interpreted(collective, algorithm, spec, inputs, seed)
    assert_right(collective, spec, inputs, interpreter.results(spec.dtype.storage))
    for stepper, schedule in zip(interpreter.steppers, interpreter.schedules, strict=True):
        assert len(stepper.done) == steps_of(schedule)
    assert all(sent.immediate >> 20 == spec.run_tag for sent in interpreter.sent)
    connected = set(peers_of(interpreter.schedules))
    assert all((channel.peer, replace(channel, peer=rank)) in connected for rank, channel in connected)


@given(drawn_collectives(), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_lengths_transfer_what_data_does(drawn, seed):
    collective, algorithm, spec = drawn
    whole = interpreted(collective, algorithm, spec, inputs_of(spec, seed), seed)
    whole.results(spec.dtype.storage)
    schedules = [schedule.of_lengths() for schedule in whole.schedules]
    data = [np.zeros(spec.element_count if DATA in each.buffer_bytes else 0, spec.dtype.storage) for each in schedules]
    teams = teams_of(collective, algorithm, spec)
    lengths = Interpreter(schedules, data, seed, spec.dtype, spec.operation, teams)
    lengths.results(spec.dtype.storage)
    transfers = [
        sorted((each.rank, each.channel.plane, each.channel.peer, each.immediate, each.length_bytes) for each in sent)
        for sent in (whole.sent, lengths.sent)
    ]
    assert transfers[0] == transfers[1]
    assert all(len(stepper.done) == steps_of(each) for stepper, each in zip(lengths.steppers, schedules, strict=True))


@pytest.mark.parametrize("ranks", [3, 8])
@pytest.mark.parametrize("algorithm", ["tree", "halving-doubling", "recursive-doubling"])
def test_all_ranks_hold_the_same_floats(algorithm, ranks):
    spec = spec_of(ranks, 1000, DataType.FLOAT32, piece_bytes=256)
    results = interpreted("allreduce", algorithm, spec, inputs_of(spec, 7), 3).results("float32")
    assert len({result.tobytes() for result in results}) == 1


def writes_of(collective, algorithm, spec):
    """What all ranks send."""
    interpreter = interpreted(collective, algorithm, spec, inputs_of(spec, 0))
    interpreter.results(spec.dtype.storage)
    return interpreter.sent


def sent_bytes(collective, algorithm, spec):
    """Bytes that each rank sends over its NICs, and over scale-up links."""
    sent = dict.fromkeys(((rank, inside) for rank in range(spec.rank_count) for inside in (False, True)), 0)
    for write in writes_of(collective, algorithm, spec):
        sent[write.rank, write.channel.label == SCALE_UP] += write.length_bytes
    return [(sent[rank, False], sent[rank, True]) for rank in range(spec.rank_count)]


@pytest.mark.parametrize(
    ("collective", "algorithm", "times_the_data"),
    [
        ("allreduce", "halving-doubling", 2 * 7 / 8),
        ("reducescatter", "ring", 7 / 8),
        ("reducescatter", "halving-doubling", 7 / 8),
        ("allgather", "ring", 7 / 8),
        ("allgather", "halving-doubling", 7 / 8),
        ("reducescatter", "pat", 7 / 8),
        ("allgather", "pat", 7 / 8),
        ("alltoall", "direct", 7 / 8),
        ("alltoall", "pairwise", 7 / 8),
    ],
)
def test_every_rank_sends_the_least_there_is(collective, algorithm, times_the_data):
    spec = spec_of(8, 8 * 1024, rates=(1,))
    assert sent_bytes(collective, algorithm, spec) == [(times_the_data * 4 * 8 * 1024, 0)] * 8


@pytest.mark.parametrize(("ranks", "steps"), [(2, 1), (4, 2), (5, 4), (7, 4), (16, 4)])
def test_recursive_doubling_sends_all_data_once_a_step(ranks, steps):
    """log2(n) steps among a power of two; the ranks beyond it send once, and what they get a neighbour sends."""
    spec = spec_of(ranks, 4096, rates=(1,))
    sent = [bytes_sent for bytes_sent, _ in sent_bytes("allreduce", "recursive-doubling", spec)]
    members = 1 << ranks.bit_length() - 1
    exchanges = members.bit_length() - 1
    assert sum(sent) == 4 * 4096 * (members * exchanges + 2 * (ranks - members))
    assert COLLECTIVE_KINDS["allreduce"].algorithm("recursive-doubling").cost(spec, IDLE).steps == steps


PAT_CHUNKS = {
    8: {4: 1, 2: 2, 1: 4},
    7: {4: 1, 2: 2, 1: 3},
    12: {8: 1, 4: 1, 2: 3, 1: 6},
}
"""Chunks that go to a peer at each distance: odd multiples of the distance below the number of ranks."""


@pytest.mark.parametrize("ranks", PAT_CHUNKS)
@pytest.mark.parametrize(("collective", "ahead"), [("allgather", -1), ("reducescatter", 1)])
def test_pat_sends_most_to_its_neighbours(collective, ahead, ranks):
    """At most two messages a step: one chunk to the farthest peer, half of them to the nearest (arXiv 2506.20252)."""
    spec = spec_of(ranks, 64 * ranks, rates=(1,))
    sent = writes_of(collective, "pat", spec)
    for rank in range(ranks):
        found = dict.fromkeys(PAT_CHUNKS[ranks], 0)
        own = [each for each in sent if each.rank == rank]
        for each in own:
            found[(each.channel.peer - rank) * ahead % ranks] += each.length_bytes // (4 * 64)
        assert found == PAT_CHUNKS[ranks]
        assert len(own) <= 2 * len(found)
    cost = COLLECTIVE_KINDS[collective].algorithm("pat").cost(spec, IDLE)
    assert (cost.steps, cost.transfer_ps) == ((ranks - 1).bit_length(), (ranks - 1) * 4 * 64 * 2.0)


@pytest.mark.parametrize("root", [0, 5])
@pytest.mark.parametrize("ranks", [6, 8, 13])
@pytest.mark.parametrize("collective", ["gather", "scatter"])
def test_a_binomial_tree_carries_every_chunk_once_a_level(collective, ranks, root):
    """Place p's chunk crosses as many links as p has bits; the root has log2(n) messages, not n-1."""
    spec = spec_of(ranks, 64 * ranks, rates=(1,), root=root)
    sent = writes_of(collective, "binomial", spec)
    assert len(sent) == ranks - 1
    assert sum(each.length_bytes for each in sent) == 4 * 64 * sum(place.bit_count() for place in range(ranks))
    at_root = [each for each in sent if root in (each.rank, each.channel.peer)]
    assert len(at_root) == (ranks - 1).bit_length()
    assert sum(each.length_bytes for each in at_root) == 4 * 64 * (ranks - 1)
    assert sum(each.length_bytes for each in writes_of(collective, "direct", spec)) == 4 * 64 * (ranks - 1)


@pytest.mark.parametrize("ranks", [2, 3, 7, 16])
def test_no_rank_of_two_trees_sends_more_than_twice_the_data(ranks):
    spec = spec_of(ranks, 4096, rates=(1,))
    sent = [bytes_sent for bytes_sent, _ in sent_bytes("allreduce", "tree", spec)]
    assert max(sent) <= 2 * 4 * 4096
    assert sum(sent) == 2 * (ranks - 1) * 4 * 4096


@pytest.mark.parametrize("count", range(1, 40))
def test_a_tree_joins_all_roles_and_its_leaves_are_odd(count):
    found = {0}
    for role in range(count):
        children = children_of(role, count)
        assert len(children) <= 2
        assert all(parent_of(child, count) == role for child in children)
        assert not (children and role % 2)
        found |= set(children)
    assert found == set(range(count))


def test_a_hierarchical_all_reduce_loads_every_rail_alike():
    """Hosts of 4 ranks, 4 hosts: a NIC carries 2(h-1)/h of a quarter, a scale-up link 2(r-1)/r of all."""
    spec = spec_of(16, 16 * 1024, rates=(1,), ranks_per_host=4, rank_stride=4)
    size_bytes = 4 * 16 * 1024
    assert sent_bytes("allreduce", "hierarchical", spec) == [(2 * 3 / 4 * size_bytes / 4, 2 * 3 / 4 * size_bytes)] * 16


def test_rings_leave_a_host_by_the_rail_on_which_they_enter_the_next():
    spec = spec_of(16, 16 * 1024, rates=(1,), ranks_per_host=4, rank_stride=4)
    between = [
        (rank, channel.peer)
        for rank in range(16)
        for channel in COLLECTIVE_KINDS["allreduce"].schedule("ring", spec, rank).channels()
        if channel.label != SCALE_UP
    ]
    rail = lambda rank: spec.position(rank) % 4  # noqa: E731
    assert {rail(rank) for rank, _ in between} == set(range(4))
    assert all(rail(rank) == rail(peer) for rank, peer in between)


@pytest.mark.parametrize(("per_host", "stride"), [(1, 1), (4, 1), (2, 3), (3, 4)])
def test_positions_count_ranks_host_by_host(per_host, stride):
    ranks = 2 * per_host * stride
    spec = spec_of(ranks, 1, ranks_per_host=per_host, rank_stride=stride)
    assert [spec.rank_at(spec.position(rank)) for rank in range(ranks)] == list(range(ranks))
    first_host = [spec.rank_at(position) for position in range(per_host)]
    assert first_host == [local * stride for local in range(per_host)]
    assert all(spec.share_a_host(first_host[0], rank) for rank in first_host)
    assert not spec.share_a_host(0, ranks - 1)


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_ring_of_floats_is_identical_on_all_ranks_and_close_to_numpy(ranks):
    spec = spec_of(ranks, 1000, DataType.FLOAT32, piece_bytes=256)
    inputs = inputs_of(spec, 7)
    results = interpreted("allreduce", "ring", spec, inputs, 3).results("float32")
    assert len({result.tobytes() for result in results}) == 1
    exact = np.sum(inputs, axis=0, dtype=np.float64)
    bound = (ranks - 1) * 2.0**-23 * np.sum(np.abs(inputs), axis=0, dtype=np.float64)
    assert np.all(np.abs(results[0] - exact) <= bound)


@pytest.mark.parametrize(("ranks", "elements"), [(2, 4096), (8, 65536), (5, 12345)])
def test_ring_moves_the_optimal_number_of_bytes(ranks, elements):
    spec = spec_of(ranks, elements, rates=(3, 1))
    optimal = 2 * (ranks - 1) / ranks * elements * 4
    for sent, _ in sent_bytes("allreduce", "ring", spec):
        assert abs(sent - optimal) <= 2 * ranks * 4 * 2


def test_a_ring_connects_every_rank_with_two_on_each_plane():
    spec = spec_of(6, 10_000, piece_bytes=1024)
    schedules = [COLLECTIVE_KINDS["allreduce"].schedule("ring", spec, rank) for rank in range(6)]
    assert len(peers_of(schedules)) == 6 * 2 * 2


def test_chunks_are_cut_into_pieces_that_pipeline():
    spec = spec_of(4, 4 * 8192, rates=(1,), piece_bytes=4096)
    interpreter = interpreted("allreduce", "ring", spec, inputs_of(spec, 0))
    interpreter.steppers[0].begin()
    interpreter.collect(0)
    assert len(interpreter.sent) == 8


def test_a_schedule_is_no_larger_for_more_chunks():
    """Nothing is made for a chunk before its turn, so this takes no time and no memory."""
    spec = spec_of(1 << 16, 1 << 30, rates=(1,), piece_bytes=1 << 20)
    schedule = COLLECTIVE_KINDS["allreduce"].schedule("ring", spec, 5)
    assert schedule.step_count == 5 * ((1 << 16) - 1)


def test_in_network_stripes_follow_the_rates_of_the_planes():
    spec = spec_of(8, 64 * 100, rates=(30, 10))
    interpreter = interpreted("allreduce", "in-network", spec, inputs_of(spec, 0))
    interpreter.steppers[3].begin()
    start = interpreter.memory[3][DATA].ctypes.data
    spans = [
        (plane, address - start, length) for _, plane, address, length, _ in interpreter.steppers[3].take_aggregations()
    ]
    assert spans == [(0, 0, 19200), (1, 19200, 6400)]


@given(st.integers(0, 5000), st.lists(st.integers(1, 10**12), min_size=1, max_size=9))
def test_stripes_cover_everything_once_in_whole_blocks(elements, rates):
    ranges = stripe(elements, rates)
    assert [i for r in ranges for i in (r.start, r.stop)][1:-1:2] == [r.start for r in ranges[1:]]
    assert (ranges[0].start, ranges[-1].stop) == (0, elements)
    assert all(r.start % 64 == 0 or r.start == elements for r in ranges)
    assert all(abs(len(r) - elements * rate / sum(rates)) < 128 for r, rate in zip(ranges, rates, strict=True))


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
        ({"plane_rates_bps": (0, 0)}, "plane rates"),
        ({"plane_rates_bps": (1, -1)}, "plane rates"),
        ({"run_tag": 4096}, "run tag 4096"),
        ({"root": 4}, "root 4"),
        ({"ranks_per_host": 3}, "4 ranks do not fill hosts of 3"),
        ({"rank_stride": 0}, "0 apart"),
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
        COLLECTIVE_KINDS["allreduce"].schedule("ring", CollectiveSpec(**(fields | change)), 0)


@pytest.mark.parametrize(
    ("collective", "algorithm", "spec", "message"),
    [
        ("allreduce", "hierarchical", spec_of(4, 8), "hosts of 1 rank"),
        ("allgather", "halving-doubling", spec_of(6, 6), "6 ranks.*powers of two"),
        ("alltoall", "direct", spec_of(4, 6), "6 elements for 4 ranks"),
        ("allreduce", "recursive-doubling", spec_of(4, 8, operation=Operation.AVERAGE), "no lanes.*an average"),
    ],
)
def test_what_an_algorithm_cannot_do_is_refused(collective, algorithm, spec, message):
    with pytest.raises(ValueError, match=message):
        COLLECTIVE_KINDS[collective].schedule(algorithm, spec, 0)


def test_unknown_algorithms_and_ranks_are_refused_by_name():
    with refused(
        ValueError,
        valid="ring, tree, halving-doubling, recursive-doubling, hierarchical, in-network, nvls, "
        "hierarchical-in-network, nvls-tree, nvls-in-network",
        problem="allreduce has no algorithm",
    ):
        COLLECTIVE_KINDS["allreduce"].schedule("rings", spec_of(2, 1), 0)
    with refused(ValueError, valid="0 to 1", problem="rank 2"):
        COLLECTIVE_KINDS["allreduce"].schedule("ring", spec_of(2, 1), 2)
    with refused(ValueError, valid="0 to 1048575; use larger pieces", problem="1048576"):
        run_immediate(0, 1 << 20)


def test_incast_and_permutation_say_who_sends_to_whom():
    assert incast(0, range(3), 100, plane=1) == [Flow(1, 0, 100, 1), Flow(2, 0, 100, 1)]
    flows = permutation(16, 4096, seed=3)
    assert sorted(flow.source for flow in flows) == sorted(flow.destination for flow in flows) == list(range(16))
    assert all(flow.source != flow.destination for flow in flows)
    assert flows == permutation(16, 4096, seed=3) != permutation(16, 4096, seed=4)


def test_flows_run_and_every_byte_is_written():
    flows = [*permutation(5, 300, seed=1, queue_pairs=4), *incast(2, range(5), 77, start_ps=10)]
    schedules = [flow_schedule(dict(enumerate(flows)), rank, run_tag=9) for rank in range(5)]
    interpreter = Interpreter(schedules, [np.zeros(0, np.int32)] * 5)
    interpreter.results("int32")
    assert sum(interpreter.written_bytes.values()) == 5 * 300 + 4 * 77


@given(size_bytes=st.integers(1, 5000), queue_pairs=st.integers(1, 256))
def test_queue_pairs_divide_a_flow_evenly_and_without_gaps(size_bytes, queue_pairs):
    flow = Flow(0, 1, size_bytes, queue_pairs=min(queue_pairs, size_bytes))
    spans = [span for span, _ in flow.parts()]
    assert len({label for _, label in flow.parts()}) == flow.queue_pairs
    assert [span.offset_bytes for span in spans] == [
        sum(each.length_bytes for each in spans[:number]) for number in range(len(spans))
    ]
    lengths = [span.length_bytes for span in spans]
    assert sum(lengths) == size_bytes
    assert max(lengths) - min(lengths) <= 1 <= min(lengths)


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (Flow(1, 1, 10), "flow 0 goes from rank 1 to itself"),
        (Flow(0, 1, 0), "flow 0 of 0 bytes"),
        (Flow(0, 1, 2**31 + 1), "flow 0 of 2147483649 bytes"),
        (Flow(0, 1, 1, start_ps=-1), "flow 0 starts at -1 ps"),
        (Flow(0, 1, 3, queue_pairs=4), "flow 0 of 3 bytes over 4 queue pairs .valid: 1 to 3"),
        (Flow(0, 1, 3, queue_pairs=0), "over 0 queue pairs"),
        (Flow(0, 1, 1000, queue_pairs=257), "valid: 1 to 256"),
    ],
)
def test_senseless_flows_are_refused(flow, message):
    with pytest.raises(ValueError, match=message):
        flow_schedule({0: flow}, 0)
