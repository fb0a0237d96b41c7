"""Messages of InfiniBand's communication management, as datagrams to queue pair 1.

Sources: InfiniBand Architecture Specification, volume 1, 12.6 (messages) and 13.4 (management datagrams), and annex A11
(RDMA IP CM service). The 24 bits of vendor in REQ and REP, and AttributeModifier, are those of Linux's enhanced
connection establishment (include/rdma/ibta_vol1_c12.h).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.wire.fields import Field, Header, reserved

MAD_BYTES = 256
CM_QUEUE_PAIR = 1
CM_QUEUE_PAIR_QKEY = 0x80010000
CM_CLASS = 0x07
CM_CLASS_VERSION = 2
METHOD_SEND = 0x03
IP_ADDRESSING_BYTES = 36
_SPECIFICATION = "InfiniBand Architecture, volume 1"

REJECT_REASONS: Mapping[int, str] = {
    1: "no queue pair available",
    2: "no end-to-end context available",
    3: "no resources available",
    4: "timeout",
    5: "unsupported request",
    6: "invalid communication ID",
    7: "invalid communication instance",
    8: "invalid service ID",
    9: "invalid transport service type",
    10: "stale connection",
    11: "reliable datagram channel does not exist",
    12: "primary remote port GID rejected",
    13: "primary remote port LID rejected",
    14: "invalid primary service level",
    15: "invalid primary traffic class",
    16: "invalid primary hop limit",
    17: "invalid primary packet rate",
    18: "alternate remote port GID rejected",
    19: "alternate remote port LID rejected",
    20: "invalid alternate service level",
    21: "invalid alternate traffic class",
    22: "invalid alternate hop limit",
    23: "invalid alternate packet rate",
    24: "port and communication manager redirection",
    25: "port redirection",
    26: "invalid path MTU",
    27: "insufficient responder resources",
    28: "consumer reject",
    29: "RNR retry count rejected",
    30: "duplicate local communication ID",
    31: "invalid class version",
    32: "invalid primary flow label",
    33: "invalid alternate flow label",
    35: "vendor option not supported",
}
"""Reasons of a REJ (table 109); 35 is of Linux."""

_REJECTED = {0: "REQ", 1: "REP", 2: "other"}
_MRAED = {0: "REQ", 1: "REP", 2: "LAP"}


def _hexadecimal(name: str, bits: int, meaning: str = "") -> Field:
    return Field(name, bits, meaning, notation="hexadecimal")


def _ids(reply: bool = True) -> tuple[Field, ...]:
    local = _hexadecimal("local_comm_id", 32, "of the sender")
    return (local, _hexadecimal("remote_comm_id", 32, "of the receiver")) if reply else (local,)


def _gid(name: str, meaning: str) -> tuple[Field, Field]:
    return (
        _hexadecimal(f"{name}_gid_prefix", 64, f"{meaning}: upper half of the GID"),
        _hexadecimal(f"{name}_gid_interface", 64, "its lower half"),
    )


def _path(name: str, last_bits: tuple[Field, ...]) -> tuple[Field, ...]:
    return (
        _hexadecimal(f"{name}_local_lid", 16, "0xFFFF for a path through routers"),
        _hexadecimal(f"{name}_remote_lid", 16),
        *_gid(f"{name}_local", "port of the sender"),
        *_gid(f"{name}_remote", "port of the receiver"),
        _hexadecimal(f"{name}_flow_label", 20),
        reserved(6, f"{name}_reserved1"),
        Field(f"{name}_packet_rate", 6, "0: the port's"),
        Field(f"{name}_traffic_class", 8),
        Field(f"{name}_hop_limit", 8),
        Field(f"{name}_service_level", 4),
        Field(f"{name}_subnet_local", 1),
        reserved(3, f"{name}_reserved2"),
        Field(f"{name}_local_ack_timeout", 5, "4.096 us times 2 to this power"),
        *last_bits,
    )


MAD = Header(
    "MAD",
    "Management datagram",
    f"{_SPECIFICATION}, 13.4.2",
    (
        Field("base_version", 8, default=1, is_fixed=True),
        Field("management_class", 8, "communication management", default=CM_CLASS, is_fixed=True),
        Field("class_version", 8, default=CM_CLASS_VERSION, is_fixed=True),
        Field("method", 8, "Send", default=METHOD_SEND, is_fixed=True),
        reserved(16, "status"),
        reserved(16, "class_specific"),
        _hexadecimal("transaction_id", 64, "of a request; its answers repeat it"),
        Field(
            "attribute_id",
            16,
            default=0x10,
            values={
                0x10: "REQ",
                0x11: "MRA",
                0x12: "REJ",
                0x13: "REP",
                0x14: "RTU",
                0x15: "DREQ",
                0x16: "DREP",
                0x17: "SIDR_REQ",
                0x18: "SIDR_REP",
            },
            notation="hexadecimal",
        ),
        reserved(16),
        _hexadecimal("attribute_modifier", 32, "of REQ, REP, SIDR_REP: enhanced connection establishment"),
    ),
)

CM_REQ = Header(
    "CMReq",
    "Request for communication (REQ)",
    f"{_SPECIFICATION}, 12.6.5",
    (
        *_ids(reply=False),
        reserved(8, "reserved1"),
        _hexadecimal("vendor_id", 24, "enhanced connection establishment"),
        _hexadecimal("service_id", 64),
        _hexadecimal("local_ca_guid", 64, "node GUID of the sender"),
        reserved(32, "reserved2"),
        _hexadecimal("local_qkey", 32),
        _hexadecimal("local_qpn", 24, "queue pair of the sender"),
        Field("responder_resources", 8, "READs and atomics that the sender answers at once"),
        reserved(24, "local_eecn"),
        Field("initiator_depth", 8, "READs and atomics that the sender has under way at once"),
        reserved(24, "remote_eecn"),
        Field("remote_response_timeout", 5, "in which the receiver is to answer: 4.096 us times 2 to this power"),
        Field("transport", 2, values={0: "RC", 1: "UC", 2: "RD", 3: "extended"}),
        Field("flow_control", 1, "end to end"),
        _hexadecimal("starting_psn", 24),
        Field("local_response_timeout", 5, "in which the sender answers: 4.096 us times 2 to this power"),
        Field("retry_count", 3),
        _hexadecimal("pkey", 16, "P_Key"),
        Field("path_mtu", 4, values={1: "256", 2: "512", 3: "1024", 4: "2048", 5: "4096"}),
        Field("rdc_exists", 1),
        Field("rnr_retry_count", 3),
        Field("max_cm_retries", 4, "how often the receiver may repeat a REP"),
        Field("srq", 1, "the sender's queue pair has a shared receive queue"),
        Field("extended_transport", 3),
        *_path("primary", (reserved(3, "primary_reserved3"),)),
        *_path("alternate", (Field("sap_supported", 1), reserved(2, "alternate_reserved3"))),
    ),
)

CM_MRA = Header(
    "CMMra",
    "Message receipt acknowledgement (MRA)",
    f"{_SPECIFICATION}, 12.6.6",
    (
        *_ids(),
        Field("message", 2, values=_MRAED),
        reserved(6, "reserved1"),
        Field("service_timeout", 5, "in which the answer comes: 4.096 us times 2 to this power"),
        reserved(3, "reserved2"),
    ),
)

CM_REJ = Header(
    "CMRej",
    "Rejection (REJ)",
    f"{_SPECIFICATION}, 12.6.7",
    (
        *_ids(),
        Field("message", 2, values=_REJECTED),
        reserved(6, "reserved1"),
        Field("info_length", 7, "bytes of additional information"),
        reserved(1, "reserved2"),
        Field("reason", 16, values=REJECT_REASONS, is_closed=False),
    ),
)

CM_REP = Header(
    "CMRep",
    "Reply to a request for communication (REP)",
    f"{_SPECIFICATION}, 12.6.8",
    (
        *_ids(),
        _hexadecimal("local_qkey", 32),
        _hexadecimal("local_qpn", 24, "queue pair of the sender"),
        _hexadecimal("vendor_id_high", 8, "enhanced connection establishment: bits 23 to 16"),
        reserved(24, "local_eecn"),
        _hexadecimal("vendor_id_middle", 8, "bits 15 to 8"),
        _hexadecimal("starting_psn", 24),
        _hexadecimal("vendor_id_low", 8, "bits 7 to 0"),
        Field("responder_resources", 8, "READs and atomics that the sender answers at once"),
        Field("initiator_depth", 8, "READs and atomics that the sender has under way at once"),
        Field("target_ack_delay", 5, "4.096 us times 2 to this power"),
        Field("failover_accepted", 2),
        Field("flow_control", 1, "end to end"),
        Field("rnr_retry_count", 3),
        Field("srq", 1, "the sender's queue pair has a shared receive queue"),
        reserved(4),
        _hexadecimal("local_ca_guid", 64, "node GUID of the sender"),
    ),
)

CM_RTU = Header("CMRtu", "Ready to use (RTU)", f"{_SPECIFICATION}, 12.6.9", _ids())

CM_DREQ = Header(
    "CMDreq",
    "Request to release communication (DREQ)",
    f"{_SPECIFICATION}, 12.6.10",
    (*_ids(), _hexadecimal("remote_qpn", 24, "queue pair of the receiver"), reserved(8)),
)

CM_DREP = Header("CMDrep", "Reply to a request to release communication (DREP)", f"{_SPECIFICATION}, 12.6.11", _ids())

CM_SIDR_REQ = Header(
    "CMSidrReq",
    "Service ID resolution request (SIDR_REQ)",
    f"{_SPECIFICATION}, 12.11.1",
    (
        _hexadecimal("request_id", 32),
        _hexadecimal("pkey", 16, "P_Key"),
        reserved(16),
        _hexadecimal("service_id", 64),
    ),
)

CM_SIDR_REP = Header(
    "CMSidrRep",
    "Service ID resolution response (SIDR_REP)",
    f"{_SPECIFICATION}, 12.11.2",
    (
        _hexadecimal("request_id", 32),
        Field(
            "status",
            8,
            values={
                0: "valid",
                1: "service ID not supported",
                2: "rejected by the service",
                3: "no queue pair available",
                4: "redirected",
                5: "unsupported class version",
            },
        ),
        Field("info_length", 8, "bytes of additional information"),
        reserved(16, "reserved1"),
        _hexadecimal("qpn", 24, "queue pair of the service"),
        reserved(8, "reserved2"),
        _hexadecimal("service_id", 64),
        _hexadecimal("qkey", 32, "Q_Key of the service's queue pair"),
    ),
)

CM_IP_ADDRESSING = Header(
    "CMIpAddressing",
    "IP addressing, at the beginning of a REQ's or SIDR_REQ's private data",
    f"{_SPECIFICATION}, annex A11.4",
    (
        Field("major_version", 4, is_fixed=True),
        Field("minor_version", 4, is_fixed=True),
        Field("ip_version", 4, default=4, values={4: "IPv4", 6: "IPv6"}),
        reserved(4),
        Field("source_port", 16),
        _hexadecimal("source_address_high", 64, "source IP address; an IPv4 one in the last 32 bits"),
        _hexadecimal("source_address_low", 64),
        _hexadecimal("destination_address_high", 64, "destination IP address"),
        _hexadecimal("destination_address_low", 64),
    ),
)


@dataclass(frozen=True)
class Message:
    """A message of communication management, and what follows its numbers in the 232 bytes behind the MAD's header.

    Args:
        number: its AttributeID.
        header: its numbers.
        info_bytes: of additional information.
        private_bytes: of private data.

    """

    number: int
    header: Header
    info_bytes: int
    private_bytes: int


MESSAGES: Mapping[str, Message] = {
    "REQ": Message(0x10, CM_REQ, 0, 92),
    "MRA": Message(0x11, CM_MRA, 0, 222),
    "REJ": Message(0x12, CM_REJ, 72, 148),
    "REP": Message(0x13, CM_REP, 0, 196),
    "RTU": Message(0x14, CM_RTU, 0, 224),
    "DREQ": Message(0x15, CM_DREQ, 0, 220),
    "DREP": Message(0x16, CM_DREP, 0, 224),
    "SIDR_REQ": Message(0x17, CM_SIDR_REQ, 0, 216),
    "SIDR_REP": Message(0x18, CM_SIDR_REP, 72, 136),
}
HEADERS_OF_MESSAGES = tuple(each.header for each in MESSAGES.values())
