"""Makes this folder's helper modules importable, and offers two hosts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from namespaces import Namespace


@pytest.fixture
def hosts() -> Iterator[tuple[Namespace, Namespace]]:
    """Two hosts, 10.0.1.1 and 10.0.1.2, each with one link."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    made: list[Namespace] = []
    try:
        for number in (1, 2):
            host = Namespace(f"dropin-h{number}-{os.getpid()}", f"dropin{number}-{os.getpid() % 10_000}")
            made.append(host)
            host.run("ip", "address", "add", f"10.0.1.{number}/24", "dev", host.inside)
            host.run("ip", "link", "set", host.inside, "address", f"02:00:00:00:00:0{number}")
            host.run("ip", "neighbour", "add", f"10.0.1.{3 - number}", "lladdr", f"02:00:00:00:00:0{3 - number}",
                     "dev", host.inside)  # fmt: skip
        yield made[0], made[1]
    finally:
        for host in made:
            host.close()
