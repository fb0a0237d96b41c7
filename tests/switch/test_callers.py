"""Who may call a server by TCP: users of this machine, as the kernel knows them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from weft.switch.p4runtime.callers import users_of
from weft.switch.p4runtime.service import Server

NOBODY = 65534
CONNECTING = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).recv(1)"


@contextmanager
def listening() -> Iterator[tuple[socket.socket, int]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server, server.getsockname()[1]


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")])
def test_a_connection_has_a_user(family: socket.AddressFamily, host: str) -> None:
    with listening() as (server, port), socket.socket(family) as client:
        client.connect((host, port))
        accepted, (seen, from_port) = server.accept()
        with accepted:
            end = ip_address(seen), from_port
            assert users_of(end, {port}) == {os.geteuid()}
            assert users_of(end, {port + 1}) == frozenset(), "it leads to another port"
            assert users_of((end[0], port), {from_port}) == {os.geteuid()}, "the other end"
    assert users_of(end, {port}) == frozenset(), "it is over"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_connection_of_another_user_has_that_user() -> None:
    with listening() as (server, port):
        command = [getattr(sys, "_base_executable", sys.executable), "-I", "-c", CONNECTING, str(port)]
        with subprocess.Popen(command, user=NOBODY, group=NOBODY, cwd="/") as process:
            accepted, (seen, from_port) = server.accept()
            with accepted:
                assert users_of((ip_address(seen), from_port), {port}) == {NOBODY}
            assert process.wait(30) == 0


def capabilities(channel: grpc.Channel) -> None:
    p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest(), timeout=30)


def pipeline(channel: grpc.Channel) -> None:
    p4r_grpc.P4RuntimeStub(channel).GetForwardingPipelineConfig(
        p4r.GetForwardingPipelineConfigRequest(device_id=7), timeout=30
    )


def read(channel: grpc.Channel) -> None:
    list(p4r_grpc.P4RuntimeStub(channel).Read(p4r.ReadRequest(device_id=7), timeout=30))


def stream(channel: grpc.Channel) -> None:
    request = p4r.StreamMessageRequest(arbitration=p4r.MasterArbitrationUpdate(device_id=7))
    list(p4r_grpc.P4RuntimeStub(channel).StreamChannel(iter([request]), timeout=30))


@pytest.mark.parametrize("call", [capabilities, pipeline, read, stream])
def test_calls_of_other_users_are_refused(tmp_path: Path, call: Callable[[grpc.Channel], None]) -> None:
    with listening() as (_, port):
        address = f"127.0.0.1:{port}"
    stranger = os.geteuid() + 1
    own = f"unix:{tmp_path / 'own.sock'}"
    for users, is_refused in (([stranger], True), ([stranger, os.geteuid()], False), (None, False)):
        server = Server({}, own, more_addresses=[address], more_for_users=users)
        server.start()
        try:
            said = {each: _code(each, call) for each in (address, own)}
        finally:
            server.stop()
        without_device = grpc.StatusCode.OK if call is capabilities else grpc.StatusCode.NOT_FOUND
        refused = grpc.StatusCode.PERMISSION_DENIED if is_refused else without_device
        assert said == {address: refused, own: without_device}


def _code(address: str, call: Callable[[grpc.Channel], None]) -> grpc.StatusCode:
    # Connections of a server before must not be used again.
    with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        try:
            call(channel)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK
