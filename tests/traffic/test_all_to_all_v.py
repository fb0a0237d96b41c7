"""All-to-all-v: sizes of pairs, given and drawn; what ranks send and hold; the parameters that other processes get."""

from collections import Counter

import numpy as np
import pytest
from collective_results import inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_interpreter import Interpreter

from tests.refusals import refused
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import COLLECTIVE_KINDS, collective_named
from weft.traffic.collectives.alltoallv import AllToAllV
from weft.traffic.data_types import DataType
from weft.traffic.pair_sizes import PairSizes, largest_sum
from weft.traffic.schedule_nodes import Write
from weft.traffic.schedules import CollectiveSpec

ITEM = DataType.INT32.element_bytes


def spec_of(ranks, elements, rates=(1, 1), **more):
    return CollectiveSpec(ranks, elements, DataType.INT32, Operation.SUM, tuple(rates), **more)


def collective_of(sizes):
    return collective_named(f"alltoallv:{sizes.parameters}")


@st.composite
def drawn_matrices(draw):
    """Elements from each rank to each, many of them none, on hosts of one rank or several."""
    per_host, stride, blocks = draw(
        st.sampled_from([(1, 1, n) for n in range(1, 7)] + [(2, 1, 2), (2, 2, 1), (3, 1, 2), (2, 3, 1)])
    )
    ranks = per_host * stride * blocks
    cell = st.one_of(st.just(0), st.integers(0, 300))
    rows = draw(st.lists(st.lists(cell, min_size=ranks, max_size=ranks), min_size=ranks, max_size=ranks))
    matrix = np.array(rows, np.int64)
    matrix[draw(st.integers(0, ranks - 1)), draw(st.integers(0, ranks - 1))] += 1
    names = ["direct", "pairwise"] + (["hierarchical"] if per_host > 1 else [])
    rates = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    spec = spec_of(ranks, largest_sum(matrix), rates, ranks_per_host=per_host, rank_stride=stride, run_tag=7)
    return matrix, draw(st.sampled_from(names)), spec


@given(drawn_matrices(), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_every_rank_holds_what_the_others_have_for_it_in_their_order(drawn, seed):
    matrix, algorithm, spec = drawn
    collective = collective_of(PairSizes(matrix * ITEM))
    inputs = inputs_of(spec, seed)
    schedules = [collective.schedule(algorithm, spec, rank) for rank in range(spec.rank_count)]
    results = Interpreter(schedules, inputs, seed, spec.dtype, spec.operation, lambda _: 0).results("int32")
    for rank, result in enumerate(results):
        begins = [int(row[:rank].sum()) for row in matrix]
        parts = [own[begin : begin + row[rank]] for own, begin, row in zip(inputs, begins, matrix, strict=True)]
        expected = np.concatenate(parts)
        np.testing.assert_array_equal(result[: len(expected)], expected)
        assert collective.result_part(spec, rank) == range(len(expected))
        np.testing.assert_array_equal(collective.terms(spec, inputs, rank)[0][: len(expected)], expected)


@given(drawn_matrices())
@settings(max_examples=30, deadline=None)
def test_no_byte_is_sent_twice_over_the_network_and_none_of_a_rank_for_itself(drawn):
    matrix, algorithm, spec = drawn
    collective = collective_of(PairSizes(matrix * ITEM))
    between, inside = Counter(), Counter()
    for rank in range(spec.rank_count):
        for node in collective.schedule(algorithm, spec, rank).nodes:
            if isinstance(node, Write):
                assert node.source.length_bytes > 0
                (inside if node.channel.is_scale_up else between)[rank] += node.source.length_bytes
    hosts = [spec.position(rank) // spec.ranks_per_host for rank in range(spec.rank_count)]
    crossing = sum(
        int(matrix[source, to]) * ITEM
        for source in range(spec.rank_count)
        for to in range(spec.rank_count)
        if hosts[source] != hosts[to]
    )
    assert sum(between.values()) == crossing
    staying = (int(matrix.sum()) - int(np.trace(matrix))) * ITEM - crossing
    if algorithm == "hierarchical":
        assert staying <= sum(inside.values()) <= staying + crossing
    else:
        assert sum(inside.values()) == staying


def test_hierarchical_messages_stay_on_their_rail():
    spec = spec_of(8, 8 * 40, ranks_per_host=4, rank_stride=2)
    collective = collective_of(PairSizes(np.full((8, 8), 40 * ITEM)))
    for rank in range(8):
        for node in collective.schedule("hierarchical", spec, rank).nodes:
            if isinstance(node, Write) and not node.channel.is_scale_up:
                assert spec.position(node.channel.peer) % 4 == spec.position(rank) % 4


@given(drawn_matrices(), st.integers(1, 1 << 40))
@settings(max_examples=60, deadline=None)
def test_other_sizes_scale_the_matrix(drawn, elements):
    matrix, _, spec = drawn
    sizes = PairSizes(matrix)
    found = sizes.elements(spec_of(spec.rank_count, elements))
    total = largest_sum(matrix)
    assert found.tolist() == [[cell * elements // total for cell in row] for row in matrix.tolist()]
    assert largest_sum(found) <= elements
    least = sizes.least_elements(spec.rank_count)
    others = ~np.eye(spec.rank_count, dtype=bool)
    if matrix[others].any():
        assert sizes.elements(spec_of(spec.rank_count, least))[others].any()
        assert not sizes.elements(spec_of(spec.rank_count, least - 1))[others].any()


def test_a_matrix_of_its_own_size_is_kept_to_the_byte():
    matrix = np.array([[0, 4, 8], [12, 0, 0], [0, 400, 4]])
    assert (PairSizes(matrix).elements(spec_of(3, PairSizes(matrix).size_bytes // ITEM)) * ITEM == matrix).all()


def test_what_is_drawn_depends_on_skew_spread_and_seed_alone():
    weights = PairSizes(skew=1.0, seed=3).weights(8)
    assert (weights == weights[0]).all()
    shares = np.sort(weights[0] / weights.max())[::-1]
    np.testing.assert_allclose(shares, 1 / np.arange(1, 9), rtol=1e-5)
    assert (PairSizes(skew=1.0, seed=3).weights(8) == weights).all()
    assert (PairSizes(skew=1.0, seed=4).weights(8) != weights).any()
    assert (PairSizes(skew=0.0).weights(8) == PairSizes(skew=0.0).weights(8)[0, 0]).all()


def test_spread_is_the_standard_deviation_of_logarithms():
    logarithms = np.log(PairSizes(skew=0.0, spread=0.5).weights(200))
    assert logarithms.std() == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("sizes", [PairSizes(np.array([[0, 8], [4, 0]])), PairSizes(skew=0.5, spread=1.5, seed=9)])
def test_another_process_gets_the_same_sizes(sizes):
    found = collective_of(sizes)
    assert isinstance(found, AllToAllV)
    assert found is not COLLECTIVE_KINDS["alltoallv"]
    assert (found.sizes.weights(2) == sizes.weights(2)).all()
    assert collective_named(found.reference).reference == found.reference
    assert found.bus_bandwidth_factor(2) == pytest.approx(
        largest_sum(np.triu(sizes.weights(2), 1) + np.tril(sizes.weights(2), -1)) / largest_sum(sizes.weights(2))
    )


def test_a_subclass_has_sizes_of_its_own():
    class Mine(AllToAllV):
        name = "mine"
        sizes = PairSizes(np.array([[0, 4], [0, 0]]))

    sent = [node for node in Mine().schedule("direct", spec_of(2, 1), 0).nodes if isinstance(node, Write)]
    assert [node.source.length_bytes for node in sent] == [4]
    assert not Mine().schedule("direct", spec_of(2, 1), 1).written_peers()


def test_what_makes_no_sizes_is_refused():
    with refused(ValueError, valid="a row and a column for each rank, none below 0", problem="a matrix of 1 x 2"):
        PairSizes(np.array([[1, 2]]))
    with refused(ValueError, valid="a row and a column for each rank, none below 0", problem="a matrix of 1 x 1"):
        PairSizes(np.array([[-1]]))
    with refused(ValueError, valid="at least one pair with bytes", problem="a matrix of zeros"):
        PairSizes(np.zeros((2, 2), np.int64))
    with refused(ValueError, valid="0 or more", problem="skew -1, spread 0"):
        PairSizes(skew=-1)
    with pytest.raises(ValueError, match="sizes of 2 ranks for 4 "):
        collective_of(PairSizes(np.ones((2, 2), np.int64))).check("direct", spec_of(4, 100))
    with refused(ValueError, valid="allreduce", problem="allreduce has no parameters"):
        collective_named("allreduce:{}")
