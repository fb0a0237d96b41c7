"""Frames such as hosts, switches and forgers send on a fabric."""

from __future__ import annotations

import random

from scapy.compat import raw
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_RR
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
    IPv6ExtHdrHopByHop,
)
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw

from weft.topologies.addressing import result_group_address
from weft.traffic.aggregation_format import ALL_WORKERS, Kind, Operation
from weft.traffic.layers import BTH, IntShim, aggregation_frame, cnp, pfc_frame, rdma_write_frame

SWITCH_MAC = "02:01:00:00:00:00"
"""The addresses, job and slots of `fabric.stf`."""
_HOST_MAC = "02:00:00:00:00:01"
_SWITCH_IPV4, _SWITCH_IPV6 = "10.0.0.254", "fd00::fe"
_IPV4 = (
    "10.0.0.1",
    "10.0.0.2",
    "10.9.0.1",
    "10.0.0.254",
    "11.0.0.1",
    "239.87.1.2",
    "255.255.255.255",
    "0.0.0.0",
)
_IPV6 = ("fd00::1", "fd00:1::2", "fd00::fe", "fe80::1", "ff02::1:ff00:fe", "::")
_JOB_IPV4, _JOB_IPV6, _EPOCH, _QKEY = 0x0102, 0x0103, 3, 0xDEADBEEF
_INT32 = (-(2**31), -1, 0, 1, 2**31 - 1)


def random_frame(rng: random.Random) -> bytes:
    """One frame, well-formed but for what a forger would change."""
    makers = (_aggregation, _aggregation, _aggregation, _write, _write, _resolution, _other, _control)
    return bytes(raw(rng.choice(makers)(rng)))


def _aggregation(rng: random.Random) -> Packet:
    def mostly(right: int, *wrong: int) -> int:
        return right if rng.random() < 0.9 else rng.choice(wrong)

    rank = rng.randrange(2)
    six = rng.random() < 0.3
    job = _JOB_IPV6 if six else _JOB_IPV4
    switch = _SWITCH_IPV6 if six else _SWITCH_IPV4
    result = rng.random() < 0.1
    frame = aggregation_frame(
        source_mac=_HOST_MAC,
        destination_mac=SWITCH_MAC,
        source_ip=f"fd00::{rank + 1}" if six else f"10.0.0.{rank + 1}",
        destination_ip=str(result_group_address(job, 6 if six else 4)) if result else switch,
        kind=Kind.RESULT if result else Kind.CONTRIBUTION,
        operation=rng.choice((Operation.SUM, Operation.SUM, Operation.MAX, Operation.MIN)),
        qkey=mostly(_QKEY, 0, 1),
        job_id=mostly(job, 0, 0xFFFF),
        epoch=mostly(_EPOCH, 0, 2, 4),
        slot=mostly(rng.randrange(8), 8, 0xFFFF),
        round_number=rng.choice((0, 0, 0, 1, 2, 3, 2**31, 2**32 - 1)),
        rank=mostly(rank, 1 - rank, 31, 0xFFFF),
        lanes=[rng.choice((*_INT32, rng.randrange(-(2**31), 2**31))) for _ in range(mostly(64, 0))],
        destination=mostly(ALL_WORKERS, 0, 1, 2),
    )
    if rng.random() < 0.05:
        frame[BTH].opcode = rng.randrange(256)
    return frame


def _write(rng: random.Random) -> Packet:
    six = rng.random() < 0.3
    addresses = _IPV6 if six else _IPV4
    frame = rdma_write_frame(
        source_mac=_HOST_MAC,
        destination_mac=SWITCH_MAC,
        source_ip=addresses[0],
        destination_ip=rng.choice(addresses),
        destination_qp=rng.getrandbits(24),
        psn=rng.getrandbits(24),
        payload=rng.randbytes(rng.choice((0, 1, 64, 1024))),
        immediate=rng.choice((None, 7)),
        source_port=0xC000 | rng.getrandbits(14),
        int_telemetry=rng.random() < 0.5,
    )
    header = frame[IPv6] if six else frame[IP]
    if rng.random() < 0.2:
        setattr(header, "hlim" if six else "ttl", rng.choice((0, 1, 2, 255)))
    if IntShim in frame and rng.random() < 0.5:
        shim = frame[IntShim]
        shim.hop_count, shim.echo, shim.version = (
            rng.randrange(16),
            rng.randrange(2),
            rng.choice((1, 1, 0, 2)),
        )
    return frame


def _resolution(rng: random.Random) -> Packet:
    target = rng.choice(_IPV4)
    if rng.random() < 0.5:
        return Ether(src=_HOST_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(
            op=rng.randrange(4), psrc=rng.choice(_IPV4), pdst=target, hwsrc=_HOST_MAC
        )
    six = rng.choice(_IPV6)
    message = rng.choice((ICMPv6ND_NS(tgt=six), ICMPv6ND_NA(tgt=six), ICMPv6EchoRequest()))
    below = Ether(src=_HOST_MAC, dst="33:33:ff:00:00:fe") / IPv6(
        src=rng.choice(_IPV6), dst=six, hlim=rng.choice((255, 1))
    )
    return below / message / ICMPv6NDOptSrcLLAddr(lladdr=_HOST_MAC)


def _other(rng: random.Random) -> Packet:
    below = Ether(src=_HOST_MAC, dst=rng.choice((SWITCH_MAC, _HOST_MAC, "01:00:5e:57:01:02", "ff:ff:ff:ff:ff:ff")))
    if rng.random() < 0.2:
        below = below / Dot1Q(vlan=rng.randrange(4096))
    if rng.random() < 0.3:
        header: Packet = IPv6(src=_IPV6[0], dst=rng.choice(_IPV6))
        if rng.random() < 0.3:
            header = header / IPv6ExtHdrHopByHop()
    else:
        options = [IPOption_RR()] if rng.random() < 0.2 else []
        header = IP(
            src=_IPV4[0],
            dst=rng.choice(_IPV4),
            flags=rng.randrange(8),
            frag=rng.choice((0, 0, 1, 8191)),
            options=options,
        )
    transport = rng.choice((TCP(dport=80), UDP(sport=5, dport=rng.choice((4791, 53))), ICMP(), Raw(b"")))
    return below / header / transport / Raw(rng.randbytes(rng.choice((0, 4, 60, 296))))


def _control(rng: random.Random) -> Packet:
    if rng.random() < 0.5:
        return pfc_frame(_HOST_MAC, {rng.randrange(8): rng.getrandbits(16)})
    return (
        Ether(src=_HOST_MAC, dst=SWITCH_MAC)
        / IP(src=_IPV4[0], dst=_IPV4[1])
        / UDP(sport=0xC000, dport=4791)
        / cnp(dqpn=rng.getrandbits(24))
    )
