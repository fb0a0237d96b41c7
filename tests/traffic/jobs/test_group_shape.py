"""How groups lie on hosts: which are described by numbers, and that scale-up links join the right ranks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.data_types import DataType
from weft.traffic.jobs.placing import GroupShape, group_shape
from weft.traffic.schedules import CollectiveSpec


@pytest.mark.parametrize(
    ("hosts", "shape"),
    [
        ([3], GroupShape()),
        ([5, 1, 9], GroupShape()),
        ([4, 4, 4], GroupShape(3, 1)),
        ([4, 4, 2, 2], GroupShape(2, 1)),
        ([4, 2, 4, 2], GroupShape(2, 2)),
        ([4, 2, 4, 2, 7, 1, 7, 1], GroupShape(2, 2)),
        ([4, 4, 2], GroupShape(hosts=(0, 0, 1))),
        ([4, 2, 2, 4], GroupShape(hosts=(0, 1, 1, 0))),
        ([4, 2, 4, 4, 2, 4], GroupShape(hosts=(0, 1, 0, 0, 1, 0))),
    ],
)
def test_shapes(hosts, shape):
    assert group_shape(hosts) == shape


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_a_spec_of_a_shape_knows_who_shares_a_host(hosts):
    spec = CollectiveSpec(len(hosts), 1024, DataType.INT32, Operation.SUM, (10**9,), **group_shape(hosts)._asdict())
    for rank, host in enumerate(hosts):
        for other, other_host in enumerate(hosts):
            assert spec.share_a_host(rank, other) == (host == other_host)
        assert spec.rank_at(spec.position(rank)) == rank


def test_an_irregular_group_refuses_what_works_inside_hosts():
    spec = CollectiveSpec(3, 1024, DataType.INT32, Operation.SUM, (10**9,), hosts=(0, 0, 1))
    with pytest.raises(ValueError, match="no regular order"):
        COLLECTIVE_KINDS["allreduce"].check("hierarchical", spec)


@pytest.mark.parametrize("change", [{"hosts": (0, 1)}, {"hosts": (0, 1, 1, 0), "ranks_per_host": 2}])
def test_hosts_that_do_not_fit_the_ranks_are_refused(change):
    with refused(ValueError, valid="of 4, with 1 rank a host", problem="hosts of"):
        CollectiveSpec(4, 1024, DataType.INT32, Operation.SUM, (10**9,), **change)
