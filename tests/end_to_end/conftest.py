"""Fabrics that several tests of a module share, because building one takes seconds."""

import os
import shutil
from collections.abc import Iterator

import pytest

from weft import topologies
from weft.clocks.real.lab_state import STATE_FILE
from weft.run.fabric import Fabric


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    lacking = None
    if os.geteuid() != 0:
        lacking = "needs root"
    elif shutil.which("mnexec") is None:
        lacking = "needs Mininet"
    for item in items:
        if "end_to_end" in str(item.path):
            item.add_marker(pytest.mark.mininet)
            if lacking:
                item.add_marker(pytest.mark.skip(reason=lacking))


@pytest.fixture(scope="module")
def small_fabric() -> Iterator[Fabric]:
    """One plane, two leaves of two hosts, one spine: every kind of path, little to build."""
    with Fabric(topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2)) as fabric:
        yield fabric


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No interface and no state file may outlive the tests."""
    before = set(os.listdir("/sys/class/net"))
    yield
    assert set(os.listdir("/sys/class/net")) == before
    assert not STATE_FILE.exists()
