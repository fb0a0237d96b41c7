"""Clients of a NIC that break its protocol: they lose their connection or get an errno, and others' programs go on."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import random
import socket
import struct
from collections.abc import Iterator

import pytest

from tests.end_to_end.test_verbs_programs import ended
from verbs_programs import needs_device
from weft.clocks.real import lab_state
from weft.run.fabric import Fabric
from weft.traffic.verbs.protocol import KINDS, MAGIC, MAX_MESSAGE_BYTES, VERSION
from weft.traffic.verbs.states import Attribute, Kind, State

pytestmark = needs_device
_NUMBERS = {kind.name: number for number, kind in enumerate(KINDS)}
_TO_INIT = Attribute.STATE | Attribute.PKEY_INDEX | Attribute.PORT | Attribute.ACCESS_FLAGS
_TO_RTR = Attribute.STATE | Attribute.AV | Attribute.PATH_MTU | Attribute.DEST_QPN | Attribute.RQ_PSN
_TO_RTR |= Attribute.MAX_DEST_RD_ATOMIC | Attribute.MIN_RNR_TIMER
_TO_RTS = Attribute.STATE | Attribute.SQ_PSN | Attribute.TIMEOUT | Attribute.RETRY_CNT | Attribute.RNR_RETRY
_TO_RTS |= Attribute.MAX_QP_RD_ATOMIC


class Client:
    """Speaks the protocol without a provider."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection.settimeout(10)
        state = lab_state.load()
        assert state is not None
        self.connection.connect(state.verbs_sockets["h0"])
        self.descriptors: list[int] = []

    def ask(self, name: str, **fields: int) -> dict[str, int]:
        """Ask for something; returns the answer's fields. Raises OSError with the errno of a refusal."""
        kind = KINDS[_NUMBERS[name]]
        body = struct.pack(f"={len(kind.question)}Q", *(fields.get(field, 0) for field in kind.question))
        self.connection.send(struct.pack("=II", _NUMBERS[name], 8 + len(body)) + body)
        message, descriptors, *_ = socket.recv_fds(self.connection, MAX_MESSAGE_BYTES, 8)
        self.descriptors = descriptors
        error, _ = struct.unpack_from("=iI", message)
        if error:
            raise OSError(error, os.strerror(error))
        return dict(zip(kind.answer, struct.unpack_from(f"={len(kind.answer)}Q", message, 8), strict=True))

    def open(self) -> dict[str, int]:
        return self.ask("open", magic=MAGIC, version=VERSION)


@pytest.fixture
def client(small_fabric: Fabric) -> Iterator[Client]:
    made = Client(small_fabric)
    yield made
    made.connection.close()
    # Whatever it has done, the next one is served, and programs work.
    after = Client(small_fabric)
    assert after.open()["port_count"] >= 1
    after.connection.close()
    client_code, server_code, printed = ended("rc", small_fabric, attempts=10)
    assert (client_code, server_code) == (0, 0), printed


def test_messages_that_are_no_requests_end_the_connection(client: Client) -> None:
    for message in (b"", b"x", struct.pack("=II", 10_000, 8), struct.pack("=II", 0, 9), bytes(600)):
        other = Client(client.fabric)
        other.connection.send(message or b"\0")
        assert other.connection.recv(100) in (b"", struct.pack("=iI", errno.EIO, 0))
        other.connection.close()


def test_values_that_cannot_be_get_an_errno(client: Client) -> None:
    client.open()
    chosen = random.Random(7)
    values = [0, 1, 2, 3, 7, 31, 1 << 16, (1 << 32) - 1, 1 << 32, (1 << 63) + 1, (1 << 64) - 1]
    refusals = []
    for _ in range(600):
        kind = chosen.choice([kind for kind in KINDS if kind.name != "open"])
        try:
            client.ask(kind.name, **{field: chosen.choice(values) for field in kind.question})
        except OSError as error:
            refusals.append((error.errno, kind.name))
        finally:
            for descriptor in client.descriptors:
                os.close(descriptor)
            client.descriptors = []
    assert len(refusals) > 300
    assert [name for error, name in refusals if error in (None, errno.EIO)] == []


def _queue_pair(client: Client) -> tuple[dict[str, int], mmap.mmap, mmap.mmap, int]:
    """Return a queue pair that sends to itself, its ring, the doorbell page, and the doorbell."""
    client.open()
    page, doorbell, _ = client.descriptors
    domain = client.ask("create_domain")["domain"]
    queue = client.ask("create_completion_queue", entries=16)["queue"]
    made = client.ask(
        "create_queue_pair",
        domain=domain,
        type=Kind.RC,
        send_queue=queue,
        receive_queue=queue,
        max_sends=16,
        max_receives=16,
        max_send_pieces=4,
        max_receive_pieces=4,
        max_inline_bytes=64,
    )
    ring = mmap.mmap(client.descriptors[0], 0)
    nic = client.fabric.lab.fabric.hosts[0].nics[0]
    pair = {"queue_pair": made["queue_pair"]}
    client.ask("modify_queue_pair", mask=_TO_INIT, state=State.INIT, port=1, **pair)
    gid_low = 0xFFFF << 32 | int(nic.ipv4.ip)
    client.ask(
        "modify_queue_pair",
        mask=_TO_RTR,
        state=State.RTR,
        path_mtu=3,
        remote_number=made["number"],
        max_reads_answered=1,
        is_global=1,
        gid_low=gid_low,
        address_port=1,
        **pair,
    )
    client.ask("modify_queue_pair", mask=_TO_RTS, state=State.RTS, timeout=14, max_reads_sent=1, **pair)
    return made, ring, mmap.mmap(page, 0), doorbell


@pytest.mark.parametrize("seed", range(4))
def test_rings_full_of_anything(client: Client, seed: int) -> None:
    made, ring, page, doorbell = _queue_pair(client)
    chosen = random.Random(seed)
    sends, entry_bytes = made["actual_sends"], made["send_entry_bytes"]
    for _ in range(50):
        ring[128:] = chosen.randbytes(len(ring) - 128)
        for entry in range(sends):
            # An opcode, flags and counts that are near to what is valid.
            start = 128 + entry * entry_bytes
            ring[start + 8 : start + 16] = struct.pack("=II", chosen.randrange(9), chosen.randrange(16))
            ring[start + 48 : start + 56] = struct.pack("=II", chosen.randrange(8), chosen.randrange(200))
        struct.pack_into("=I", ring, 0, chosen.choice([1, sends, 1 << 20, (1 << 32) - 1]))
        struct.pack_into("=I", ring, 128 + sends * entry_bytes, chosen.choice([1, 1 << 20]))
        page[64:] = chosen.randbytes(len(page) - 64)
        os.write(doorbell, struct.pack("=Q", 1))
        # Answered by the same thread's lock: the NIC is still there.
        client.ask("query_queue_pair", queue_pair=made["queue_pair"])


def test_a_doorbell_that_blocks_its_reader(client: Client) -> None:
    made, _, _, doorbell = _queue_pair(client)
    fcntl.fcntl(doorbell, fcntl.F_SETFL, 0)
    os.write(doorbell, struct.pack("=Q", 1))
    assert client.ask("query_queue_pair", queue_pair=made["queue_pair"])["state"] in (State.RTS, State.ERR)


def test_memory_that_is_not_there_and_what_others_have_made(client: Client) -> None:
    client.open()
    domain = client.ask("create_domain")["domain"]
    with pytest.raises(OSError, match=os.strerror(errno.EFAULT)):
        client.ask("register_memory", domain=domain, address=1 << 20, length_bytes=4096, access=1)
    buffer = ctypes.create_string_buffer(64)
    region = {"domain": domain, "address": ctypes.addressof(buffer), "length_bytes": 64, "access": 1}
    key = client.ask("register_memory", **region)["key"]
    other = Client(client.fabric)
    other.open()
    for name, of in (("deregister_memory", {"key": key}), ("destroy_domain", {"domain": domain})):
        with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
            other.ask(name, **of)
    with pytest.raises(OSError, match=os.strerror(errno.EBUSY)):
        client.ask("destroy_domain", domain=domain)
    other.connection.close()
    client.ask("deregister_memory", key=key)
    client.ask("destroy_domain", domain=domain)
