"""Commands of pages that need a lab: those beside a running one, and those that make one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.page_commands import running
from tests.page_commands.page_commands import CommandLine, block_name, blocks_for
from weft import topologies
from weft.paths import SHELL_PYTHON
from weft.run.fabric import Fabric

pytestmark = [pytest.mark.mininet, pytest.mark.slow]
TOPOLOGY = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=2)
"""With the names and ports that pages use."""
FLOWS = [
    (source, f"{network}{host}") for source in ("h0", "h1") for network in ("10.0.1.", "fd00:0:1::") for host in (1, 2)
]
"""Enough pings for every uplink of a leaf to carry some."""
LABELS = range(1, 9)
"""Flow labels of pings to the first leaf, by which all its uplinks bring some: a kernel draws others at each boot."""
LACKING = {
    "weft shell": None if SHELL_PYTHON.exists() else "p4runtime-shell is not installed (.venv-shell)",
    "tcpdump": None if shutil.which("tcpdump") else "tcpdump is not installed",
}


def keep_pinging(fabric: Fabric, stack: ExitStack, source: str, *arguments: str) -> None:
    ping = ["ping", "-q", "-i", "0.2", *arguments]
    process = stack.enter_context(fabric.lab.network.popen(source, ping, stdout=subprocess.DEVNULL))
    stack.callback(process.kill)


@pytest.fixture
def lab() -> Iterator[Fabric]:
    with Fabric(TOPOLOGY, clock="real") as fabric, ExitStack() as stack:
        for source, address in FLOWS:
            keep_pinging(fabric, stack, source, address)
        for label in LABELS:
            keep_pinging(fabric, stack, "h2", "-F", str(label), str(TOPOLOGY.hosts[0].nics[0].ipv6.ip))
        yield fabric


@pytest.mark.parametrize("block", blocks_for("lab"), ids=block_name)
def test_commands_run_beside_a_lab(block: list[CommandLine], lab: Fabric, tmp_path: Path) -> None:
    directory = running.prepared(block, tmp_path)
    left_out = []
    for command in block:
        lacking = [why for program, why in LACKING.items() if why and command.text.startswith(program)]
        if lacking:
            left_out += lacking
        else:
            running.run(command, directory, typed="exit\n")
    if left_out:
        pytest.skip(f"the others ran: {', '.join(left_out)}")


@pytest.mark.parametrize("block", blocks_for("root"), ids=block_name)
def test_commands_make_a_lab_and_end_it(block: list[CommandLine], tmp_path: Path) -> None:
    directory = running.prepared(block, tmp_path)
    for command in block:
        done = running.run(command, directory, typed="exit\n")
        for option, said in (("--web", "live page at http://"), ("--metrics", "metrics at http://")):
            assert (option in command.text) == (said in done.stdout + done.stderr), done.stdout + done.stderr
