"""UCX in a lab's hosts: its reliable connections, which are set up by datagrams, and its datagrams alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from verbs_programs import needs_device, run_pair
from weft import topologies
from weft.run.fabric import Fabric

pytestmark = [
    needs_device,
    pytest.mark.skipif(shutil.which("ucx_perftest") is None, reason="apt install ucx-utils"),
]


@pytest.fixture(scope="module")
def lab() -> Iterator[Fabric]:
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
    with Fabric(topology, clock="real", dilation=10) as fabric:
        yield fabric


@pytest.mark.parametrize("transports", ["rc_verbs,ud_verbs,self", "ud_verbs,self"])
@pytest.mark.parametrize("test", ["tag_lat -s 64", "tag_bw -s 8192", "ucp_put_lat -s 64"])
def test_it_completes(lab: Fabric, tmp_path: Path, transports: str, test: str) -> None:
    command = f"env UCX_TLS={transports} UCX_NET_DEVICES=weft0:1 ucx_perftest -n 20 -w 2 -t {test}"
    assert run_pair(lab, tmp_path, command, seconds=60) == ""
