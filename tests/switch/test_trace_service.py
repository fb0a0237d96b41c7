"""Traces of a switch in another process: what `weft trace SWITCH --when` asks, over gRPC."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from native_twin import CPU_PORT, Twin
from router_program import router_document
from test_native_router import configure, ipv4_packet

from weft.switch.daemon import trace_service
from weft.switch.daemon.trace_service import Unseen, WatchedPacket, WatchRequest


@pytest.fixture
def twin() -> Twin:
    made = Twin(router_document())
    made.both(configure)
    return made


@pytest.fixture
def address(twin: Twin, tmp_path: Path) -> Iterator[str]:
    path = f"unix:{tmp_path}/switch.sock"
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers([trace_service.handler({1: twin.native})])
    server.add_insecure_port(path)
    server.start()
    yield path
    server.stop(None)


def watch(address: str, twin: Twin, request: WatchRequest) -> tuple[list[WatchedPacket], Unseen]:
    """Send packets to ports 1 and 2 in turn until the trace is over."""
    over, tick = threading.Event(), 0.001

    def send() -> None:
        while not over.wait(tick):
            for port in (1, 2):
                twin.native.process(port, ipv4_packet(0x0C000001, 0x0A010203))

    sender = threading.Thread(target=send)
    unseen = Unseen()
    sender.start()
    try:
        return list(trace_service.watch(address, request, unseen)), unseen
    finally:
        over.set()
        sender.join()


def test_packets_that_fulfil_a_condition_are_sent(twin: Twin, address: str) -> None:
    packets, _ = watch(address, twin, WatchRequest(device_id=1, packets=3, when="port == 2 and not drop"))
    assert [packet.events[0]["port"] for packet in packets] == [2, 2, 2]


def test_packets_that_do_not_are_counted(twin: Twin, address: str) -> None:
    packets, unseen = watch(address, twin, WatchRequest(device_id=1, timeout_s=0.2, when=f"port == {CPU_PORT}"))
    assert packets == []
    assert unseen.others > 0


def test_a_wrong_condition_is_refused_with_its_place(twin: Twin, address: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        watch(address, twin, WatchRequest(device_id=1, when="prot == 2"))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT  # type: ignore[attr-defined]
    assert caught.value.details().startswith("--when: column 1: unknown name 'prot'")  # type: ignore[attr-defined]
