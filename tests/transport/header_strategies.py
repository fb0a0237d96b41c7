"""Hypothesis strategies for RoCEv2 headers as engine.build_packet() takes them."""

import ipaddress
from typing import Any

from hypothesis import strategies as st

U8, U16, U24, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 24, 32, 64))

RC_SEND_ONLY, RC_WRITE_FIRST, RC_WRITE_ONLY, RC_ACKNOWLEDGE, UD_SEND_ONLY, CNP = (
    0x04,
    0x06,
    0x0A,
    0x11,
    0x64,
    0x81,
)

_SEND_AND_WRITE = {
    0x00: (),
    0x01: (),
    0x02: (),
    0x03: ("immediate",),
    0x04: (),
    0x05: ("immediate",),
    0x06: ("reth",),
    0x07: (),
    0x08: (),
    0x09: ("immediate",),
    0x0A: ("reth",),
    0x0B: ("reth", "immediate"),
}
# The extension headers of each opcode, and whether it carries a payload (table 38 of the specification).
OPCODES: dict[int, tuple[tuple[str, ...], bool]] = {
    **{opcode: (groups, True) for opcode, groups in _SEND_AND_WRITE.items()},
    **{0x20 + opcode: (groups, True) for opcode, groups in _SEND_AND_WRITE.items()},
    0x0C: (("reth",), False),
    0x0D: (("aeth",), True),
    0x0E: ((), True),
    0x0F: (("aeth",), True),
    0x10: (("aeth",), True),
    0x11: (("aeth",), False),
    0x12: (("aeth", "atomic_ack_original"), False),
    0x13: (("atomic_eth",), False),
    0x14: (("atomic_eth",), False),
    0x16: (("invalidate_rkey",), True),
    0x17: (("invalidate_rkey",), True),
    0x64: (("deth",), True),
    0x65: (("deth", "immediate"), True),
    0x81: ((), False),
    0xE1: (("aeth",), False),  # of the range for manufacturers: Weft's answer to responses of READs
}

_GROUPS: dict[str, st.SearchStrategy[Any]] = {
    "deth": st.fixed_dictionaries({"q_key": U32, "source_qp": U24}),
    "reth": st.fixed_dictionaries({"virtual_address": U64, "rkey": U32, "length_bytes": U32}),
    "atomic_eth": st.fixed_dictionaries({"virtual_address": U64, "rkey": U32, "swap_or_add": U64, "compare": U64}),
    "aeth": st.fixed_dictionaries({"syndrome": U8, "msn": U24}),
    "atomic_ack_original": U64,
    "immediate": U32,
    "invalidate_rkey": U32,
}

macs = st.binary(min_size=6, max_size=6).map(lambda octets: octets.hex(":"))
telemetry = st.fixed_dictionaries(
    {
        "echo": st.booleans(),
        "overflow": st.booleans(),
        "hop_count": st.integers(0, 5),
        "path_id": st.integers(0, 0xFFF),
        "hops": st.lists(
            st.fixed_dictionaries(
                {
                    "rate_code": st.integers(0, 15),
                    "timestamp_ns": U24,
                    "tx_units": st.integers(0, 2**20 - 1),
                    "queue_cells": U16,
                }
            ),
            min_size=5,
            max_size=5,
        ),
    }
)
aggregation = st.fixed_dictionaries(
    {
        "kind": st.integers(0, 1),
        "operation": U8,
        "job_id": U16,
        "epoch": U16,
        "slot": U16,
        "round": U32,
        "rank": U16,
        "lane_count": st.sampled_from((0, 64, 128, 256, 1024)),
        "data_type": U8,
        "flags": U8,
        "destination": U16,
    }
)


def _bth(opcode: st.SearchStrategy[int], destination_qp: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, Any]]:
    flags = ("solicited", "migrated", "fecn", "becn", "acknowledge_request")
    return st.fixed_dictionaries(
        {
            "opcode": opcode,
            "partition_key": U16,
            "destination_qp": destination_qp,
            "psn": U24,
            **{name: st.booleans() for name in flags},
        }
    )


@st.composite
def network_headers(draw: st.DrawFn, version: int | None = None) -> dict[str, Any]:
    """Ethernet, INT shim or none, IP and UDP."""
    version = version or draw(st.sampled_from((4, 6)))
    addresses = (
        U32.map(ipaddress.IPv4Address) if version == 4 else st.integers(0, 2**128 - 1).map(ipaddress.IPv6Address)
    )
    headers = {
        "destination_mac": draw(macs),
        "source_mac": draw(macs),
        "source_ip": str(draw(addresses)),
        "destination_ip": str(draw(addresses)),
        "dscp": draw(st.integers(0, 63)),
        "ecn": draw(st.integers(0, 3)),
        "hop_limit": draw(U8),
        "source_udp_port": draw(U16),
    }
    if version == 4:
        headers |= {"identification": draw(U16), "dont_fragment": draw(st.booleans())}
    else:
        headers["flow_label"] = draw(st.integers(0, 2**20 - 1))
    if draw(st.booleans()):
        headers["telemetry"] = draw(telemetry)
    return headers


@st.composite
def packets(draw: st.DrawFn) -> tuple[dict[str, Any], bytes]:
    """Headers and payload of any packet, aggregation packets included."""
    headers = draw(network_headers())
    if draw(st.integers(0, 9)) == 0:
        headers["bth"] = draw(_bth(st.just(UD_SEND_ONLY), st.sampled_from((0xA66000, 0xFFFFFF))))
        headers["deth"] = draw(_GROUPS["deth"])
        headers["aggregation"] = draw(aggregation)
        lanes_bytes = 4 * headers["aggregation"]["lane_count"]
        return headers, draw(st.binary(min_size=lanes_bytes, max_size=lanes_bytes))
    opcode = draw(st.sampled_from(sorted(OPCODES)))
    groups, has_payload = OPCODES[opcode]
    headers["bth"] = draw(_bth(st.just(opcode), U24))
    for group in groups:
        headers[group] = draw(_GROUPS[group])
    return headers, draw(st.binary(max_size=200)) if has_payload else b""
