"""A host's collector at the kernel's sockets: what arrives is kept, with its time, and written as it was read."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.traffic import collector


def free_port() -> int:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        probe.bind(("::", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def made() -> collector.KernelCollector:
    port = free_port()
    numbers = itertools.count(1)
    found = collector.KernelCollector(port, lambda: next(numbers))
    found.port = port  # type: ignore[attr-defined]
    yield found
    found.close()


def wait_for(holds: Callable[[], bool]) -> None:
    for _ in range(1_000_000):
        if holds():
            return
    raise AssertionError("nothing came")


def test_datagrams_over_ipv4_and_ipv6_are_kept_in_order(made, tmp_path: Path) -> None:
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.sendto(address.encode(), (address, made.port))
            wait_for(lambda: any(data == address.encode() for _, data in made.entries()))  # noqa: B023
    assert made.entries() == [(1, b"127.0.0.1"), (2, b"::1")]
    collector.save(made.entries(), tmp_path / "found.npz")
    assert collector.read(tmp_path / "found.npz") == made.entries()


def test_datagrams_beyond_the_most_are_counted(made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "MAX_DATAGRAMS", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(3):
            sender.sendto(b"x", ("127.0.0.1", made.port))
    wait_for(lambda: made.not_kept() == 2)
    assert len(made.entries()) == 1


def test_datagrams_beyond_the_most_bytes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """All after the first one that does not fit, so that what is kept is an unbroken beginning."""
    monkeypatch.setattr(collector, "MAX_BYTES", 10)
    port = free_port()
    made = collector.KernelCollector(port, lambda: 1)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for size in (6, 4, 0, 1, 0):
                sender.sendto(bytes(size), ("127.0.0.1", port))
        wait_for(lambda: made.not_kept() == 2)
        assert [len(data) for _, data in made.entries()] == [6, 4, 0]
    finally:
        made.close()


def test_nothing_is_written_and_read(tmp_path: Path) -> None:
    collector.save([], tmp_path / "found.npz")
    assert collector.read(tmp_path / "found.npz") == []


def test_a_port_that_is_taken_is_refused(made) -> None:
    with pytest.raises(OSError, match="in use"):
        collector.KernelCollector(made.port, lambda: 0)
