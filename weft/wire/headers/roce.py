"""RoCEv2: the base transport header, its extensions, and which opcode has which.

Source: InfiniBand Architecture Specification, volume 1, chapter 9, and annex A17 (RoCEv2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.wire.fields import Field, Header, reserved
from weft.wire.headers.network import UDP

ROCE_UDP_PORT = 4791
_SPECIFICATION = "InfiniBand Architecture, volume 1"


def _key(name: str, meaning: str) -> Field:
    return Field(name, 32, meaning, notation="hexadecimal")


_ADDRESS = Field("va", 64, "virtual address in remote memory", notation="hexadecimal")
_R_KEY = _key("rkey", "R_Key of the memory region")

DETH = Header(
    "DETH",
    "Datagram extended transport header",
    f"{_SPECIFICATION}, 9.3.2",
    (
        _key("qkey", "Queue Key"),
        reserved(8),
        Field("source_qp", 24, "queue pair of the sender", notation="hexadecimal"),
    ),
    p4="deth_t",
)
RETH = Header(
    "RETH",
    "RDMA extended transport header",
    f"{_SPECIFICATION}, 9.3.3",
    (_ADDRESS, _R_KEY, Field("dma_length", 32, "bytes of the message")),
    p4="reth_t",
)
ATOMIC_ETH = Header(
    "AtomicETH",
    "Atomic extended transport header",
    f"{_SPECIFICATION}, 9.3.4",
    (
        _ADDRESS,
        _R_KEY,
        Field("swap_add", 64, "the value to store, or to add", notation="hexadecimal"),
        Field("compare", 64, "compare-and-swap: the value expected", notation="hexadecimal"),
    ),
)
AETH = Header(
    "AETH",
    "ACK extended transport header",
    f"{_SPECIFICATION}, 9.3.5",
    (
        Field("syndrome", 8, "ACK, RNR NAK or NAK, with credits, timer or code", notation="hexadecimal"),
        Field("msn", 24, "message sequence number; a PSN in [answers of selective repeat](host-transports.md)"),
    ),
    p4="aeth_t",
)
ATOMIC_ACK_ETH = Header(
    "AtomicAckETH",
    "Atomic acknowledge extended transport header",
    f"{_SPECIFICATION}, 9.3.5.3",
    (Field("original_remote_data", 64, "the value found", notation="hexadecimal"),),
)
IMMEDIATE = Header(
    "ImmDt",
    "Immediate data",
    f"{_SPECIFICATION}, 9.3.6",
    (Field("immediate", 32, "handed to the receiver with the completion", notation="hexadecimal"),),
    p4="immediate_t",
)
IETH = Header(
    "IETH",
    "Invalidate extended transport header",
    f"{_SPECIFICATION}, 9.3.7",
    (_key("rkey", "R_Key that the receiver is to invalidate"),),
)
CNP_PADDING = Header(
    "CNPPadding",
    "Reserved bytes of a congestion notification packet",
    f"{_SPECIFICATION}, annex A17",
    (reserved(64, "reserved1"), reserved(64, "reserved2")),
)
ICRC = Header(
    "ICRC",
    "Invariant CRC",
    f"{_SPECIFICATION}, annex A17.3.3",
    (Field("icrc", 32, "CRC-32, least significant byte first", notation="hexadecimal"),),
    p4="icrc_t",
)


@dataclass(frozen=True)
class Opcode:
    """A BTH opcode: its number, the extended headers that follow in this order, and whether a payload may.

    `optional` are those of the extended headers that some of its packets lack.
    """

    number: int
    extensions: tuple[Header, ...] = ()
    has_payload: bool = True
    optional: tuple[Header, ...] = ()


_SEND_AND_WRITE: Mapping[str, tuple[Header, ...]] = {
    "SEND_FIRST": (),
    "SEND_MIDDLE": (),
    "SEND_LAST": (),
    "SEND_LAST_WITH_IMMEDIATE": (IMMEDIATE,),
    "SEND_ONLY": (),
    "SEND_ONLY_WITH_IMMEDIATE": (IMMEDIATE,),
    "RDMA_WRITE_FIRST": (RETH,),
    "RDMA_WRITE_MIDDLE": (),
    "RDMA_WRITE_LAST": (),
    "RDMA_WRITE_LAST_WITH_IMMEDIATE": (IMMEDIATE,),
    "RDMA_WRITE_ONLY": (RETH,),
    "RDMA_WRITE_ONLY_WITH_IMMEDIATE": (RETH, IMMEDIATE),
}

OPCODES: Mapping[str, Opcode] = {
    **{f"RC_{name}": Opcode(number, found) for number, (name, found) in enumerate(_SEND_AND_WRITE.items())},
    "RC_RDMA_READ_REQUEST": Opcode(0x0C, (RETH,), has_payload=False),
    "RC_RDMA_READ_RESPONSE_FIRST": Opcode(0x0D, (AETH,)),
    "RC_RDMA_READ_RESPONSE_MIDDLE": Opcode(0x0E),
    "RC_RDMA_READ_RESPONSE_LAST": Opcode(0x0F, (AETH,)),
    "RC_RDMA_READ_RESPONSE_ONLY": Opcode(0x10, (AETH,)),
    "RC_ACKNOWLEDGE": Opcode(0x11, (AETH,), has_payload=False),
    "RC_ATOMIC_ACKNOWLEDGE": Opcode(0x12, (AETH, ATOMIC_ACK_ETH), has_payload=False),
    "RC_COMPARE_SWAP": Opcode(0x13, (ATOMIC_ETH,), has_payload=False),
    "RC_FETCH_ADD": Opcode(0x14, (ATOMIC_ETH,), has_payload=False),
    "RC_SEND_LAST_WITH_INVALIDATE": Opcode(0x16, (IETH,)),
    "RC_SEND_ONLY_WITH_INVALIDATE": Opcode(0x17, (IETH,)),
    **{f"UC_{name}": Opcode(0x20 + number, found) for number, (name, found) in enumerate(_SEND_AND_WRITE.items())},
    "UD_SEND_ONLY": Opcode(0x64, (DETH,)),
    "UD_SEND_ONLY_WITH_IMMEDIATE": Opcode(0x65, (DETH, IMMEDIATE)),
    "CNP": Opcode(0x81, (CNP_PADDING,), has_payload=False),
    "READ_ACKNOWLEDGE": Opcode(0xE1, (AETH,), has_payload=False),
}
"""Every RC, UC and UD opcode (table 38), CNP's, and Weft's answer to responses of READs.

docs/spec/host-transports.md has the last one.
"""

BTH = Header(
    "BTH",
    "Base transport header",
    f"{_SPECIFICATION}, 9.2",
    (
        Field(
            "opcode",
            8,
            "see below",
            values={opcode.number: name for name, opcode in OPCODES.items()},
            notation="hexadecimal",
        ),
        Field("solicited", 1, "the receiver raises an event"),
        Field("migreq", 1, "migration state"),
        Field("padcount", 2, "bytes that pad the payload to a multiple of 4"),
        Field("version", 4, is_fixed=True),
        Field("pkey", 16, "P_Key", default=0xFFFF, notation="hexadecimal"),
        Field("fecn", 1, "forward congestion notification", source=f"{_SPECIFICATION}, annex A10"),
        Field("becn", 1, "backward congestion notification", source=f"{_SPECIFICATION}, annex A10"),
        reserved(6, "resv6"),
        Field("dqpn", 24, "destination queue pair", notation="hexadecimal"),
        Field("ackreq", 1, "the receiver is to acknowledge"),
        reserved(7, "resv7"),
        Field("psn", 24, "packet sequence number"),
    ),
    p4="bth_t",
)


def datagram_udp_bytes(header: Header) -> int:
    """Return the UDP length of a SEND ONLY datagram with this header as its only payload."""
    return sum(each.size_bytes for each in (UDP, BTH, DETH, header, ICRC))
