"""RoCEv2 headers that scapy.contrib.roce lacks, bound to the opcodes that carry them.

BTH, AETH, CNP and the iCRC field come from scapy.contrib.roce. Source: InfiniBand Architecture
Specification, volume 1, chapter 9 (extended transport headers, §9.3) and table 38 (opcodes); Annex A17 for
the UDP encapsulation.
"""

from __future__ import annotations

from collections.abc import Container

from scapy.contrib.roce import AETH, BTH, CNP_OPCODE, CNPPadding, cnp
from scapy.fields import BitField, IntField, XBitField, XIntField, XLongField
from scapy.layers.inet import UDP
from scapy.packet import Packet, Raw, bind_layers

from weft.traffic.roce_port import ROCE_UDP_PORT

__all__ = [
    "AETH",
    "BTH",
    "CNP_OPCODE",
    "DETH",
    "IETH",
    "OPCODE",
    "RETH",
    "ROCE_UDP_PORT",
    "AtomicAETH",
    "AtomicAckETH",
    "AtomicETH",
    "CNPPadding",
    "ImmDt",
    "cnp",
    "is_datagram",
]


_RC_OPERATIONS = (
    "SEND_FIRST",
    "SEND_MIDDLE",
    "SEND_LAST",
    "SEND_LAST_WITH_IMMEDIATE",
    "SEND_ONLY",
    "SEND_ONLY_WITH_IMMEDIATE",
    "RDMA_WRITE_FIRST",
    "RDMA_WRITE_MIDDLE",
    "RDMA_WRITE_LAST",
    "RDMA_WRITE_LAST_WITH_IMMEDIATE",
    "RDMA_WRITE_ONLY",
    "RDMA_WRITE_ONLY_WITH_IMMEDIATE",
    "RDMA_READ_REQUEST",
    "RDMA_READ_RESPONSE_FIRST",
    "RDMA_READ_RESPONSE_MIDDLE",
    "RDMA_READ_RESPONSE_LAST",
    "RDMA_READ_RESPONSE_ONLY",
    "ACKNOWLEDGE",
    "ATOMIC_ACKNOWLEDGE",
    "COMPARE_SWAP",
    "FETCH_ADD",
)
_UC_OPERATIONS = _RC_OPERATIONS[:12]

OPCODE: dict[str, int] = {
    **{f"RC_{name}": code for code, name in enumerate(_RC_OPERATIONS)},
    "RC_SEND_LAST_WITH_INVALIDATE": 0x16,
    "RC_SEND_ONLY_WITH_INVALIDATE": 0x17,
    **{f"UC_{name}": 0x20 + code for code, name in enumerate(_UC_OPERATIONS)},
    "UD_SEND_ONLY": 0x64,
    "UD_SEND_ONLY_WITH_IMMEDIATE": 0x65,
    "CNP": CNP_OPCODE,
    "READ_ACKNOWLEDGE": 0xD1,
}
"""Every RC, UC and UD opcode, CNP's, and Weft's answer to responses of READs (docs/spec/host-transports.md)."""


def _opcode_below(layer: Packet) -> int | None:
    """Return the opcode of the BTH that this extended header follows."""
    below = layer.underlayer
    while below is not None and not isinstance(below, BTH):
        below = below.underlayer
    return None if below is None else int(below.opcode)


class ImmDt(Packet):
    """Immediate data (§9.3.6): 32 bits handed to the receiver with the completion."""

    name = "ImmDt"
    fields_desc = [XIntField("immediate", 0)]


class IETH(Packet):
    """Invalidate extended transport header (§9.3.7): the R_Key that the receiver shall invalidate."""

    name = "IETH"
    fields_desc = [XIntField("rkey", 0)]


class RETH(Packet):
    """RDMA extended transport header (§9.3.3): where in remote memory, and how many bytes of the message."""

    name = "RETH"
    fields_desc = [XLongField("va", 0), XIntField("rkey", 0), IntField("dma_length", 0)]

    _IMMEDIATE = frozenset(OPCODE[f"{service}_RDMA_WRITE_ONLY_WITH_IMMEDIATE"] for service in ("RC", "UC"))

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """A write with immediate carries ImmDt after RETH."""
        return ImmDt if _opcode_below(self) in self._IMMEDIATE else Raw


class DETH(Packet):
    """Datagram extended transport header (§9.3.2): the queue key and who sends."""

    name = "DETH"
    fields_desc = [XIntField("qkey", 0), BitField("reserved", 0, 8), XBitField("source_qp", 0, 24)]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """A datagram with immediate carries ImmDt; else the layers bound to DETH (aggregation) decide."""
        if _opcode_below(self) == OPCODE["UD_SEND_ONLY_WITH_IMMEDIATE"]:
            return ImmDt
        found: type[Packet] = super().guess_payload_class(payload)
        return found


def is_datagram(deth: Packet, queue_pairs: Container[int], udp_lengths: Container[int]) -> bool:
    """Return whether a frame, dissected up to its DETH, is a SEND ONLY to these queue pairs, of these UDP lengths."""
    bth = deth.underlayer
    if not isinstance(bth, BTH) or not isinstance(bth.underlayer, UDP):
        return False
    return (
        bth.opcode == OPCODE["UD_SEND_ONLY"] and bth.dqpn in queue_pairs and bth.underlayer.len in udp_lengths
    )


class AtomicETH(Packet):
    """Atomic extended transport header (§9.3.4): operands of compare-and-swap and fetch-and-add."""

    name = "AtomicETH"
    fields_desc = [
        XLongField("va", 0),
        XIntField("rkey", 0),
        XLongField("swap_add", 0),
        XLongField("compare", 0),
    ]


class AtomicAckETH(Packet):
    """Atomic acknowledge (§9.3.5.3): the value found before the operation."""

    name = "AtomicAckETH"
    fields_desc = [XLongField("original_remote_data", 0)]


class AtomicAETH(AETH):
    """The AETH of an atomic acknowledge: same fields, but AtomicAckETH follows."""

    name = "AETH"

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return AtomicAckETH, always."""
        return AtomicAckETH


def _bind(layer: type[Packet], *opcode_names: str) -> None:
    for name in opcode_names:
        bind_layers(BTH, layer, opcode=OPCODE[name])


for _service in ("RC", "UC"):
    _bind(RETH, *(f"{_service}_RDMA_WRITE_{part}" for part in ("FIRST", "ONLY", "ONLY_WITH_IMMEDIATE")))
    _bind(ImmDt, f"{_service}_RDMA_WRITE_LAST_WITH_IMMEDIATE")
    _bind(ImmDt, *(f"{_service}_SEND_{part}_WITH_IMMEDIATE" for part in ("LAST", "ONLY")))
_bind(RETH, "RC_RDMA_READ_REQUEST")
_bind(AETH, *(f"RC_RDMA_READ_RESPONSE_{part}" for part in ("FIRST", "LAST", "ONLY")))
_bind(AETH, "READ_ACKNOWLEDGE")
_bind(AtomicAETH, "RC_ATOMIC_ACKNOWLEDGE")
_bind(AtomicETH, "RC_COMPARE_SWAP", "RC_FETCH_ADD")
_bind(IETH, "RC_SEND_LAST_WITH_INVALIDATE", "RC_SEND_ONLY_WITH_INVALIDATE")
_bind(DETH, "UD_SEND_ONLY", "UD_SEND_ONLY_WITH_IMMEDIATE")

# scapy.contrib.roce has no names for the two opcodes with invalidate.
BTH.opcode.s2i.update(OPCODE)
BTH.opcode.i2s.update({code: name for name, code in OPCODE.items()})
