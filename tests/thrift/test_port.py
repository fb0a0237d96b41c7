"""The port as such: clients that are wrong, slow, many, or another user's, and switches that change."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thrift.client import ApplicationError, Client, Refused
from tests.thrift.conftest import free_port
from weft.compiler import compile_file
from weft.controller.grpc_targets import GrpcTarget, open_channel
from weft.controller.pipeline import Pipeline
from weft.controller.session import SwitchSession
from weft.controller.stub import P4RuntimeStub
from weft.controller.switch_cli.opening import SIMPLE_SWITCH_ROLE
from weft.p4utils.utils.switch_client import SwitchClient
from weft.system.thrift_ports import Served
from weft.thrift import server
from weft.thrift.binary import (
    MAX_DEPTH,
    MAX_ITEMS,
    MAX_MESSAGE_BYTES,
    MAX_UNKNOWN_FIELDS,
    MessageReader,
    ProtocolError,
    reply,
)
from weft.thrift.bmv2 import ENTRY, MATCH_PARAMS, STANDARD, TableError
from weft.thrift.declaration import BINARY, DOUBLE, I16, I32, I64, TEXT, Kind, ListOf, MapOf, struct
from weft.thrift.server import ThriftServers

CALL = bytes.fromhex("80010001")
NAME = b"standard:bm_mt_get_num_entries"
HEAD = CALL + len(NAME).to_bytes(4, "big") + NAME + bytes(4)
LIST_OF_LISTS = bytes.fromhex("0f00000001")
NOBODY = 65534
ROUTER = Path(__file__).parents[1] / "p4utils" / "course" / "router.p4"


@pytest.fixture
def client(thrift_port: int) -> Iterator[Client]:
    client = Client(thrift_port)
    yield client
    client.socket.close()


def entries(port: int) -> int:
    """Return a table's number of entries, to a client that does everything right."""
    client = Client(port)
    count: int = client.call("standard:bm_mt_get_num_entries", table_name="ipv4_lpm")
    client.socket.close()
    return count


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        bytes(64),
        b"\xff" * 64,
        bytes.fromhex("80010001ffffffff"),
        bytes.fromhex("800100017fffffff"),
        bytes.fromhex("8001000100000200") + bytes(600),
        HEAD + bytes.fromhex("0b0002ffffffff"),
        HEAD + b"\x0b\x00\x02" + (MAX_MESSAGE_BYTES + 1).to_bytes(4, "big"),
        HEAD + b"\x0f\x00\x09\x03" + (MAX_ITEMS + 1).to_bytes(4, "big"),
        HEAD + bytes.fromhex("0f000903ffffffff"),
        HEAD + b"\x0f\x00\x09" + LIST_OF_LISTS * (MAX_DEPTH + 1),
        HEAD + b"\x0c\x00\x09" * (MAX_DEPTH + 1),
        HEAD + bytes.fromhex("0d00090d0d7fffffff"),
        HEAD + bytes.fromhex("63000900"),
        HEAD + bytes.fromhex("0f00090000000001"),
        HEAD + bytes.fromhex("02006301") * (MAX_UNKNOWN_FIELDS + 1),
    ],
    ids=range(16),
)
def test_what_is_no_message_ends_the_connection_and_nothing_else(client: Client, thrift_port: int, data: bytes) -> None:
    client.send(data)
    assert client.socket.recv(1) == b""
    assert entries(thrift_port) == 0


def test_a_client_that_leaves_in_the_middle_disturbs_none(client: Client, thrift_port: int) -> None:
    client.send(HEAD)
    client.socket.close()
    assert entries(thrift_port) == 0


@pytest.mark.parametrize(
    "name", [b"bm_mt_get_num_entries", b"none:bm_mt_get_num_entries", b"standard:none", b"", b"\xff:"]
)
def test_an_unknown_call_is_answered_and_the_next_one_as_well(client: Client, name: bytes) -> None:
    fields = (
        bytes.fromhex("08000100000007")
        + b"\x0d\x00\x02\x0b\x0f\x00\x00\x00\x01\x00\x00\x00\x01a\x03\x00\x00\x00\x02xy\x00"
    )
    client.send(CALL + len(name).to_bytes(4, "big") + name + bytes(4) + fields)
    with pytest.raises(ApplicationError, match=r"unknown call .*; services: standard, simple_switch"):
        client.answer(name.rpartition(b":")[2].decode(errors="replace"), None)
    assert client.call("standard:bm_mt_get_num_entries", table_name="acl") == 0


def test_a_message_that_is_no_call_is_refused_or_for_nothing(client: Client) -> None:
    client.send(bytes.fromhex("80010004") + HEAD[4:] + b"\0")  # oneway: without an answer
    client.send(bytes.fromhex("80010002") + HEAD[4:] + b"\0")
    with pytest.raises(ApplicationError, match="type 2 is not a call"):
        client.answer("bm_mt_get_num_entries", None)


def test_fields_that_no_declaration_has_are_skipped(client: Client) -> None:
    others = bytes.fromhex("0b0001 00000001 41 060064 0001".replace(" ", ""))
    table = b"\x0b\x00\x02" + len(b"acl").to_bytes(4, "big") + b"acl"
    client.send(HEAD + others + table + b"\0")
    assert client.answer("bm_mt_get_num_entries", STANDARD["bm_mt_get_num_entries"]) == 0


def test_calls_may_come_before_answers_are_taken(client: Client) -> None:
    call = HEAD + b"\x0b\x00\x02" + len(b"acl").to_bytes(4, "big") + b"acl\0"
    client.send(call * 50)
    for _ in range(50):
        assert client.answer("bm_mt_get_num_entries", STANDARD["bm_mt_get_num_entries"]) == 0


def test_a_slow_message_ends_and_an_idle_client_stays(running: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MESSAGE_TIMEOUT_S", 0.05)
    port = free_port()
    with ThriftServers({port: running}):
        idle, slow = Client(port), Client(port)
        slow.send(HEAD[:10])
        assert slow.socket.recv(1) == b"", "the timeout"
        monkeypatch.undo()
        assert idle.call("standard:bm_mt_get_num_entries", table_name="acl") == 0


def test_more_clients_than_the_limit_are_turned_away(running: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_CLIENTS", 2)
    port = free_port()
    with ThriftServers({port: running}):
        clients = [Client(port), Client(port)]
        for client in clients:
            assert client.call("standard:bm_mt_get_num_entries", table_name="acl") == 0
        third = Client(port)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            third.call("standard:bm_mt_get_num_entries", table_name="acl")
        clients[0].socket.shutdown(socket.SHUT_WR)
        assert clients[0].socket.recv(1) == b""
        assert entries(port) == 0


def test_other_users_are_turned_away(running: Served) -> None:
    port = free_port()
    refused = pytest.raises((ConnectionError, asyncio.IncompleteReadError))
    with ThriftServers({port: running}, users=[NOBODY]), refused:
        entries(port)
    with ThriftServers({port: running}, users=[os.geteuid()]):
        assert entries(port) == 0


def test_a_port_that_is_taken_is_reported_and_the_others_are_served(running: Served) -> None:
    port = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        with ThriftServers({number: running, port: running}) as servers:
            reasons = {each: error.strerror for each, error in servers.failures.items()}
            assert reasons == {number: "Address already in use"}
            assert entries(port) == 0


def test_only_loopback_listens(thrift_port: int) -> None:
    with socket.socket() as other:
        other.settimeout(5)
        with pytest.raises(ConnectionRefusedError):
            other.connect(("127.0.0.2", thrift_port))


def test_calls_on_a_switch_that_has_ended_are_refused(running: Served) -> None:
    port = free_port()
    with ThriftServers({port: Served("127.0.0.1:1", 0)}), pytest.raises(Refused) as caught:
        entries(port)
    assert caught.value.code == TableError.ERROR


def load(program: Path, served: Served) -> None:
    """Replace a switch's program over P4Runtime, as a controller does."""
    compiled = compile_file(program)

    async def over_p4runtime() -> None:
        channel = open_channel(served.address)
        pipeline = Pipeline(compiled.p4info, compiled.json_text().encode())
        session = SwitchSession("s1", served.device_id, P4RuntimeStub(channel), pipeline)
        await session.become_primary()
        await session.push_pipeline()
        await session.close()
        await channel.close()

    asyncio.run(over_p4runtime())


def test_another_program_is_found_by_the_next_client(client: Client, running: Served, thrift_port: int) -> None:
    client.call("simple_pre:bm_mc_node_create", rid=7, port_map="1")
    load(ROUTER, running)
    other = Client(thrift_port)
    assert other.call("standard:bm_mt_get_num_entries", table_name="MyIngress.routes") == 0
    assert client.call("standard:bm_mt_get_num_entries", table_name="MyIngress.routes") == 0
    assert '"l1_handles": []' in client.call("simple_pre:bm_mc_get_entries")
    other.socket.close()


def test_another_program_is_found_by_a_client_that_stays(client: Client, running: Served) -> None:
    assert client.call("standard:bm_mt_get_num_entries", table_name="acl") == 0
    load(ROUTER, running)
    assert client.call("standard:bm_mt_get_num_entries", table_name="MyIngress.routes") == 0
    with pytest.raises(Refused) as caught:
        client.call("standard:bm_mt_get_num_entries", table_name="acl")
    assert caught.value.code == TableError.INVALID_TABLE_NAME


def test_a_client_of_the_command_line_in_between_is_no_obstacle(client: Client, running: Served) -> None:
    register = {"register_array_name": "MyIngress.seen"}
    other = SwitchClient("s1", GrpcTarget(running.address, running.device_id), SIMPLE_SWITCH_ROLE)
    try:
        for value in (1, 3):
            client.call("standard:bm_register_write", **register, index=0, value=value)
            other.run("register_write", "seen", "0", str(value + 1))
            assert client.call("standard:bm_register_read", **register, idx=0) == value + 1
    finally:
        other.close()


VALUES = {
    "i16": (I16, st.integers(-(2**15), 2**15 - 1)),
    "i32": (I32, st.integers(-(2**31), 2**31 - 1)),
    "i64": (I64, st.integers(-(2**63), 2**63 - 1)),
    "double": (DOUBLE, st.floats(allow_nan=False)),
    "text": (TEXT, st.text(st.characters(exclude_categories=["Cs"]))),
    "binary": (BINARY, st.binary()),
    "list": (ListOf(ListOf(I16)), st.lists(st.lists(st.integers(0, 9)))),
    "map": (MapOf(TEXT, I32), st.dictionaries(st.text("ab"), st.integers(0, 9))),
}
EVERYTHING = struct("everything", **{name: kind for name, (kind, _) in VALUES.items()})


class Bytes:
    """A source of bytes that ends."""

    def __init__(self, data: bytes) -> None:
        self._left = io.BytesIO(data)

    async def readexactly(self, n: int, /) -> bytes:
        """See Source."""
        taken = self._left.read(n)
        if len(taken) < n:
            raise asyncio.IncompleteReadError(taken, n)
        return taken


async def in_an_answer(data: bytes) -> object:
    reader = MessageReader(Bytes(data))
    await reader.head()
    return await reader.value(struct("result", one=EVERYTHING))


UNKNOWN_FIELD = bytes.fromhex("02006301")
KNOWN_FIELD = bytes.fromhex("0600010007")


@pytest.mark.parametrize(
    ("unknown", "most"),
    [(UNKNOWN_FIELD, MAX_UNKNOWN_FIELDS), (b"\x0c\0\x63" + UNKNOWN_FIELD + b"\0", MAX_UNKNOWN_FIELDS // 2)],
    ids=["values", "structs with one"],
)
def test_a_message_has_few_unknown_fields(unknown: bytes, most: int) -> None:
    kind = struct("one", i16=I16)

    def read(count: int) -> object:
        return asyncio.run(MessageReader(Bytes(unknown * count + KNOWN_FIELD + b"\0")).value(kind))

    assert read(most) == {"i16": 7}
    with pytest.raises(ProtocolError, match="more than 64 unknown fields"):
        read(most + 1)


def test_an_unknown_struct_has_few_fields() -> None:
    with pytest.raises(ProtocolError, match="more than 64 unknown fields"):
        asyncio.run(MessageReader(Bytes(UNKNOWN_FIELD * (MAX_UNKNOWN_FIELDS + 1))).skip_struct())


def test_fields_count_as_items() -> None:
    kind = struct("one", i16=I16)
    assert asyncio.run(MessageReader(Bytes(KNOWN_FIELD * MAX_ITEMS + b"\0")).value(kind)) == {"i16": 7}
    with pytest.raises(ProtocolError, match="more than 65536 items and fields"):
        asyncio.run(MessageReader(Bytes(KNOWN_FIELD * (MAX_ITEMS + 1) + b"\0")).value(kind))


@given(st.fixed_dictionaries({name: values for name, (_, values) in VALUES.items()}))
def test_values_are_read_as_written(values: dict[str, object]) -> None:
    data = bytearray(reply("call", 7, EVERYTHING, values))
    at = data.index(b"call") + len(b"call") + 4
    assert data[at : at + 3] == b"\x0c\0\0", "the result is field 0"
    data[at + 2] = 1  # a declared struct counts from 1
    assert asyncio.run(in_an_answer(bytes(data))) == {"one": values}


@given(st.binary(), st.sampled_from([ENTRY, MATCH_PARAMS, EVERYTHING]))
def test_no_bytes_break_the_reader(data: bytes, kind: Kind) -> None:
    with contextlib.suppress(ProtocolError, asyncio.IncompleteReadError):
        asyncio.run(MessageReader(Bytes(data)).value(kind))


def test_a_number_without_a_place_in_the_answer_is_reported() -> None:
    with pytest.raises(OverflowError):
        reply("call", 7, I32, 2**31)
