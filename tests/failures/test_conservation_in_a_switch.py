"""Packets are conserved, to the byte, whatever a program does with them and wherever the run is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.compiler import compile_file
from weft.engine import Collector, Engine, Link, TransmitPort
from weft.switch.bmv2json import load_program
from weft.switch.bmv2json.model import Program
from weft.switch.native import NativeSwitch

NS = 1000
HELD = ("queued", "in_flight", "in_switches")
US = 1000 * NS
(FORWARD, DROP, MULTICAST, CLONE, RESUBMIT, TRUNCATE, GROW, NOWHERE, TO_CONTROLLER, NO_GROUP, DROP_LATE, CLONE_LATE,
 RECIRCULATE, SHRINK, NO_SESSION, NO_REPLICAS, FOR_EVER, FAILED_ASSERTION) = range(18)  # fmt: skip
SOURCE = """
#include <core.p4>
#include <v1model.p4>
header order_t { bit<8> what; bit<8> passes; bit<32> filler; }
header extra_t { bit<64> bits; }
struct headers_t { extra_t extra; order_t order; }
struct metadata_t {}
parser P(packet_in packet, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.order); transition accept; }
}
control C(inout headers_t h, inout metadata_t m) { apply {} }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        if (h.order.what == 1) { mark_to_drop(s); }
        if (h.order.what == 2) { s.mcast_grp = 1; }
        if (h.order.what == 3) { clone_preserving_field_list(CloneType.I2E, 1, 0); }
        if (h.order.what == 4 && s.instance_type == 0) { resubmit_preserving_field_list(0); }
        if (h.order.what == 6) { h.extra.setValid(); h.extra.bits = 1; }
        if (h.order.what == 7) { s.egress_spec = 77; }
        if (h.order.what == 8) { s.egress_spec = 510; }
        if (h.order.what == 9) { s.mcast_grp = 5; }
        if (h.order.what == 14) { clone_preserving_field_list(CloneType.I2E, 9, 0); }
        if (h.order.what == 15) { clone_preserving_field_list(CloneType.I2E, 2, 0); }
        if (h.order.what == 17) { assert(h.order.passes == 99); }
    }
}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply {
        if (h.order.what == 5) { truncate(20); }
        if (h.order.what == 10) { mark_to_drop(s); }
        if (h.order.what == 11 && s.instance_type == 0) { clone_preserving_field_list(CloneType.E2E, 1, 0); }
        if (h.order.what == 12 && h.order.passes == 0) { h.order.passes = 1; recirculate_preserving_field_list(0); }
        if (h.order.what == 13) { h.order.setInvalid(); }
        if (h.order.what == 16) { recirculate_preserving_field_list(0); }
    }
}
control D(packet_out packet, in headers_t h) { apply { packet.emit(h.extra); packet.emit(h.order); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    source: Path = tmp_path_factory.mktemp("conservation") / "orders.p4"
    source.write_text(SOURCE)
    return load_program(compile_file(source).json_text().encode())


class Bench:
    """A switch with two slow ports, whose links lose and double packets, in front of collectors."""

    def __init__(self, program: Program) -> None:
        self.engine = Engine(seed=3)
        self.switch = NativeSwitch(self.engine, "s")
        self.ports = []
        self.links = []
        for number in (1, 2):
            link = Link(self.engine, name=str(number), delay_ps=700 * NS, loss=0.1, duplicate=0.1)
            link.connect(Collector(self.engine))
            port = TransmitPort(self.engine, link, rate_bps=10**9, queue_capacity_bytes=1500)
            self.switch.native.attach_port(number, port)
            self.ports.append(port)
            self.links.append(link)
        self.switch.load(program)
        self.switch.native.multicast_group_set(1, [(1, 1), (2, 2), (2, 3)])
        self.switch.native.clone_session_set(1, [(2, 0)], 0, 24)
        self.switch.native.clone_session_set(2, [], 0, 0)

    def balance(self) -> dict[str, Any]:
        conservation = self.engine.packet_conservation()
        require_balanced(conservation)
        held = sum(conservation[where]["packets"] for where in HELD)
        assert self.engine.live_packets == held + conservation["left"]["collected"]["packets"]
        return dict(conservation)


def require_balanced(conservation: Any) -> None:
    """Both sides, added up here and not by the engine."""
    for unit in ("packets", "bytes"):
        entered = sum(each[unit] for each in conservation["entered"].values())
        ended = sum(each[unit] for part in ("left", "dropped") for each in conservation[part].values())
        held = sum(conservation[where][unit] for where in HELD)
        resized = conservation["resized_bytes"] if unit == "bytes" else 0
        assert entered + resized == ended + held, unit
        assert conservation["missing"][unit] == 0


ORDERS = st.lists(st.tuples(st.integers(0, 17), st.integers(30, 400), st.integers(0, 20 * US)), min_size=1, max_size=40)


@settings(max_examples=30, deadline=None)
@given(ORDERS, st.lists(st.integers(0, 40 * US), max_size=8), st.lists(st.integers(0, 20 * US), max_size=2))
def test_whatever_a_program_does(
    program: Program, orders: list[tuple[int, int, int]], stops_ps: list[int], cuts_ps: list[int]
) -> None:
    bench = Bench(program)
    # Collectors keep what they receive, so every live packet is held by a part that is counted.
    for order, size, time_ps in orders:
        frame = bytes([order]) + bytes(size - 1)
        bench.engine.inject(bench.switch.native, 0, frame, time_ps)
    for time_ps in cuts_ps:
        bench.engine.schedule_at(time_ps, lambda: (bench.ports[1].set_up(False), bench.links[1].cut()))
        bench.engine.schedule_at(time_ps + 3 * US, lambda: bench.ports[1].set_up(True))
    pending = len(orders)  # live from the start, but not anywhere yet
    for time_ps in sorted(stops_ps):
        bench.engine.run_until(time_ps)
        conservation = bench.engine.packet_conservation()
        require_balanced(conservation)
        pending = sum(1 for _, _, at in orders if at > time_ps)
        held = sum(conservation[where]["packets"] for where in HELD)
        assert bench.engine.live_packets == pending + held + conservation["left"]["collected"]["packets"]
    bench.engine.run()
    conservation = bench.balance()
    assert conservation["entered"]["injected"]["packets"] == len(orders)
    assert conservation["queued"] == conservation["in_flight"] == {"packets": 0, "bytes": 0}


@pytest.mark.parametrize(
    ("order", "entered", "dropped", "resized_bytes"),
    [
        (FORWARD, {}, {}, 0),
        (DROP, {}, {"switch program_ingress": 100}, 0),
        (MULTICAST, {"multicast": 200}, {}, 0),
        (CLONE, {"cloned": 100}, {}, -76),
        (RESUBMIT, {}, {}, 0),
        (TRUNCATE, {}, {}, -80),
        (GROW, {}, {}, 8),
        (NOWHERE, {}, {"switch unknown_port": 100}, 0),
        (NO_GROUP, {}, {"switch empty_multicast_group": 100}, 0),
        (DROP_LATE, {}, {"switch program_egress": 100}, 0),
        (CLONE_LATE, {"cloned": 100}, {}, -76),
        (RECIRCULATE, {}, {}, 0),
        (SHRINK, {}, {}, -6),
        (NO_SESSION, {}, {}, 0),
        (NO_REPLICAS, {"cloned": 100}, {"switch empty_multicast_group": 100}, 0),
        (FOR_EVER, {}, {"switch pass_limit": 100}, 0),
        (FAILED_ASSERTION, {}, {"switch assertion": 100}, 0),
    ],
)
def test_every_path_has_its_own_entry(
    program: Program, order: int, entered: dict[str, int], dropped: dict[str, int], resized_bytes: int
) -> None:
    bench = Bench(program)
    for link in bench.links:
        link.set_faults()
    bench.engine.inject(bench.switch.native, 0, bytes([order]) + bytes(99))
    bench.engine.run()
    conservation = bench.balance()
    came = {name: each["bytes"] for name, each in conservation["entered"].items() if each["packets"]}
    assert came == {"injected": 100} | entered
    assert {name: each["bytes"] for name, each in conservation["dropped"].items()} == dropped
    assert conservation["resized_bytes"] == resized_bytes


def test_packet_outs_and_packet_ins(program: Program) -> None:
    bench = Bench(program)
    bench.switch.native.packet_out(bytes([TO_CONTROLLER]) + bytes(49))
    conservation = bench.balance()
    assert conservation["entered"]["from_controller"] == {"packets": 1, "bytes": 50}
    assert conservation["left"]["to_controller"] == {"packets": 1, "bytes": 50}


def test_a_switch_without_a_program_and_one_whose_program_is_replaced(program: Program) -> None:
    bench = Bench(program)
    empty = NativeSwitch(bench.engine, "empty")
    bench.engine.inject(empty.native, 1, bytes(70))
    for _ in range(3):
        bench.engine.inject(bench.switch.native, 0, bytes(300))
    bench.engine.run_until(0)
    assert bench.balance()["queued"]["packets"] == 2  # the third is being sent
    bench.switch.load(program)
    bench.engine.run()
    dropped = bench.balance()["dropped"]
    assert dropped["switch no_pipeline"] == {"packets": 1, "bytes": 70}
    assert dropped["switch pipeline_replaced"] == {"packets": 2, "bytes": 600}


def test_the_real_clock_and_one_partition_have_no_packet_conservation() -> None:
    from weft.engine import Partitions

    with pytest.raises(RuntimeError, match="sockets"):
        Engine.real_clock().packet_conservation()
    with pytest.raises(RuntimeError, match="ask for all"):
        Partitions().add().packet_conservation()
