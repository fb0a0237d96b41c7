"""Whole frames made from the layers, as hosts and switches send them: for tests, generators and forgeries."""

from __future__ import annotations

from collections.abc import Sequence

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from weft.traffic.aggregation_format import ALL_WORKERS, CONTRIBUTION_QP, RESULT_QP, Kind, LaneType, Operation
from weft.traffic.layers.aggregation import AggregationHeader
from weft.traffic.layers.int_shim import IntShim
from weft.traffic.layers.roce import DETH, OPCODE, RETH, ROCE_UDP_PORT, ImmDt

DATA_DSCP = 26
ECT0 = 0b10
HOP_LIMIT = 64
SWITCH_HOP_LIMIT = 255
"""Of what switches send to each other in a tree, and no routed packet has (RFC 5082)."""


def ip_header(source: str, destination: str, dscp: int, ecn: int, hop_limit: int = HOP_LIMIT) -> Packet:
    """Return the IPv4 or IPv6 header between two addresses with the given DSCP and ECN bits."""
    traffic_class = dscp << 2 | ecn
    if ":" in source:
        return IPv6(src=source, dst=destination, tc=traffic_class, hlim=hop_limit)
    return IP(src=source, dst=destination, tos=traffic_class, ttl=hop_limit, flags="DF", id=0)


def datagram_headers(
    *,
    source_mac: str,
    destination_mac: str,
    source_ip: str,
    destination_ip: str,
    qkey: int,
    queue_pairs: tuple[int, int],
    psn: int,
    source_port: int,
    hop_limit: int,
) -> Packet:
    """Return all headers of a SEND ONLY datagram from one of two queue pairs to the other; PSNs are modulo 2²⁴."""
    source_qp, destination_qp = queue_pairs
    return (
        Ether(src=source_mac, dst=destination_mac)
        / ip_header(source_ip, destination_ip, DATA_DSCP, ECT0, hop_limit)
        / UDP(sport=source_port, dport=ROCE_UDP_PORT, chksum=0)
        / BTH(opcode=OPCODE["UD_SEND_ONLY"], migreq=1, dqpn=destination_qp, psn=psn & 0xFFFFFF)
        / DETH(qkey=qkey, source_qp=source_qp)
    )


def aggregation_frame(
    *,
    source_mac: str,
    destination_mac: str,
    source_ip: str,
    destination_ip: str,
    qkey: int,
    kind: Kind = Kind.CONTRIBUTION,
    operation: Operation = Operation.SUM,
    job_id: int = 0,
    epoch: int = 0,
    slot: int = 0,
    round_number: int = 0,
    rank: int = 0,
    lanes: Sequence[int] = (0,),
    destination: int = ALL_WORKERS,
    data_type: LaneType = LaneType.INT32,
    flags: int = 0,
    source_port: int = 0xC000,
    hop_limit: int = HOP_LIMIT,
) -> Packet:
    """Return an aggregation frame, header-only without lanes; its fields may be changed before it is built."""
    below = datagram_headers(
        source_mac=source_mac,
        destination_mac=destination_mac,
        source_ip=source_ip,
        destination_ip=destination_ip,
        qkey=qkey,
        queue_pairs=(CONTRIBUTION_QP, CONTRIBUTION_QP if kind is Kind.CONTRIBUTION else RESULT_QP),
        psn=round_number,
        source_port=source_port,
        hop_limit=hop_limit,
    )
    return below / AggregationHeader(
        kind=kind,
        operation=operation,
        job_id=job_id,
        epoch=epoch,
        slot=slot,
        round=round_number,
        rank=rank,
        destination=destination,
        data_type=data_type,
        flags=flags,
        lanes=list(lanes),
    )


def rdma_write_frame(
    *,
    source_mac: str,
    destination_mac: str,
    source_ip: str,
    destination_ip: str,
    destination_qp: int,
    psn: int,
    payload: bytes,
    virtual_address: int = 0,
    rkey: int = 0,
    immediate: int | None = None,
    source_port: int = 0xC000,
    int_telemetry: bool = False,
    transport: str = "RC",
) -> Packet:
    """Return an RDMA WRITE ONLY frame (with immediate if one is given), padded as IBA §9.2 asks."""
    pad_count = -len(payload) % 4
    operation = "RDMA_WRITE_ONLY" if immediate is None else "RDMA_WRITE_ONLY_WITH_IMMEDIATE"
    bth = BTH(
        opcode=OPCODE[f"{transport}_{operation}"],
        dqpn=destination_qp,
        migreq=1,
        psn=psn,
        ackreq=1,
        padcount=pad_count,
    )
    frame = Ether(src=source_mac, dst=destination_mac)
    if int_telemetry:
        frame /= IntShim()
    frame /= ip_header(source_ip, destination_ip, DATA_DSCP, ECT0)
    frame /= UDP(sport=source_port, dport=ROCE_UDP_PORT, chksum=0) / bth
    frame /= RETH(va=virtual_address, rkey=rkey, dma_length=len(payload))
    if immediate is not None:
        frame /= ImmDt(immediate=immediate)
    return frame / Raw(payload + bytes(pad_count))
