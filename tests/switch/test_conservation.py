"""No frame vanishes: what was sent is what arrived and what the switch counts as dropped, exactly."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.namespaces import inside
from weft.compiler import compile_file
from weft.switch.bmv2json import load_program
from weft.switch.daemon.config import DaemonConfig, PortConfig, SwitchConfig
from weft.switch.daemon.wiring import Wiring

pytestmark = [
    pytest.mark.mininet,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces"),
]

PATIENCE_MS = 10_000
MS = 10**9
BURST, OTHERS = 4000, 400
SLOW_BPS = 100_000_000
TO_SINK, TO_NOWHERE, DROPPED_IN_INGRESS, DROPPED_IN_EGRESS = range(4)
SOURCE = """
#include <core.p4>
#include <v1model.p4>
header order_t { bit<8> what; }
struct headers_t { order_t order; }
struct metadata_t {}
parser P(packet_in packet, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.order); transition accept; }
}
control C(inout headers_t h, inout metadata_t m) { apply {} }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 2;
        if (h.order.what == 1) { s.egress_spec = 77; }
        if (h.order.what == 2) { mark_to_drop(s); }
    }
}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply { if (h.order.what == 3) { mark_to_drop(s); } }
}
control D(packet_out packet, in headers_t h) { apply { packet.emit(h.order); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


def ip(namespace: str, *arguments: str) -> str:
    command = ["ip", "-j", "-s", "-n", namespace, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def namespace() -> Iterator[str]:
    """source - in, out - sink."""
    name = f"conservation{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True, capture_output=True)
    try:
        for near, far in (("in", "source"), ("out", "sink")):
            ip(name, "link", "add", near, "type", "veth", "peer", "name", far)
            for interface in (near, far):
                ip(name, "link", "set", interface, "addrgenmode", "none", "up")
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True, capture_output=True)


@pytest.fixture
def wiring(namespace: str, tmp_path: Path) -> Iterator[Wiring]:
    """A switch between the wires that has not begun to serve; its port to the sink is slow."""
    ports = (
        PortConfig(port=1, interface="in"),
        PortConfig(port=2, interface="out", rate_bps=SLOW_BPS, queue_capacity_bytes=16 * 1024),
    )
    with inside(namespace):
        made = Wiring(DaemonConfig(switches=(SwitchConfig(device_id=1, name="s", ports=ports),)))
    source = tmp_path / "orders.p4"
    source.write_text(SOURCE)
    made.switches[1].switch.load(load_program(compile_file(source).json_text().encode()))
    yield made
    made.close()


def drops(wiring: Wiring) -> dict[str, int]:
    """Every count of dropped frames, the sockets' as `in:…` and `out:…`."""
    stats: dict[str, Any] = wiring.stats()["switches"]["s"]
    found: dict[str, int] = dict(stats["drops"])
    for name, number in (("in", "1"), ("out", "2")):
        counters = stats["ports"][number]["socket"]
        kept = ("received_", "transmitted_", "unfinished_checksum_")
        found |= {f"{name}:{key}": count for key, count in counters.items() if not key.startswith(kept)}
    return found


def arrived(namespace: str) -> int:
    (link,) = json.loads(ip(namespace, "link", "show", "sink"))
    count: int = link["stats64"]["rx"]["packets"]
    return count


def serve_until(wiring: Wiring, condition: Callable[[], bool]) -> None:
    for _ in range(PATIENCE_MS):
        if condition():
            return
        wiring.engine.run_for(MS)


def test_sent_is_received_plus_counted_drops(namespace: str, wiring: Wiring) -> None:
    def accounted_for() -> int:
        return arrived(namespace) + sum(drops(wiring).values())

    with inside(namespace), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind(("source", 0))
        # Nobody takes frames out of the receive ring yet, so what does not fit in is lost there.
        for _ in range(BURST):
            sender.send(bytes([TO_SINK]) + bytes(99))
    serve_until(wiring, lambda: accounted_for() >= BURST)
    assert accounted_for() == BURST, drops(wiring)
    with inside(namespace), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind(("source", 0))
        for i in range(OTHERS):
            sender.send(bytes([(TO_SINK, TO_NOWHERE, DROPPED_IN_INGRESS, DROPPED_IN_EGRESS)[i % 4]]) + bytes(99))
    serve_until(wiring, lambda: accounted_for() >= BURST + OTHERS)
    counted = drops(wiring)
    assert accounted_for() == BURST + OTHERS, counted
    assert counted["in:ring_dropped_packets"] > 0
    assert counted["tail_drop"] > 0
    assert counted["unknown_port"] == counted["program_ingress"] == OTHERS // 4
    assert 0 < counted["program_egress"] <= OTHERS // 4  # after the queue, where some have been lost already
    assert arrived(namespace) > 0
