"""RoCEv2 headers that scapy.contrib.roce lacks, bound to the opcodes that carry them.

BTH, AETH, CNP and the iCRC field come from scapy.contrib.roce. Sources: `weft/wire/headers/roce.py`.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from scapy.contrib.roce import AETH, BTH, CNP_OPCODE, CNPPadding, cnp
from scapy.layers.inet import UDP
from scapy.packet import Packet, Raw, bind_layers

from weft.traffic.layers.made_fields import fields_of
from weft.wire import Header
from weft.wire.headers import roce as wire
from weft.wire.headers.mrc import MRC_OPCODES
from weft.wire.headers.roce import OPCODES, ROCE_UDP_PORT

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
    "datagram_hook",
]

OPCODE: dict[str, int] = {name: opcode.number for name, opcode in OPCODES.items()}
"""Every RC, UC and UD opcode, CNP's, and Weft's answer to responses of READs (docs/spec/host-transports.md)."""

_EXTENSIONS = {opcode.number: opcode.extensions for opcode in (*OPCODES.values(), *MRC_OPCODES.values())}
_LAYERS: dict[str, type[Packet]] = {}


class ExtendedHeader(Packet):
    """A header behind the BTH: the opcode says what follows it."""

    described: Header

    def __init_subclass__(cls) -> None:
        """Know the layer by the name of its header."""
        _LAYERS[cls.described.name] = cls

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return the opcode's next extended header, or else what the layers bound to this one decide."""
        below = self.underlayer
        while below is not None and not isinstance(below, BTH):
            below = below.underlayer
        extensions = () if below is None else _EXTENSIONS.get(int(below.opcode), ())
        if self.described in extensions[:-1]:
            return _LAYERS[extensions[extensions.index(self.described) + 1].name]
        found: type[Packet] = super().guess_payload_class(payload)
        return found


class ImmDt(ExtendedHeader):
    """Immediate data: 32 bits handed to the receiver with the completion."""

    name = "ImmDt"
    described = wire.IMMEDIATE
    fields_desc = fields_of(described)


class IETH(ExtendedHeader):
    """Invalidate extended transport header: the R_Key that the receiver shall invalidate."""

    name = "IETH"
    described = wire.IETH
    fields_desc = fields_of(described)


class RETH(ExtendedHeader):
    """RDMA extended transport header: where in remote memory, and how many bytes of the message."""

    name = "RETH"
    described = wire.RETH
    fields_desc = fields_of(described)


class DETH(ExtendedHeader):
    """Datagram extended transport header: the queue key and who sends."""

    name = "DETH"
    described = wire.DETH
    fields_desc = fields_of(described)


class AtomicETH(ExtendedHeader):
    """Atomic extended transport header: operands of compare-and-swap and fetch-and-add."""

    name = "AtomicETH"
    described = wire.ATOMIC_ETH
    fields_desc = fields_of(described)


class AtomicAckETH(ExtendedHeader):
    """Atomic acknowledge: the value found before the operation."""

    name = "AtomicAckETH"
    described = wire.ATOMIC_ACK_ETH
    fields_desc = fields_of(described)


class AtomicAETH(AETH):
    """The AETH of an atomic acknowledge: same fields, but AtomicAckETH follows."""

    name = "AETH"

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return AtomicAckETH, always."""
        return AtomicAckETH


def is_datagram(deth: Packet, queue_pairs: Container[int], udp_lengths: Container[int]) -> bool:
    """Return whether a frame, dissected up to its DETH, is a SEND ONLY to these queue pairs, of these UDP lengths."""
    bth = deth.underlayer
    if not isinstance(bth, BTH) or not isinstance(bth.underlayer, UDP):
        return False
    return bth.opcode == OPCODE["UD_SEND_ONLY"] and bth.dqpn in queue_pairs and bth.underlayer.len in udp_lengths


def datagram_hook(queue_pairs: Container[int], udp_lengths: Container[int]) -> Any:
    """Return the `dispatch_hook` of a layer that datagrams to these queue pairs and of these UDP lengths carry.

    Each layer needs its own: Scapy does not look for hooks among the bases.
    """

    def dispatch_hook(cls: type[Packet], _pkt: bytes | None = None, *args: Any, **kwargs: Any) -> type[Packet]:
        """Dissect as Raw what is ordinary RoCEv2: another opcode, destination queue pair or UDP length."""
        below = kwargs.get("_underlayer")
        return cls if below is None or is_datagram(below, queue_pairs, udp_lengths) else Raw

    return classmethod(dispatch_hook)


def _layer_behind_bth(extensions: tuple[Header, ...]) -> type[Packet]:
    """Return the layer of the first extended header. scapy.contrib.roce's AETH expects nothing behind it."""
    first = extensions[0]
    if first is wire.AETH:
        return AtomicAETH if wire.ATOMIC_ACK_ETH in extensions else AETH
    return _LAYERS[first.name]


for _opcode in OPCODES.values():
    # scapy.contrib.roce has bound the padding of CNPs.
    if _opcode.extensions and _opcode.extensions[0] is not wire.CNP_PADDING:
        bind_layers(BTH, _layer_behind_bth(_opcode.extensions), opcode=_opcode.number)

# scapy.contrib.roce has no names for the two opcodes with invalidate.
BTH.opcode.s2i.update(OPCODE)
BTH.opcode.i2s.update({code: name for name, code in OPCODE.items()})
