"""The server's end of a channel keeps to its protocol, whatever a program sends."""

from __future__ import annotations

import errno
import os
import socket
import struct
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.verbs import ucma_bytes as ucma
from tests.verbs.cm_ends import cm_hosts
from weft.engine import CmHost

MAGIC = 0x57434D31
HELLO = struct.pack("=II", MAGIC, 0)


def new_host() -> CmHost:
    return cm_hosts()["a"]


class Channel:
    """A program's end, without the library."""

    def __init__(self, host: CmHost, hello: bytes = HELLO) -> None:
        self.host = host
        self.own, served = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.own.setblocking(False)
        self.served = served.detach()
        host.add_channel(self.served)
        self.own.send(hello)
        self.is_open = host.serve_channel(self.served)

    def send(self, message: bytes, *descriptors: int) -> bool:
        """Return whether the channel is still open after a message."""
        socket.send_fds(self.own, [message], descriptors)
        self.is_open = self.host.serve_channel(self.served)
        return self.is_open

    def ask(self, command: bytes, channel: int = 0) -> tuple[int, bytes, int, int]:
        """Return the errno, the response, and whether this channel and the migration's source have no events."""
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with own, other:
            header = struct.pack("=IIQ", len(command), 0, channel)
            assert self.send(header + command, other.fileno())
            answer = own.recv(4096)
        error, size, drained, source_drained = struct.unpack_from("=IIII", answer)
        assert len(answer) == 16 + size
        return error, answer[16:], drained, source_drained


def test_a_channel_is_greeted_and_serves() -> None:
    host = new_host()
    channel = Channel(host)
    magic, error, name = struct.unpack("=IIQ", channel.own.recv(100))
    assert (magic, error) == (MAGIC, 0)
    assert name
    assert channel.ask(ucma.create_id()) == (0, struct.pack("=I", 0), 0, 0)
    assert channel.ask(ucma.resolve_addr(0, "10.0.0.2", 1)) == (0, b"", 0, 0)
    assert channel.own.recv(100) == b"\1"
    error, event, drained, _ = channel.ask(ucma.get_event())
    assert (error, len(event), drained) == (0, ucma.EVENT_BYTES, 1)
    channel.own.close()
    assert not host.serve_channel(channel.served)
    assert (host.channels, host.ids) == (0, 0)


@pytest.mark.parametrize("hello", [b"", HELLO[:7], HELLO + b"x", struct.pack("=II", MAGIC + 1, 0), bytes(3000)])
def test_a_wrong_greeting_ends_the_channel(hello: bytes) -> None:
    host = new_host()
    assert not Channel(host, hello).is_open
    assert host.channels == 0


def test_a_migration_needs_the_channel_s_name() -> None:
    """Numbers that a program guesses name no channel."""
    host = new_host()
    first, second = Channel(host), Channel(host)
    _, _, name = struct.unpack("=IIQ", first.own.recv(100))
    first.ask(ucma.create_id())
    first.ask(ucma.resolve_addr(0, "10.0.0.2", 1))
    assert second.ask(ucma.migrate_id(0, 0), channel=name ^ 1)[0] == errno.EINVAL
    assert second.ask(ucma.migrate_id(0, 0), channel=name) == (0, bytes(4), 0, 1)
    assert second.ask(ucma.get_event())[2] == 1


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_nothing_that_a_program_sends_does_harm(seed: int) -> None:
    random = Random(seed)
    host = new_host()
    before = len(os.listdir("/proc/self/fd"))
    good, bad = Channel(host), Channel(host)
    for _ in range(10):
        body = random.randbytes(random.choice((0, 4, 15, 16, 24, 300, 2500)))
        if len(body) >= 16 and random.random() < 0.7:
            body = struct.pack("=IIQ", random.choice((len(body) - 16, 0, 5000)), random.choice((0, 1)), 0) + body[16:]
        descriptors = [bad.own.fileno()] * random.randint(0, 3)
        if not bad.send(body, *descriptors):
            bad.own.close()
            bad = Channel(host)
        assert good.ask(ucma.command("GET_EVENT", bytes(8), ucma.EVENT_BYTES))[0] == errno.EAGAIN
    for channel in (good, bad):
        channel.own.close()
        assert not host.serve_channel(channel.served)
    assert host.channels == 0
    assert len(os.listdir("/proc/self/fd")) == before
