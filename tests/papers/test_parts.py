"""Parts of studies: series of ports, shares."""

from __future__ import annotations

import numpy as np
import pytest

from weft.papers.listed_flows import ListedFlows
from weft.papers.ports import PortSeries
from weft.quantities.fairness import jain_index
from weft.topologies import leaf_spine


def test_a_port_s_rate_is_what_it_sent_between_two_times() -> None:
    series = PortSeries(
        np.array([0, 10_000_000, 20_000_000]), np.array([0, 4000, 1000]), np.array([0, 125_000, 125_000])
    )
    assert series.rate_bps(0, 10) == pytest.approx(100e9)
    assert series.rate_bps(10, 20) == 0
    assert series.rates_at(np.array([0.0, 10.0, 20.0])).tolist() == pytest.approx([100e9, 0])
    assert series.queue_at(np.array([5.0, 10.0, 99.0])).tolist() == [0, 4000, 1000]


def test_equal_shares_have_an_index_of_one() -> None:
    assert jain_index([3.0, 3.0, 3.0]) == pytest.approx(1)
    assert jain_index([1.0, 0.0]) == pytest.approx(0.5)


def test_flows_are_those_that_are_listed() -> None:
    fabric = leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=3, host_rate_bps=1e9)
    flows = list(ListedFlows([[0, 1, 5000], [2, 1, 700, 1.5]]).flows(fabric, np.random.default_rng(1)))
    assert [(each.source, each.destination, each.size_bytes, each.start_ps) for each in flows] == [
        (0, 1, 5000, 0),
        (2, 1, 700, 1_500_000),
    ]
