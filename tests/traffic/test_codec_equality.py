"""The Scapy layers and the engine's codec are one format: same bytes out, same fields back."""

import struct
from functools import cache
from socket import AF_INET, AF_INET6, inet_ntop

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw, raw

from weft.engine import _core
from weft.traffic.layers import (
    AETH,
    BTH,
    DETH,
    IETH,
    OPCODE,
    RETH,
    AggregationHeader,
    AtomicAckETH,
    AtomicETH,
    CNPPadding,
    ImmDt,
    IntHop,
    IntShim,
    icrc,
    icrc_is_valid,
    ip_packet_of,
    rdma_write_frame,
)

WITHOUT_PAYLOAD = {
    OPCODE[name]
    for name in (
        "RC_RDMA_READ_REQUEST",
        "RC_ACKNOWLEDGE",
        "READ_ACKNOWLEDGE",
        "RC_ATOMIC_ACKNOWLEDGE",
        "RC_COMPARE_SWAP",
        "RC_FETCH_ADD",
        "CNP",
    )
}


def bits(width: int) -> st.SearchStrategy[int]:
    return st.integers(0, 2**width - 1)


macs = st.binary(min_size=6, max_size=6).map(lambda b: ":".join(f"{byte:02x}" for byte in b))
address_pairs = st.one_of(
    st.tuples(*[st.binary(min_size=4, max_size=4).map(lambda b: inet_ntop(AF_INET, b))] * 2),
    st.tuples(*[st.binary(min_size=16, max_size=16).map(lambda b: inet_ntop(AF_INET6, b))] * 2),
)
hops = st.fixed_dictionaries(
    {"rate_code": bits(4), "timestamp_ns": bits(24), "tx_units": bits(20), "queue_cells": bits(16)}
)
stacks = st.fixed_dictionaries(
    {
        "echo": st.booleans(),
        "overflow": st.booleans(),
        "hop_count": st.integers(0, 5),
        "path_id": bits(12),
        "hops": st.lists(hops, min_size=5, max_size=5),
    }
)
bths = st.fixed_dictionaries(
    {
        "solicited": st.booleans(),
        "migrated": st.booleans(),
        "partition_key": bits(16),
        "fecn": st.booleans(),
        "becn": st.booleans(),
        "destination_qp": st.integers(0, 2**24 - 1).filter(lambda qp: qp not in (0xA66000, 0xFFFFFF)),
        "acknowledge_request": st.booleans(),
        "psn": bits(24),
    }
)


@st.composite
def packets(draw):
    """Headers and payload as the engine takes them, of any opcode, with and without INT."""
    opcode = draw(st.sampled_from(sorted(set(OPCODE.values()))))
    source, destination = draw(address_pairs)
    headers = {
        "destination_mac": draw(macs),
        "source_mac": draw(macs),
        "source_ip": source,
        "destination_ip": destination,
        "dscp": draw(bits(6)),
        "ecn": draw(bits(2)),
        "hop_limit": draw(bits(8)),
        "source_udp_port": draw(bits(16)),
        "bth": draw(bths) | {"opcode": opcode},
    }
    if ":" in source:
        headers["flow_label"] = draw(bits(20))
    else:
        headers |= {"identification": draw(bits(16)), "dont_fragment": draw(st.booleans())}
    if draw(st.booleans()):
        headers["telemetry"] = draw(stacks)
    headers |= draw(extended_headers(opcode))
    payload = b"" if opcode in WITHOUT_PAYLOAD else draw(st.binary(max_size=100))
    return headers, payload


@cache
def layers_of(opcode: int) -> list[type]:
    return Ether(raw(Ether() / IP() / UDP(dport=4791) / BTH(opcode=opcode) / Raw(bytes(64)))).layers()


@st.composite
def extended_headers(draw, opcode):
    """The extension headers that an opcode carries, filled in."""
    found = {}
    layers = layers_of(opcode)
    if DETH in layers:
        found["deth"] = {"q_key": draw(bits(32)), "source_qp": draw(bits(24))}
    if RETH in layers:
        found["reth"] = {
            "virtual_address": draw(bits(64)),
            "rkey": draw(bits(32)),
            "length_bytes": draw(bits(32)),
        }
    if AtomicETH in layers:
        found["atomic_eth"] = {
            "virtual_address": draw(bits(64)),
            "rkey": draw(bits(32)),
            "swap_or_add": draw(bits(64)),
            "compare": draw(bits(64)),
        }
    if any(issubclass(layer, AETH) for layer in layers):
        found["aeth"] = {"syndrome": draw(bits(8)), "msn": draw(bits(24))}
    if AtomicAckETH in layers:
        found["atomic_ack_original"] = draw(bits(64))
    if ImmDt in layers:
        found["immediate"] = draw(bits(32))
    if IETH in layers:
        found["invalidate_rkey"] = draw(bits(32))
    return found


def shim_of(stack: dict) -> IntShim:
    fields = {name: int(stack[name]) for name in ("echo", "overflow", "hop_count", "path_id")}
    return IntShim(**fields, hops=[IntHop(**hop) for hop in stack["hops"]])


def ip_of(headers: dict):
    traffic_class = headers["dscp"] << 2 | headers["ecn"]
    ends = {"src": headers["source_ip"], "dst": headers["destination_ip"]}
    if ":" in headers["source_ip"]:
        return IPv6(**ends, tc=traffic_class, hlim=headers["hop_limit"], fl=headers["flow_label"])
    flags = "DF" if headers["dont_fragment"] else 0
    return IP(**ends, tos=traffic_class, ttl=headers["hop_limit"], id=headers["identification"], flags=flags)


def in_scapy(headers: dict, payload: bytes):
    """Build the packet that the headers describe, layer by layer."""
    packet = Ether(src=headers["source_mac"], dst=headers["destination_mac"])
    if "telemetry" in headers:
        packet /= shim_of(headers["telemetry"])
    packet = packet / ip_of(headers) / UDP(sport=headers["source_udp_port"], dport=4791, chksum=0)
    bth = headers["bth"]
    pad = -len(payload) % 4
    packet /= BTH(
        opcode=bth["opcode"],
        solicited=int(bth["solicited"]),
        migreq=int(bth["migrated"]),
        padcount=pad,
        pkey=bth["partition_key"],
        fecn=int(bth["fecn"]),
        becn=int(bth["becn"]),
        dqpn=bth["destination_qp"],
        ackreq=int(bth["acknowledge_request"]),
        psn=bth["psn"],
    )
    if bth["opcode"] == OPCODE["CNP"]:
        packet /= CNPPadding()
    if deth := headers.get("deth"):
        packet /= DETH(qkey=deth["q_key"], source_qp=deth["source_qp"])
    if reth := headers.get("reth"):
        packet /= RETH(va=reth["virtual_address"], rkey=reth["rkey"], dma_length=reth["length_bytes"])
    if atomic := headers.get("atomic_eth"):
        packet /= AtomicETH(
            va=atomic["virtual_address"],
            rkey=atomic["rkey"],
            swap_add=atomic["swap_or_add"],
            compare=atomic["compare"],
        )
    if aeth := headers.get("aeth"):
        packet /= AETH(syndrome=aeth["syndrome"], msn=aeth["msn"])
    if "atomic_ack_original" in headers:
        packet /= AtomicAckETH(original_remote_data=headers["atomic_ack_original"])
    if "immediate" in headers:
        packet /= ImmDt(immediate=headers["immediate"])
    if "invalidate_rkey" in headers:
        packet /= IETH(rkey=headers["invalidate_rkey"])
    return packet / Raw(payload + bytes(pad)) if payload else packet


@given(packets())
@settings(max_examples=100, deadline=None)
def test_both_build_the_same_bytes_and_read_them_back(packet):
    headers, payload = packet
    built = _core.build_packet(headers, payload)
    assert built.hex() == raw(in_scapy(headers, payload)).hex()
    assert icrc_is_valid(built)
    parsed, parsed_payload = _core.parse_packet(built)
    assert parsed_payload == payload
    assert {name: parsed[name] for name in headers} == headers
    dissected = Ether(built)
    assert raw(dissected) == built
    assert dissected[BTH].psn == headers["bth"]["psn"]


@given(
    macs,
    st.fixed_dictionaries(
        {
            "kind": st.integers(0, 1),
            "operation": bits(8),
            "job_id": bits(16),
            "epoch": bits(16),
            "slot": bits(16),
            "round": bits(32),
            "rank": bits(16),
            "data_type": bits(8),
            "flags": bits(8),
            "destination": bits(16),
        }
    ),
    st.sampled_from((0, 64, 128, 256, 1024)),
    bits(32),
    bits(32),
)
@settings(max_examples=50, deadline=None)
def test_aggregation_packets_are_the_same_bytes(mac, header, lane_count, seed, q_key):
    lanes = np.random.default_rng(seed).integers(-(2**31), 2**31, lane_count).tolist()
    header["lane_count"] = lane_count
    destination_qp = 0xFFFFFF if header["kind"] else 0xA66000
    built = _core.build_packet(
        {
            "destination_mac": mac,
            "source_mac": mac,
            "source_ip": "10.0.0.1",
            "destination_ip": "10.0.0.254",
            "bth": {"opcode": 0x64, "destination_qp": destination_qp, "psn": 5},
            "deth": {"q_key": q_key, "source_qp": 0xA66000},
            "aggregation": header,
        },
        struct.pack(f">{lane_count}i", *lanes),
    )
    packet = (
        Ether(src=mac, dst=mac)
        / IP(src="10.0.0.1", dst="10.0.0.254", tos=26 << 2 | 2, flags="DF", id=0, ttl=64)
        / UDP(sport=0xC000, dport=4791, chksum=0)
        / BTH(opcode=0x64, migreq=1, dqpn=destination_qp, psn=5)
        / DETH(qkey=q_key, source_qp=0xA66000)
        / AggregationHeader(**header, lanes=lanes)
    )
    assert built.hex() == raw(packet).hex()
    assert Ether(built)[AggregationHeader].lanes == lanes
    assert _core.parse_packet(built)[0]["aggregation"] == header


@given(packets(), st.data())
@settings(max_examples=100, deadline=None)
def test_both_refuse_the_same_damaged_packets(packet, data):
    built = bytearray(_core.build_packet(*packet))
    position = data.draw(st.integers(14, len(built) - 1))
    built[position] ^= 1 << data.draw(st.integers(0, 7))
    try:
        expected = icrc(ip_packet_of(bytes(built))[:-4]) == ip_packet_of(bytes(built))[-4:]
    except ValueError:
        expected = False
    if not expected:
        assert _core.parse_error(bytes(built)) != "none"
    if _core.parse_error(bytes(built)) == "bad_icrc":
        assert not icrc_is_valid(bytes(built))


@pytest.mark.parametrize("int_telemetry", [False, True])
@pytest.mark.parametrize("source", ["10.0.0.1", "fd00::1"])
def test_a_frame_of_the_builders_is_accepted_by_the_engine(source, int_telemetry):

    frame = raw(
        rdma_write_frame(
            source_mac="02:00:00:00:00:01",
            destination_mac="02:00:00:00:00:02",
            source_ip=source,
            destination_ip=source,
            destination_qp=77,
            psn=88,
            payload=b"seven b",
            immediate=99,
            int_telemetry=int_telemetry,
        )
    )
    headers, payload = _core.parse_packet(frame)
    assert (headers["bth"]["destination_qp"], headers["immediate"], payload) == (77, 99, b"seven b")
    assert ("telemetry" in headers) == int_telemetry
