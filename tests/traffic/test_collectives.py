"""The registry of collectives: a file each, what they say of themselves, and what is refused."""

import sys
from pathlib import Path

import numpy as np
import pytest

import weft.traffic.collectives as package
from tests.refusals import refused
from weft.engine import ExtensionError
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import (
    COLLECTIVE_KINDS,
    Algorithm,
    Collective,
    algorithm_names,
    collective_named,
)
from weft.traffic.data_types import DataType
from weft.traffic.schedules import CollectiveSpec

NOT_COLLECTIVES = {"__init__", "conditions", "definition", "registry"}
FACTORS = {  # nccl-tests, doc/PERFORMANCE.md, for 8 ranks
    "allreduce": 2 * 7 / 8,
    "reducescatter": 7 / 8,
    "allgather": 7 / 8,
    "alltoall": 7 / 8,
    "alltoallv": 7 / 8,  # all ranks send alike; the most popular receiver gets 8 such sums, its own included
    "broadcast": 1,
    "gather": 7 / 8,  # nccl-tests, src/gather.cu and src/scatter.cu
    "scatter": 7 / 8,
    "reduce": 1,
    "barrier": 0,  # nccl-tests has none
    "moe_dispatch": 7 / 8 / 2,  # not nccl-tests': its data have room for twice the mean
}
NOTHING = """
from weft.traffic.collectives.definition import Algorithm, Collective
from weft.traffic.schedule_nodes import DATA, RankSchedule


def nothing(spec, rank):
    return RankSchedule(rank, {DATA: spec.size_bytes})


class Nothing(Collective):
    name = "nothing"
    algorithms = (Algorithm("at-all", nothing),)

    def terms(self, spec, inputs, rank):
        return [inputs[rank]]

    def bus_bandwidth_factor(self, ranks):
        return 0.0
"""


def spec_of(ranks, elements=1024, **more):
    return CollectiveSpec(ranks, elements, DataType.INT32, Operation.SUM, (1,), **more)


def test_every_file_of_the_package_is_a_collective_by_its_name():
    files = {path.stem for path in Path(package.__file__).parent.glob("*.py")} - NOT_COLLECTIVES
    assert set(COLLECTIVE_KINDS) == files == set(FACTORS)


@pytest.fixture
def with_nothing(tmp_path, monkeypatch):
    """Add one more file to the package."""
    (tmp_path / "nothing.py").write_text(NOTHING)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    COLLECTIVE_KINDS.look_again()
    yield
    COLLECTIVE_KINDS.look_again()
    sys.modules.pop("weft.traffic.collectives.nothing", None)


def test_a_file_in_the_package_is_all_that_a_collective_takes(with_nothing):
    assert set(COLLECTIVE_KINDS) == {*FACTORS, "nothing"}
    assert "at-all" in algorithm_names()
    assert not collective_named("nothing").schedule("at-all", spec_of(4), 3).nodes


@pytest.mark.parametrize("name", FACTORS)
def test_bus_bandwidths_are_those_of_nccl_tests(name):
    assert COLLECTIVE_KINDS[name].bus_bandwidth_factor(8) == pytest.approx(FACTORS[name])


@pytest.mark.parametrize("name", FACTORS)
def test_data_for_a_size_is_the_larger_of_input_and_result(name):
    if name == "barrier":  # of any size
        assert COLLECTIVE_KINDS[name].input_elements(8 * 1024, 8) == 1
        return
    collective, ranks = COLLECTIVE_KINDS[name], 8
    elements = collective.element_count(collective.input_elements(2 * 1024, ranks), ranks)
    assert elements * 4 == 8 * 1024
    spec = spec_of(ranks, elements)
    parts = [collective.input_part(spec, 3), collective.result_part(spec, spec.root)]
    assert max(map(len, parts)) == elements or name in ("reducescatter", "moe_dispatch")
    least = collective.element_count(collective.input_elements(collective.least_elements(ranks), ranks), ranks)
    assert all(spec_of(ranks, least).chunk(rank) or not collective.is_parted for rank in range(ranks))
    assert least > 0


@pytest.mark.parametrize("name", FACTORS)
def test_terms_are_as_long_as_the_data(name):
    spec = spec_of(4, 16)
    inputs = [np.arange(16, dtype=np.int32) + 100 * rank for rank in range(4)]
    for rank in range(4):
        terms = COLLECTIVE_KINDS[name].terms(spec, inputs, rank)
        assert {len(term) for term in terms} == {16}
        assert COLLECTIVE_KINDS[name].reduces or len(terms) == 1


@pytest.mark.parametrize(
    ("name", "spec", "suitable"),
    [
        ("allreduce", spec_of(6), ["ring", "tree", "halving-doubling", "recursive-doubling", "in-network"]),
        (
            "allreduce",
            spec_of(8, ranks_per_host=2),
            [each.name for each in COLLECTIVE_KINDS["allreduce"].algorithms if not each.name.startswith("nvls")],
        ),
        ("allgather", spec_of(6), ["ring", "pat", "in-network"]),
        ("allgather", spec_of(8), ["ring", "halving-doubling", "pat", "in-network"]),
        ("alltoall", spec_of(8, 20), []),
    ],
)
def test_what_is_suitable_can_be_made(name, spec, suitable):
    collective = COLLECTIVE_KINDS[name]
    assert collective.suitable(spec) == suitable
    for algorithm in collective.algorithms:
        if algorithm.name in suitable:
            assert collective.schedule(algorithm.name, spec, 0).rank == 0
        else:
            with pytest.raises(ValueError, match="valid: "):
                collective.schedule(algorithm.name, spec, 0)


@pytest.mark.parametrize("name", ["allreduce", "reducescatter", "allgather"])
def test_on_a_scale_up_domain_the_switches_algorithm_is_listed_by_its_name_there(name):
    collective, spec = COLLECTIVE_KINDS[name], spec_of(6, is_scale_up=True)
    assert "nvls" in collective.suitable(spec)
    assert "in-network" not in collective.suitable(spec)
    assert collective.algorithm("nvls").generator is collective.algorithm("in-network").generator
    assert collective.check("in-network", spec).in_network
    with pytest.raises(ValueError, match="valid: in-network"):
        collective.check("nvls", spec_of(6))


def test_unknown_collectives_are_refused_by_name():
    with refused(
        ValueError,
        valid=(
            "allgather, allreduce, alltoall, alltoallv, barrier, broadcast, gather, moe_dispatch, reduce, "
            "reducescatter, scatter, or path/to/file.py:Class"
        ),
        problem="unknown collective 'scan'",
    ):
        collective_named("scan")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (NOTHING.replace('"nothing"', '"allreduce"'), "is one of Weft's own"),
        (NOTHING.replace('    name = "nothing"\n', ""), "name is None"),
        (NOTHING.replace('"nothing"', '"No Thing"'), "name is 'No Thing'"),
        (NOTHING.replace('(Algorithm("at-all", nothing),)', "()"), "algorithms are missing"),
        (NOTHING.replace("bus_bandwidth_factor", "factor"), r"lacks bus_bandwidth_factor\(\)"),
        (NOTHING.replace("(Collective)", ""), "is no Collective"),
    ],
)
def test_a_users_class_that_says_too_little_is_refused(tmp_path, code, words):
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(ExtensionError, match=words):
        collective_named(f"{tmp_path}/mine.py:Nothing")


def test_users_classes_are_found_by_their_reference(tmp_path):
    (tmp_path / "mine.py").write_text(NOTHING)
    reference = f"{tmp_path}/mine.py:Nothing"
    found = collective_named(reference)
    assert isinstance(found, Collective)
    assert isinstance(found.algorithms[0], Algorithm)
    assert (found.name, found.reference) == ("nothing", reference)
    assert "nothing" not in COLLECTIVE_KINDS
