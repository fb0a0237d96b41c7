"""RDMA programs of others in a lab's hosts: commands that run in two of them, and how they end."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from weft.run.fabric import Fabric

START_S = 1.0
"""That a server may take until it listens; clients of perftest try once only."""


def run_pair(fabric: Fabric, folder: Path, command: str, seconds: float = 120, middle: object = None) -> str:
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
    if callable(middle):
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
