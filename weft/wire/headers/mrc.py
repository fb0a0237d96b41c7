"""Multipath Reliable Connection (MRC): the headers it adds to RoCEv2, and which of its opcodes has which.

Source: OCP Multipath Reliable Connection Specification, revision 1.0 (March 2026). docs/spec/mrc.md says how the
fields are known, and which rest on an assumption.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.wire.fields import Field, Header, reserved
from weft.wire.headers.roce import AETH, IMMEDIATE, RETH, Opcode

_SPECIFICATION = "OCP MRC 1.0"

ENDPOINT_QP = 2
"""Queue pair of endpoint operations; BTH.psn[15:0] is their id."""

RECEIVED_UNIT_BYTES = 256
MPR_UNIT_PSNS = 128
TIMESTAMP_UNIT_NS = 128

_PATH_MARKS = {0: "none", 1: "skip_once", 2: "always_skip"}
_NACK_REASONS = {
    0x01: "trimmed",
    0x02: "trimmed_lasthop",
    0x06: "no_bitmap",
    0x07: "no_pkt_buffer",
    0x0A: "no_resource",
    0x0B: "psn_oor_window",
    0x19: "unexp_event",
}
_OPERATIONS = {0: "port_status_update", 1: "ev_probe"}


def _type_and_next_header() -> tuple[Field, Field]:
    """Return what stands where headers of Ultra Ethernet have their type and the next header's."""
    return reserved(4, "type"), reserved(5, "next_header")


def _timestamp(of: str) -> tuple[Field, ...]:
    return (
        Field("tx_timestamp", 16, f"when {of} was sent"),
        Field("tsr", 1, "resolution of tx_timestamp", values={0: f"{TIMESTAMP_UNIT_NS}_ns", 1: "implementation"}),
    )


_FTYPE = Field("ftype", 4, "format of tx_timestamp", default=1, values={0: "none", 1: "timestamp"}, is_closed=False)
_ENTROPY = Field("entropy", 32, "entropy value (EV) of the packet that is answered", notation="hexadecimal")
_PDC_IDS = (
    Field("spdcid", 16, "low half of the sender's queue pair", notation="hexadecimal"),
    Field("dpdcid", 16, "low half of the destination queue pair", notation="hexadecimal"),
)
_VENDOR_INFO = Field("vendor_info", 8, "the manufacturer's", notation="hexadecimal")

METH = Header(
    "METH",
    "Message extended transport header",
    f"{_SPECIFICATION}, tables 6-8 and 6-9",
    (
        Field("rqmsn", 16, "number of the WRITE with immediate on the connection; 0 for other WRITEs"),
        Field("msn", 16, "number of the message"),
    ),
)
TSETH = Header(
    "TSETH",
    "Requestor timestamp extended header",
    f"{_SPECIFICATION}, tables 6-6 and 6-7",
    (*_timestamp("the packet"), reserved(11), _FTYPE),
)
SETH = Header(
    "SETH",
    "Reliability SACK header",
    f"{_SPECIFICATION}, tables 7-14 and 7-15",
    (
        *_type_and_next_header(),
        Field("m", 2, "for the entropy value", values=_PATH_MARKS),
        reserved(3, "reserved1"),
        Field("pr", 1, "answers a reliability probe"),
        reserved(1, "reserved2"),
        Field(
            "ack_psn_offset",
            16,
            "from cack_psn to the PSN that is answered; with pr the probe's id",
            notation="signed",
        ),
        _ENTROPY,
        *_PDC_IDS,
        reserved(8, "reserved3"),
        Field("cack_psn", 24, "all packets up to this PSN have arrived"),
        Field("cc_type", 4, "kind of congestion control state"),
        Field("cc_flags", 4, notation="hexadecimal"),
        Field("mpr", 8, f"maximum PSN range, in units of {MPR_UNIT_PSNS} PSNs"),
        Field("sack_offset", 16, "from cack_psn to the PSN of bit 0", notation="signed"),
        Field("sack_bitmap", 64, "bit 0 is the least significant one; 1: arrived", notation="hexadecimal"),
    ),
)
CC_STATE = Header(
    "CCState",
    "Congestion control state (CC_STATE)",
    f"{_SPECIFICATION}, tables 7-12 and 7-13",
    (
        Field("tx_timestamp", 16, "of the packet that is answered"),
        reserved(1),
        Field("ooo_count", 15, "packets that have arrived beyond cack_psn"),
        Field("restore_cwnd", 1, "the window may grow back"),
        Field("rcv_cwnd_pen", 7, "penalty on the window: 0 none, 127 one packet a round trip"),
        Field("rcvd_units", 24, "received, modulo 2^24 units", label="Received", unit_bytes=RECEIVED_UNIT_BYTES),
    ),
)
NETH = Header(
    "NETH",
    "Reliability NACK header",
    f"{_SPECIFICATION}, tables 7-16 and 7-17",
    (
        *_type_and_next_header(),
        reserved(7, "reserved1"),
        Field("nack_reason", 8, values=_NACK_REASONS, is_closed=False, notation="hexadecimal"),
        _VENDOR_INFO,
        _ENTROPY,
        *_PDC_IDS,
        reserved(8, "reserved2"),
        Field("nack_psn", 24, "PSN that is answered"),
        Field("cc_type", 4, "kind of congestion control state", default=2),
        Field("cc_flags", 4, notation="hexadecimal"),
        reserved(8, "reserved3"),
        Field("tx_timestamp", 16, "of the packet that is answered"),
    ),
)
PETH = Header(
    "PETH",
    "Reliability probe request header",
    f"{_SPECIFICATION}, tables 7-18 and 7-19",
    (
        *_type_and_next_header(),
        reserved(15, "reserved1"),
        _VENDOR_INFO,
        Field("probe_id", 16, "returned by the SACK"),
        reserved(16, "reserved2"),
        *_PDC_IDS,
        *_timestamp("the probe"),
        reserved(11, "reserved3"),
        _FTYPE,
    ),
)
ERTH = Header(
    "ERTH",
    "Endpoint request header",
    f"{_SPECIFICATION}, tables 7-20 and 7-21",
    (
        *_type_and_next_header(),
        reserved(5, "reserved1"),
        Field("op", 2, values=_OPERATIONS),
        reserved(8, "reserved2"),
        _VENDOR_INFO,
        Field("port_status_mask", 32, "a bit for each port of the sender; 1: up", notation="hexadecimal"),
        reserved(32, "reserved3"),
        *_timestamp("the request"),
        reserved(11, "reserved4"),
        _FTYPE,
    ),
)
EETH = Header(
    "EETH",
    "Endpoint response header",
    f"{_SPECIFICATION}, tables 7-22 and 7-23",
    (
        *_type_and_next_header(),
        reserved(3, "reserved1"),
        Field("op", 2, "the request's", values=_OPERATIONS),
        reserved(2, "reserved2"),
        reserved(16, "reserved3"),
        reserved(64, "reserved4"),
        reserved(64, "reserved5"),
        reserved(64, "reserved6"),
        Field("tx_timestamp", 16, "the request's"),
        reserved(16, "reserved7"),
        reserved(32, "reserved8"),
    ),
)

_WRITE = (METH, TSETH, RETH)

MRC_OPCODES: Mapping[str, Opcode] = {
    "MRC_RDMA_WRITE_FIRST": Opcode(0xC6, _WRITE, optional=(TSETH,)),
    "MRC_RDMA_WRITE_MIDDLE": Opcode(0xC7, _WRITE, optional=(TSETH,)),
    "MRC_RDMA_WRITE_LAST": Opcode(0xC8, _WRITE, optional=(TSETH,)),
    "MRC_RDMA_WRITE_LAST_WITH_IMMEDIATE": Opcode(0xC9, (*_WRITE, IMMEDIATE), optional=(TSETH,)),
    "MRC_RDMA_WRITE_ONLY": Opcode(0xCA, _WRITE, optional=(TSETH,)),
    "MRC_RDMA_WRITE_ONLY_WITH_IMMEDIATE": Opcode(0xCB, (*_WRITE, IMMEDIATE), optional=(TSETH,)),
    "MRC_ACKNOWLEDGE": Opcode(0xD1, (AETH,), has_payload=False),
    "MRC_ENDPOINT_REQUEST": Opcode(0xD8, (ERTH,), has_payload=False),
    "MRC_ENDPOINT_RESPONSE": Opcode(0xD9, (EETH,), has_payload=False),
    "MRC_RELIABILITY_SACK": Opcode(0xDC, (SETH, CC_STATE), has_payload=False),
    "MRC_RELIABILITY_NACK": Opcode(0xDD, (NETH,), has_payload=False),
    "MRC_RELIABILITY_PROBE": Opcode(0xDE, (PETH,), has_payload=False),
}
"""MRC's opcodes, of the range for manufacturers. A write has a TSETH if the BTH says so."""

MRC_BTH = Header(
    "MrcBTH",
    "Base transport header of an MRC packet",
    f"{_SPECIFICATION}, tables 6-3, 6-4, 7-10 and 7-11",
    (
        Field(
            "opcode",
            8,
            "see above",
            default=MRC_OPCODES["MRC_RDMA_WRITE_ONLY"].number,
            notation="hexadecimal",
        ),
        reserved(2, "reserved1"),
        Field("padcount", 2, "bytes that pad the payload to a multiple of 4"),
        Field("version", 4, is_fixed=True),
        Field("pkey", 16, "P_Key", default=0xFFFF, notation="hexadecimal"),
        reserved(8, "variant_reserved"),
        Field("dqpn", 24, "destination queue pair", notation="hexadecimal"),
        Field("ackreq", 1, "the responder is to send a SACK at once"),
        reserved(1, "reserved2"),
        Field("rtx", 1, "retransmission"),
        Field("ts", 1, "a TSETH follows the METH"),
        reserved(4, "invariant_reserved"),
        Field("psn", 24, "packet sequence number; of an endpoint operation the id, in the low half"),
    ),
)
