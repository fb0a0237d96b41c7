"""A leaf that runs fabric.p4 with one ECMP group of three uplinks, whose mode tests choose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw, raw

from weft.engine import Engine
from weft.switch.backend import ActionCall, ExactMatch, GroupMember, GroupRef, LpmMatch, TableEntry
from weft.switch.bmv2json import Program, load_program
from weft.switch.native import NativeSwitch
from weft.traffic.layers import BTH

FABRIC = Path(__file__).resolve().parents[2] / "p4" / "fabric.p4"
MAC, MAC_NUMBER, HASH_SEED = "02:01:00:00:00:00", 0x020100000000, 0x9E3779B9
UPLINKS = (5, 6, 7)
DATA_CLASS = 3
INGRESS = "FabricIngress."
FORWARDING = f"{INGRESS}forwarding."
TABLES = ("ecmp", "ecmp_kept", "ecmp_first", "ecmp_second")
MODES: dict[str, tuple[str, tuple[int, ...]]] = {
    "flow": ("hash_flow_only", ()),
    "flow_and_queue_pair": ("hash_queue_pair", ()),
    "flowlet": ("switch_flowlets", (1000,)),
    "round_robin": ("spray_in_turn", ()),
    "random": ("spray_at_random", ()),
    "adaptive": ("adapt", (0, 10, 10**9)),
    "adaptive by flowlets": ("adapt", (1000, 10, 10**9)),
}
"""Action of the table and its arguments; gaps of 1,000 and lifetimes of 10**9 units of time."""
IDENTITY = (0x123, HASH_SEED, MAC_NUMBER, 0x0A0000FE, 0xFD00 << 112 | 0xFE)


def next_hop(port: int) -> tuple[int, int, int]:
    """Arguments of set_next_hop."""
    return port, MAC_NUMBER, 0x020000000000 + port


def leaf(
    document: bytes, mode: str, weights: Mapping[int, int] | None = None, seed: int = 1, reports: int = 0
) -> NativeSwitch:
    """Return the switch, at a time above 0; members watch their ports."""
    engine = Engine(seed=seed)
    engine.run_for(10**6)
    switch = NativeSwitch(engine, name="leaf")
    switch.load(_program(document))
    identity = ActionCall(f"{INGRESS}identity.set_identity", (*IDENTITY, 1, reports, 0, 0))
    switch.table_set_default(f"{INGRESS}identity.identity", identity)
    uplinks = ActionCall(f"{FORWARDING}set_ecmp_group", (1,))
    switch.table_insert(f"{FORWARDING}ipv4_lpm", TableEntry((LpmMatch(0x0A000000, 8),), uplinks))
    call = ActionCall(f"{INGRESS}classes.set_class", (DATA_CLASS,))
    switch.table_insert(f"{INGRESS}classes.class_map", TableEntry((ExactMatch(26),), call))
    shares = weights or dict.fromkeys(UPLINKS, 1)
    members = [GroupMember(port, shares[port], watch_port=port) for port in UPLINKS]
    for table in TABLES:
        for port in UPLINKS:
            member = ActionCall(f"{FORWARDING}set_next_hop", next_hop(port))
            switch.member_insert(f"{FORWARDING}{table}_selector", port, member)
        switch.group_insert(f"{FORWARDING}{table}_selector", 1, members)
        switch.table_insert(f"{FORWARDING}{table}", TableEntry((ExactMatch(1),), GroupRef(1)))
    action, arguments = MODES[mode]
    balancing = ActionCall(f"{FORWARDING}balancing.{action}", arguments)
    switch.table_set_default(f"{FORWARDING}balancing.load_balancing", balancing)
    return switch


@lru_cache(maxsize=2)
def _program(document: bytes) -> Program:
    """Return one object for all switches, so that it is compiled once."""
    return load_program(document)


def frame(flow: int = 0, queue_pair: int = 0x100) -> bytes:
    """Return a WRITE's packet of a flow."""
    headers = IP(src="10.0.0.1", dst="10.1.0.5", tos=26 << 2 | 2) / UDP(sport=0xC000 + flow, dport=4791, chksum=0)
    below = Ether(src="02:00:00:00:00:01", dst=MAC)
    return raw(below / headers / BTH(opcode=7, dqpn=queue_pair) / Raw(b"x" * 64))


def ports(switch: NativeSwitch, frames: Iterable[bytes], gap_ns: int = 0) -> list[int]:
    """Return by which port each frame leaves, each so long after the one before it."""
    chosen = []
    for each in frames:
        switch.engine.run_for(gap_ns * 1000)
        ((port, _),) = switch.process(1, each)
        chosen.append(port)
    return chosen
