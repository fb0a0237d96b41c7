"""Packets change their class at every switch: the account of a link is that of the class they were sent in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.compiler import compile_file
from weft.engine import Collector, Engine, PortMac, TransmitPort, pfc_headroom_bytes
from weft.switch.backend import Replica
from weft.switch.bmv2json import Program, load_program
from weft.switch.daemon.config import BufferConfig, CreditsConfig, PfcConfig, PortConfig, SwitchConfig
from weft.switch.daemon.wired_switches import WiredSwitches

FlowControl = Literal["pfc", "credits"]
GBPS = 10**9
RATE_BPS = 100 * GBPS
DELAY_PS = 300_000
LARGEST_BYTES = 1000
BUFFER_BYTES = 3 * 1024
SWITCHES = 3
BACK, ON, ASIDE = 1, 2, 3
GROUP = 7
MAC = "02:00:00:00:00:01"
CLASSES = tuple(range(8))
UNICAST, MULTICAST, DROP, AGAIN = range(4)


@dataclass(frozen=True)
class Order:
    """What one switch does with a packet."""

    what: int
    priority_class: int
    port: int = ON

    @property
    def code(self) -> int:
        return self.what << 6 | self.priority_class << 3 | (GROUP if self.what == MULTICAST else self.port)


@dataclass(frozen=True)
class Sent:
    """A packet: when after the one before, in which class, how large, and its way."""

    gap_ps: int
    priority_class: int
    size_bytes: int
    orders: tuple[Order, ...]

    @property
    def frame(self) -> bytes:
        path = bytes(order.code for order in self.orders)
        # Zeros behind: the last switches have it go on in class 0, out of port 0, where there is none.
        return (bytes([len(path)]) + path.ljust(8, b"\0")).ljust(self.size_bytes, b"\0")


def far_ends(orders: tuple[Order, ...], switch: int = 0) -> dict[tuple[int, int], int]:
    """How many copies come out of which port of which switch, by the meaning of the orders."""
    order, rest = orders[0], orders[1:]
    if order.what == DROP:
        return {}
    if order.what == AGAIN:
        return far_ends(rest, switch)
    found: dict[tuple[int, int], int] = {}
    for port in (ON, ASIDE) if order.what == MULTICAST else (order.port,):
        ends = {(switch, port): 1}
        if port == ON and switch + 1 < SWITCHES:
            ends = far_ends(rest, switch + 1)
        for end, count in ends.items():
            found[end] = found.get(end, 0) + count
    return found


@cache
def program() -> Program:
    return load_program(compile_file(Path(__file__).parent / "programs" / "source_routed.p4").json_text())


class Chain:
    """Switches in a row, with a sender in front, a receiver behind, and a slow receiver beside each."""

    def __init__(self, flow_control: FlowControl, aside_bps: int, latency_ps: int = 0) -> None:
        self.engine = Engine(seed=1)
        self.collectors: dict[tuple[int, int], Collector] = {}
        self.macs: list[PortMac] = []
        configs = [self._config(number, flow_control, aside_bps) for number in range(SWITCHES)]
        between = [(number, ON, number + 1, BACK) for number in range(SWITCHES - 1)]
        self.wired = WiredSwitches(self.engine, configs, between)
        for number, wired in self.wired.switches.items():
            wired.switch.load(program())
            wired.switch.multicast_group_set(GROUP, [Replica(ON, 1), Replica(ASIDE, 2)])
            for port in wired.ports.values():
                assert port.mac is not None
                port.mac.set_switching(latency_ps=latency_ps)
                self.macs.append(port.mac)
                if port.config.host_uplink:
                    self._add_host(number, port.config.port, flow_control)

    def _config(self, number: int, flow_control: FlowControl, aside_bps: int) -> SwitchConfig:
        def port(which: int) -> PortConfig:
            rate_bps = aside_bps if which == ASIDE else RATE_BPS
            return PortConfig(
                port=which,
                rate_bps=rate_bps,
                delay_ps=DELAY_PS,
                host_uplink=which == ASIDE or (number, which) in {(0, BACK), (SWITCHES - 1, ON)},
                pfc=self._pfc(rate_bps) if flow_control == "pfc" else None,
                credits=CREDITS if flow_control == "credits" else None,
            )

        return SwitchConfig(
            device_id=number,
            name=f"s{number}",
            ports=tuple(port(which) for which in (BACK, ON, ASIDE)),
            buffer=BufferConfig(capacity_bytes=2_000_000),
        )

    @staticmethod
    def _pfc(rate_bps: int) -> PfcConfig:
        headroom = pfc_headroom_bytes(
            rate_bps=rate_bps, delay_ps=DELAY_PS, frame_bytes=LARGEST_BYTES, response_ps=1_000_000
        )
        return PfcConfig(classes=CLASSES, source_mac=MAC, xoff_bytes=BUFFER_BYTES, headroom_bytes=headroom)

    def _add_host(self, number: int, which: int, flow_control: FlowControl) -> None:
        port = self.wired.switches[number].ports[which]
        assert port.uplink_link is not None
        transmit = TransmitPort(
            self.engine, port.uplink_link, rate_bps=port.config.rate_bps, queue_capacity_bytes=1 << 30
        )
        collector = self.collectors[number, which] = Collector(self.engine)
        mac = PortMac(self.engine, transmit, collector)
        if flow_control == "pfc":
            mac.enable_pfc(source_mac=MAC)
        else:
            mac.enable_credits(**CREDITS.model_dump())
        port.link.connect(mac)
        self.macs.append(mac)
        if which == BACK:
            self.sender = transmit

    def drops(self) -> int:
        """Packets lost for want of memory."""
        stats = [port.transmit.stats() for wired in self.wired.switches.values() for port in wired.ports.values()]
        return sum(each["headroom_dropped"]["packets"] + each["tail_dropped"]["packets"] for each in stats)

    def held(self) -> list[dict[str, int]]:
        """What every lane of every port holds of a switch's memory."""
        return [
            {"held": lane["held_bytes"], "own": lane["own_used_bytes"]}
            for wired in self.wired.switches.values()
            if wired.buffer is not None
            for port in wired.buffer.stats()["ports"].values()
            for lane in port["ingress"]
        ]


CREDITS = CreditsConfig(classes=CLASSES, source_mac=MAC, buffer_bytes=BUFFER_BYTES, largest_frame_bytes=LARGEST_BYTES)
lanes = st.sampled_from(CLASSES)
order = st.one_of(
    st.builds(Order, st.just(UNICAST), lanes, st.sampled_from([ON, ON, ASIDE])),
    st.builds(Order, st.sampled_from([MULTICAST, DROP, AGAIN]), lanes),
)


def routed(orders: list[Order]) -> tuple[Order, ...]:
    """Orders that end: only the last of them may be short of what follows."""
    return (*orders, *(Order(UNICAST, 0) for _ in range(8 - len(orders))))


sent_packets = st.lists(
    st.builds(
        Sent,
        st.sampled_from([0, 0, 10_000, 500_000]),
        lanes,
        st.integers(60, LARGEST_BYTES),
        st.lists(order, min_size=1, max_size=4).map(routed),
    ),
    min_size=1,
    max_size=60,
)


@pytest.mark.parametrize("flow_control", ["pfc", "credits"])
@settings(deadline=None, max_examples=40)
@given(
    packets=sent_packets,
    aside_bps=st.sampled_from([GBPS, 10 * GBPS, RATE_BPS]),
    latency_ps=st.sampled_from([0, 400_000]),
)
def test_nothing_is_lost_and_all_memory_is_given_back(
    flow_control: FlowControl, packets: list[Sent], aside_bps: int, latency_ps: int
) -> None:
    chain = Chain(flow_control, aside_bps, latency_ps)
    expected: dict[tuple[int, int], int] = {}
    for packet in packets:
        chain.engine.run_for(packet.gap_ps)
        chain.sender.enqueue(packet.frame, packet.priority_class)
        for end, count in far_ends(packet.orders).items():
            expected[end] = expected.get(end, 0) + count
        if flow_control == "credits":
            assert all(lane["own"] <= BUFFER_BYTES for lane in chain.held())
    chain.engine.run()
    arrived = {end: each.received_packets for end, each in chain.collectors.items() if each.received_packets}
    assert arrived == expected
    assert chain.drops() == 0
    assert all(lane == {"held": 0, "own": 0} for lane in chain.held())
    for mac in chain.macs:
        for lane in (mac.stats()["credits"] or {"lanes": []})["lanes"]:
            assert lane["available_blocks"] * 64 >= LARGEST_BYTES
            assert not lane["is_stalled"]
        assert not any(each["is_paused"] for each in mac.stats()["pfc"] or ())
    assert chain.engine.packet_conservation()["missing"] == {"packets": 0, "bytes": 0}


@pytest.mark.parametrize("flow_control", ["pfc", "credits"])
def test_what_is_held_counts_for_the_lane_it_came_in(flow_control: FlowControl) -> None:
    """The slow port holds packets in class 5; their senders sent them in class 2, which is what must wait."""
    chain = Chain(flow_control, GBPS)
    for _ in range(60):
        chain.sender.enqueue(Sent(0, 2, LARGEST_BYTES, routed([Order(UNICAST, 5, ASIDE)])).frame, 2)
    chain.engine.run_for(5_000_000)
    buffer = chain.wired.switches[0].buffer
    assert buffer is not None
    ingress = buffer.stats()["ports"][BACK]["ingress"]
    assert ingress[2]["held_bytes"] > 0
    assert ingress[5]["held_bytes"] == 0
    waiting = chain.wired.switches[0].ports[ASIDE].transmit.waiting_by_arrival()
    assert [(each["priority_class"], each["ingress_port"], each["lane"]) for each in waiting] == [(5, BACK, 2)]
    # Another lane is free, though the same port is full of class 2.
    chain.sender.enqueue(Sent(0, 5, LARGEST_BYTES, routed([Order(UNICAST, 2, ON)] * 3)).frame, 5)
    chain.engine.run_for(3_000_000)
    assert chain.collectors[SWITCHES - 1, ON].received_packets == 1
    chain.engine.run()
    assert chain.collectors[0, ASIDE].received_packets == 60


@pytest.mark.parametrize("flow_control", ["pfc", "credits"])
def test_copies_hold_the_memory_of_one_packet(flow_control: FlowControl) -> None:
    """It is taken once, and given back when the slowest copy has left."""
    chain = Chain(flow_control, GBPS)
    chain.sender.enqueue(Sent(0, 4, 640, routed([Order(UNICAST, 0, ASIDE)])).frame, 4)
    chain.sender.enqueue(Sent(0, 3, 640, routed([Order(MULTICAST, 1), *[Order(UNICAST, 1)] * 3])).frame, 3)
    chain.engine.run_for(1_000_000)
    buffer = chain.wired.switches[0].buffer
    assert buffer is not None
    stats = buffer.stats()
    assert stats["used_bytes"] == stats["ports"][BACK]["ingress"][3]["held_bytes"] == 640
    assert chain.wired.switches[0].ports[ASIDE].transmit.stats()["queue_depth_packets"] == 1
    chain.engine.run()
    assert buffer.stats()["used_bytes"] == 0
    assert buffer.stats()["max_used_bytes"] == 640
    assert chain.collectors[0, ASIDE].received_packets == 2
    assert chain.collectors[SWITCHES - 1, ON].received_packets == 1


@pytest.mark.parametrize("flow_control", ["pfc", "credits"])
def test_a_lost_carrier_holds_nothing_back(flow_control: FlowControl) -> None:
    """The far end gives no more credits and ends no pause, so what waits for it is dropped."""
    chain = Chain(flow_control, GBPS)
    away, on = routed([Order(UNICAST, 3, ASIDE)]), routed([Order(UNICAST, 3, ON)] * 3)
    aside = chain.wired.switches[0].ports[ASIDE]
    aside.link.connect(Collector(chain.engine))
    for _ in range(10):
        chain.sender.enqueue(Sent(0, 3, 500, away).frame, 3)
    chain.engine.run_for(20_000_000)
    assert aside.transmit.queue_depth_bytes > 0
    chain.wired.switches[0].set_port_up(ASIDE, False)
    assert aside.transmit.queue_depth_bytes == 0
    for _ in range(10):
        chain.sender.enqueue(Sent(0, 3, 500, away).frame, 3)
        chain.sender.enqueue(Sent(0, 3, 500, on).frame, 3)
    chain.engine.run_for(20_000_000)
    assert chain.collectors[SWITCHES - 1, ON].received_packets == 10


@pytest.mark.parametrize("flow_control", ["pfc", "credits"])
def test_a_port_that_goes_down_gives_back_what_its_queue_held(flow_control: FlowControl) -> None:
    chain = Chain(flow_control, GBPS)
    for number in range(8):
        chain.sender.enqueue(Sent(0, number, 500, routed([Order(MULTICAST, 7 - number)])).frame, number)
    chain.engine.run_for(1_000_000)
    aside = chain.wired.switches[0].ports[ASIDE]
    aside.transmit.set_up(False)
    aside.link.cut()
    chain.engine.run()
    assert all(lane == {"held": 0, "own": 0} for lane in chain.held())
    assert chain.engine.packet_conservation()["missing"] == {"packets": 0, "bytes": 0}
