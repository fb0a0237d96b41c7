"""A fabric in virtual time, whose view is looked at without Mininet."""

from collections.abc import Iterator

import pytest

from weft.run.fabric import Fabric
from weft.topologies import leaf_spine


@pytest.fixture
def fabric() -> Iterator[Fabric]:
    """Three hosts send to h0 at the first leaf's port 1, whose queue is short."""
    spec = leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=3, queue_capacity_bytes=64 * 1024)
    with Fabric(spec, clock="virtual") as running:
        yield running
