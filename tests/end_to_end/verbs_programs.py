"""RDMA programs of others in a lab's hosts: commands that run in two of them, and how they end."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft import topologies
from weft.run.fabric import Fabric
from weft.verbs import libraries

START_S = 1.0
"""That a server may take until it listens; clients of perftest try once only."""
LACKING = libraries.missing_because()
"""Why hosts have no RDMA device here; empty if they have."""
needs_device = pytest.mark.skipif(LACKING != "", reason=LACKING or "none")
PERFTEST = [
    pytest.mark.slow,
    pytest.mark.one_part,
    needs_device,
    pytest.mark.skipif(shutil.which("ib_write_bw") is None, reason="apt install perftest"),
]
FEW = "-n 20 -F"
"""Options of perftest: some messages, at whatever rate."""


def exec_in(host: str, *words: str) -> list[str]:
    """Return the command that runs another one in a host."""
    return [sys.executable, "-m", "weft", "exec", host, *words]


def weft_exec(*arguments: str, timeout: float = 60, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a host."""
    return subprocess.run(exec_in(*arguments), capture_output=True, text=True, check=False, timeout=timeout, **options)


def server_and_client(
    server_line: str, client_line: str, attempts: int, *, pause_s: float = 0.2, timeout_s: float = 60
) -> tuple[int, int | None, str, str]:
    """Run a server in h0 and a client in h1; return their exit codes and what they have printed, the client's first.

    The server listens some time after it has begun; a client that comes earlier is refused and comes again.
    """
    retrying = f"for i in $(seq {attempts}); do {client_line} && exit 0; sleep {pause_s}; done; exit 1"
    with subprocess.Popen(
        exec_in("h0", server_line), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            client = weft_exec("h1", retrying, timeout=timeout_s)
            if client.returncode:
                server.kill()
            printed, _ = server.communicate(timeout=60)
        finally:
            server.kill()
    return client.returncode, server.returncode, client.stdout + client.stderr, printed


def perftest_lab(dilation: float = 100, **options: Any) -> Fabric:
    """Return a lab of two hosts with two paths between them."""
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=1)
    return Fabric(topology, clock="real", dilation=dilation, **options)


def run_pair(
    fabric: Fabric, folder: Path, command: str, seconds: float = 120, middle: Callable[[], None] | None = None
) -> str:
    """Run a command in h0, then the same with h0's address in h1; return what both print unless both succeed.

    Args:
        fabric: a running lab.
        folder: for their output.
        command: without the server's address.
        seconds: that they may take.
        middle: called when both run.
    """
    address = str(fabric.lab.fabric.hosts[0].nics[0].ipv4.ip)
    started = []
    for host, line in (("h0", command), ("h1", f"{command} {address}")):
        log = (folder / f"{host}.log").open("w+")
        started.append((fabric.lab.network.popen(host, ["sh", "-c", f"exec {line}"], stdout=log, stderr=log), log))
        time.sleep(START_S if host == "h0" else 0)
    if middle is not None:
        middle()
    ends = time.monotonic() + seconds
    failed = []
    for process, log in reversed(started):
        try:
            code: int | None = process.wait(max(0.0, ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = None
        log.seek(0)
        if code != 0:
            failed.append(f"{'no end' if code is None else code}: {log.read()}")
        log.close()
    return "\n".join(failed)
