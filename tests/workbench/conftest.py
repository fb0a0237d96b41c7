"""A folder with a scenario, and a workbench that serves it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from asking import Asking
from weft.workbench.server import WorkbenchServer

SCENARIO = """\
# Two hosts and a leaf.
name: pair
clock: virtual
fabric: {planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 2, host_rate: 10Gb/s}
traffic:
  - incast: h0   # from the other one
    bytes_per_sender: 16KiB
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "bench"
    path.mkdir()
    (path / "pair.yaml").write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture
def bench(folder: Path) -> Iterator[Asking]:
    with WorkbenchServer(folder, port=0) as server:
        yield Asking(server)
