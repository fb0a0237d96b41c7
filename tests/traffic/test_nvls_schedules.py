"""Schedules by the switches inside hosts, interpreted in random order, against NumPy; bytes on each rank's link."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from collective_results import assert_right, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_interpreter import Interpreter

from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.costs import Links, Wire
from weft.traffic.data_types import DataType
from weft.traffic.schedule_nodes import DATA
from weft.traffic.schedules import CollectiveSpec, peers_of

OF_ONE_HOST = ("nvls",)
OF_COLLECTIVES = {
    "allreduce": ("nvls", "nvls-tree", "nvls-in-network"),
    "reducescatter": OF_ONE_HOST,
    "allgather": OF_ONE_HOST,
}


def spec_of(ranks, elements, dtype=DataType.INT32, operation=Operation.SUM, rates=(1,), **options):
    return CollectiveSpec(ranks, elements, dtype, operation, tuple(rates), host_reductions=True, **options)


def interpreted(collective, algorithm, spec, inputs, seed=0):
    schedules = [COLLECTIVE_KINDS[collective].schedule(algorithm, spec, rank) for rank in range(spec.rank_count)]
    by_rail = COLLECTIVE_KINDS[collective].check(algorithm, spec).by_rail
    team = (lambda rank: spec.position(rank) % spec.ranks_per_host) if by_rail else (lambda _: 0)
    return Interpreter(schedules, inputs, seed, spec.dtype, spec.operation, team)


@st.composite
def drawn_collectives(draw):
    collective = draw(st.sampled_from(sorted(OF_COLLECTIVES)))
    algorithm = draw(st.sampled_from(OF_COLLECTIVES[collective]))
    hosts = draw(st.integers(1 if algorithm == "nvls" else 2, 5))
    per_host = draw(st.integers(2, 5))
    stride = draw(st.sampled_from([each for each in range(1, hosts + 1) if hosts % each == 0]))
    kind = COLLECTIVE_KINDS[collective]
    dtype, operation = draw(
        st.sampled_from(
            [
                (dtype, operation)
                for dtype in DataType
                for operation in Operation
                if not kind.objection_to_operation(operation, dtype)
            ]
        )
    )
    spec = spec_of(
        hosts * per_host,
        draw(st.integers(0, 700)),
        dtype,
        operation,
        draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)),
        piece_bytes=draw(st.sampled_from([64, 256, 4096])),
        run_tag=draw(st.integers(0, 4095)),
        ranks_per_host=per_host,
        rank_stride=stride,
        trees=draw(st.integers(1, 2)),
    )
    return collective, algorithm, spec


@given(drawn_collectives(), st.integers(0, 1000))
@settings(max_examples=150, deadline=None)
def test_collectives_leave_what_numpy_computes(drawn, seed):
    collective, algorithm, spec = drawn
    inputs = inputs_of(spec, seed)
    interpreter = interpreted(collective, algorithm, spec, inputs, seed)
    assert_right(collective, spec, inputs, interpreter.results(spec.dtype.storage))
    assert not interpreter.reducing
    for stepper, schedule in zip(interpreter.steppers, interpreter.schedules, strict=True):
        assert len(stepper.done) == schedule.step_count
    connected = set(peers_of(interpreter.schedules))
    assert all((channel.peer, replace(channel, peer=rank)) in connected for rank, channel in connected)


@given(drawn_collectives(), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_lengths_transfer_what_data_does(drawn, seed):
    collective, algorithm, spec = drawn
    whole = interpreted(collective, algorithm, spec, inputs_of(spec, seed), seed)
    whole.results(spec.dtype.storage)
    schedules = [schedule.of_lengths() for schedule in whole.schedules]
    data = [np.zeros(spec.element_count if DATA in each.buffer_bytes else 0, spec.dtype.storage) for each in schedules]
    lengths = Interpreter(schedules, data, seed, spec.dtype, spec.operation, lambda rank: whole.teams[rank])
    lengths.results(spec.dtype.storage)
    transfers = [
        Counter((each.rank, each.channel, each.immediate, each.length_bytes) for each in sent)
        for sent in (whole.sent, lengths.sent)
    ]
    assert transfers[0] == transfers[1]


@pytest.mark.parametrize("algorithm", OF_COLLECTIVES["allreduce"])
def test_all_ranks_hold_the_same_floats(algorithm):
    spec = spec_of(12, 999, DataType.FLOAT32, ranks_per_host=3, piece_bytes=256)
    results = interpreted("allreduce", algorithm, spec, inputs_of(spec, 5), 2).results("float32")
    assert len({each.tobytes() for each in results}) == 1


@pytest.mark.parametrize(
    ("change", "algorithm", "message"),
    [
        ({"host_reductions": False}, "nvls", "no switch that reduces.*fabric.scale_up.reductions: true"),
        ({"host_reductions": False}, "nvls-tree", "no switch that reduces"),
        ({"ranks_per_host": 1, "host_reductions": False}, "nvls-tree", "no scale-up domain"),
        ({"ranks_per_host": 1}, "nvls", "hosts of 1 rank"),
        (
            {"ranks_per_host": 1, "host_reductions": False, "is_scale_up": True},
            "nvls-tree",
            "each accelerator.*is a host",
        ),
        ({"ranks_per_host": 8}, "nvls-tree", "all ranks share a host .valid: nvls"),
        ({"ranks_per_host": 8}, "nvls-in-network", "all ranks share a host .valid: nvls"),
        ({"ranks_per_host": 1, "hosts": (0, 0, 0, 1, 1, 2, 2, 2)}, "nvls", "in no regular order"),
        ({"protocol": "ll128"}, "nvls", "no flags of ll128"),
    ],
)
def test_what_hosts_switches_cannot_do_is_refused(change, algorithm, message):
    spec = replace(spec_of(8, 64, ranks_per_host=4), **change)
    with pytest.raises(ValueError, match=message):
        COLLECTIVE_KINDS["allreduce"].schedule(algorithm, spec, 0)


def test_the_name_means_the_fabrics_switches_on_scale_up_domains_alone():
    collective = COLLECTIVE_KINDS["allreduce"]
    assert collective.check("nvls", spec_of(8, 64, is_scale_up=True)).in_network
    of_hosts = spec_of(8, 64, ranks_per_host=4)
    assert not collective.check("nvls", of_hosts).in_network
    assert {"nvls", "nvls-tree", "nvls-in-network", "in-network"} <= set(collective.suitable(of_hosts))


IDLE = Links(Wire(1000.0, 2.0), Wire(100.0, 1.0), Wire(1500.0, 2.0))


def test_costs_overlap_what_is_inside_hosts_with_what_is_between():
    """A byte takes 2 between hosts and 1 inside, where there are all bytes and an eighth of them."""
    collective, size = COLLECTIVE_KINDS["allreduce"], 1 << 20

    def cost(algorithm, ranks, per_host):
        spec = spec_of(ranks, size // 4, ranks_per_host=per_host)
        return collective.check(algorithm, spec).cost(spec, IDLE)

    assert cost("nvls", 8, 8).total_ps == 100 + size
    for algorithm in OF_COLLECTIVES["allreduce"]:
        inside = cost("nvls", 8, 8).total_ps
        assert cost(algorithm, 32, 8).total_ps > inside
    assert cost("nvls", 32, 8).total_ps < cost("hierarchical", 32, 8).total_ps
    assert cost("nvls-tree", 1024, 8).latency_ps < cost("nvls", 1024, 8).latency_ps
    assert cost("nvls-in-network", 1024, 8).steps < cost("nvls-tree", 1024, 8).steps
