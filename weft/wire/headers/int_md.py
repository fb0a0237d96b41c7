"""INT-MD behind UDP, and telemetry reports (docs/spec/int-md.md).

P4.org Applications Working Group: "In-band Network Telemetry (INT) Dataplane Specification", version 2.1, and
"Telemetry Report Format Specification", version 2.0.
"""

from __future__ import annotations

from enum import IntEnum

from weft.wire.fields import Field, Header, reserved

INT_MD_UDP_PORT = 0x4568
"""Weft's choice: IANA has assigned none."""
INT_MD_TYPE = 1
INT_MD_VERSION = 2
MAX_LENGTH_WORDS = 0xFF
REPORT_VERSION = 2
SEQUENCE_BITS = 22
_INT = "INT 2.1, Header Location: INT over TCP/UDP"
_MD = "INT 2.1, INT-MD Metadata Header Format"
_REPORT = "Telemetry Report 2.0, Telemetry Report Format"


class NextProtocol(IntEnum):
    """Contents behind the stack."""

    UDP_PAYLOAD = 1
    LAYER_4 = 2


class ReportType(IntEnum):
    """Type of an individual report."""

    INNER_ONLY = 0
    INT = 1


class InnerType(IntEnum):
    """Type of the contents at the end of an individual report."""

    NONE = 0
    ETHERNET = 3
    IPV4 = 4
    IPV6 = 5


INT_MD_SHIM = Header(
    "IntMdShim",
    "INT shim behind UDP",
    _INT,
    (
        Field("type", 4, "INT-MD", default=INT_MD_TYPE, is_fixed=True),
        Field(
            "npt",
            2,
            default=NextProtocol.UDP_PAYLOAD,
            values={each.value: each.name.lower() for each in NextProtocol},
            label="Next protocol type",
        ),
        reserved(2),
        Field("length_words", 8, "of 4 bytes: the INT-MD header and the stack", default=3),
        Field("original", 16, "NPT 1: the UDP destination port; NPT 2: 0 and the IP protocol"),
    ),
    p4="int_md_shim_t",
)

INT_MD = Header(
    "IntMd",
    "INT-MD header",
    _MD,
    (
        Field("version", 4, default=INT_MD_VERSION, is_fixed=True),
        Field("discard", 1, "D: the sink is to drop the packet; Weft sends 0"),
        Field("hops_exceeded", 1, "E: a hop added nothing because no hops remained"),
        Field("mtu_exceeded", 1, "M: a hop added nothing because the packet would have exceeded the link's MTU"),
        reserved(12),
        Field("hop_words", 5, "Hop ML: words of 4 bytes that each hop adds"),
        Field("remaining_hops", 8, "hops that may still add"),
        Field("instructions", 16, "bit 0 first", notation="hexadecimal"),
        Field("domain_id", 16, "0: the default domain"),
        Field("domain_instructions", 16, "0 in the default domain", notation="hexadecimal"),
        Field("domain_flags", 16, "0 in the default domain", notation="hexadecimal"),
    ),
    p4="int_md_t",
)

INT_MD_NODE = Header("IntMdNode", "Instruction 0", _MD, (Field("node_id", 32),), p4="int_md_node_t")
INT_MD_INTERFACES = Header(
    "IntMdInterfaces",
    "Instruction 1: interfaces of level 1",
    _MD,
    (Field("ingress", 16), Field("egress", 16)),
    p4="int_md_interfaces_t",
)
INT_MD_LATENCY = Header("IntMdLatency", "Instruction 2", _MD, (Field("latency_ns", 32),), p4="int_md_latency_t")
INT_MD_QUEUE = Header(
    "IntMdQueue",
    "Instruction 3",
    _MD,
    (Field("queue_id", 8), Field("occupancy_bytes", 24)),
    p4="int_md_queue_t",
)
INT_MD_TIME = Header(
    "IntMdTime", "Instruction 4 (ingress) or 5 (egress)", _MD, (Field("time_ns", 64),), p4="int_md_time_t"
)

REPORT_GROUP = Header(
    "TelemetryReportGroup",
    "Telemetry report group header",
    _REPORT,
    (
        Field("version", 4, default=REPORT_VERSION, is_fixed=True),
        Field("hardware_id", 6, "Weft sends 0"),
        Field("sequence", SEQUENCE_BITS, "of the node's reports; wraps"),
        Field("node_id", 32, "of the sink"),
    ),
    p4="report_group_t",
)

REPORT = Header(
    "TelemetryReport",
    "Individual report header",
    _REPORT,
    (
        Field(
            "type",
            4,
            "Weft sends inner_only",
            values={each.value: each.name.lower() for each in ReportType} | {2: "ioam"},
        ),
        Field("inner_type", 4, values={each.value: each.name.lower() for each in InnerType}, is_closed=False),
        Field("length_words", 8, "behind this header, of 4 bytes; 255: to the end of the datagram"),
        Field("metadata_words", 8, "of 4 bytes; 0 with inner_only"),
        Field("dropped", 1, "Weft sends 0"),
        Field("congested", 1, "Weft sends 0"),
        Field("tracked", 1, "the packet matched a watchlist", default=1),
        Field("intermediate", 1, "Weft sends 0: only sinks report"),
        reserved(4),
    ),
    p4="report_t",
)
