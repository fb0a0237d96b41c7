"""A fabric of one switch whose links lose, duplicate and delay packets, and one whose links do not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import weft
from weft import topologies
from weft.scenario.sections import FaultsSection

FAULTS = FaultsSection(loss=0.02, duplicate=0.02, delay_probability=0.05, extra_delay=5_000_000)


def one_switch(hosts: int = 4, planes: int = 1) -> topologies.FabricSpec:
    return topologies.leaf_spine(planes=planes, leaves=1, spines=0, hosts_per_leaf=hosts)


@pytest.fixture(scope="module")
def fabric() -> Iterator[weft.Fabric]:
    with weft.Fabric(one_switch(), seed=1, clock="virtual") as fabric:
        yield fabric


@pytest.fixture(scope="module")
def faulty_fabric() -> Iterator[weft.Fabric]:
    with weft.Fabric(one_switch(), seed=1, clock="virtual", faults=FAULTS) as fabric:
        yield fabric
