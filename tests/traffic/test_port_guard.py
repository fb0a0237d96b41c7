"""The guard holds the port, in both IP versions, and nothing that arrives is kept."""

import socket
import struct

import pytest

from weft.traffic.port_guard import PortGuard

PORT = 47910  # not RoCEv2's, which an endpoint on this machine may hold


def send(family: int, address: str) -> socket.socket:
    sender = socket.socket(family, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_IP if family == socket.AF_INET else socket.IPPROTO_IPV6, 11, 1)  # report errors
    sender.settimeout(1)
    sender.connect((address, PORT))
    sender.send(struct.pack("!I", 1))
    return sender


def loopbacks() -> list[tuple[int, str]]:
    found = [(socket.AF_INET, "127.0.0.1")]
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("::1", 0))
            found.append((socket.AF_INET6, "::1"))
        except OSError:
            pass
    return found


@pytest.mark.parametrize(("family", "address"), loopbacks())
def test_datagrams_get_no_port_unreachable_and_are_not_queued(family, address):
    with send(family, address) as sender, pytest.raises(ConnectionRefusedError):
        sender.recv(1)
    with PortGuard(PORT) as guard, send(family, address) as sender:
        sender.send(b"again")  # would raise ConnectionRefusedError had the first been refused
        for held in guard._sockets:
            held.setblocking(False)
            with pytest.raises(BlockingIOError):
                held.recv(1)


def test_a_port_that_is_taken_is_refused_and_nothing_stays_open():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("", PORT))
        with pytest.raises(OSError, match="in use"):
            PortGuard(PORT)
    with PortGuard(PORT):
        pass
