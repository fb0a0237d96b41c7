"""A network of this process's own: a namespace that ends with it, veth pairs, interface counters."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_CLONE_NEWNS = 0x00020000
_CLONE_NEWNET = 0x40000000
_SETTLED_READINGS = 3
_READING_INTERVAL_S = 0.02


def enter_own_network() -> None:
    """Move this process, and all that it starts from now on, into a new network namespace; OSError if not permitted.

    Nothing is left behind, however the process ends. To be called before any thread is started.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET | _CLONE_NEWNS) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"cannot make a network namespace: {os.strerror(error)} (root?)")
    # BMv2 looks for its interfaces in /sys, which shows the network namespace of the process that mounted it.
    _run("mount", "--make-rslave", "/")
    _run("mount", "-t", "sysfs", "sysfs", "/sys")
    for scope in ("all", "default"):  # router solicitations would be counted as frames
        Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")
    _run("ip", "link", "set", "lo", "up")


@contextmanager
def veth_pairs(names: Iterable[tuple[str, str]]) -> Iterator[None]:
    """Pairs of interfaces, each the other's far end, up."""
    made: list[str] = []
    try:
        for a, b in names:
            _run("ip", "link", "add", a, "type", "veth", "peer", "name", b)
            made.append(a)
            for interface in (a, b):
                _run("ip", "link", "set", interface, "up")
        yield
    finally:
        for interface in made:
            _run("ip", "link", "delete", interface)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def received_frames(interface: str) -> int:
    """Frames that have come in; the kernel counts them, so that counting costs the forwarders nothing."""
    return int(Path(f"/sys/class/net/{interface}/statistics/rx_packets").read_text())


def settled_frames(interface: str) -> int:
    """`received_frames` once no more come in."""
    last, unchanged = received_frames(interface), 0
    while unchanged < _SETTLED_READINGS:
        time.sleep(_READING_INTERVAL_S)
        now = received_frames(interface)
        unchanged = unchanged + 1 if now == last else 0
        last = now
    return last
