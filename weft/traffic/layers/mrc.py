"""Headers of Multipath Reliable Connection (MRC), bound to the opcodes that carry them.

The BTH is Scapy's: what MRC says with its last reserved bits stands in `resv7` (`RETRANSMISSION`, `HAS_TIMESTAMP`).
Sources: `weft/wire/headers/mrc.py` and docs/spec/mrc.md.
"""

from __future__ import annotations

from scapy.packet import Packet, bind_layers

from weft.traffic.layers.made_fields import fields_of
from weft.traffic.layers.roce import AETH, BTH, RETH, ExtendedHeader
from weft.wire.headers import mrc as wire
from weft.wire.headers.mrc import MRC_OPCODES

MRC_OPCODE: dict[str, int] = {name: opcode.number for name, opcode in MRC_OPCODES.items()}
"""Every opcode of MRC."""


def _resv7_bit(name: str) -> int:
    """Return which bit of Scapy's resv7, the last of its byte, is a field of MRC's BTH."""
    behind = 0
    for field in reversed(wire.MRC_BTH.fields[:-1]):  # the last is the PSN
        if field.name == name:
            return 1 << behind
        behind += field.bits
    raise KeyError(name)


RETRANSMISSION = _resv7_bit("rtx")
HAS_TIMESTAMP = _resv7_bit("ts")


class METH(ExtendedHeader):
    """Message extended transport header, of every write."""

    name = "METH"
    described = wire.METH
    fields_desc = fields_of(described)

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return TSETH if the BTH says that there is one, else RETH."""
        below = self.underlayer
        return TSETH if isinstance(below, BTH) and below.resv7 & HAS_TIMESTAMP else RETH


class TSETH(ExtendedHeader):
    """Requestor timestamp extended header."""

    name = "TSETH"
    described = wire.TSETH
    fields_desc = fields_of(described)


class SETH(ExtendedHeader):
    """Reliability SACK; CCState follows."""

    name = "SETH"
    described = wire.SETH
    fields_desc = fields_of(described)


class CCState(ExtendedHeader):
    """Congestion control state of the responder."""

    name = "CCState"
    described = wire.CC_STATE
    fields_desc = fields_of(described)


class NETH(ExtendedHeader):
    """Reliability NACK."""

    name = "NETH"
    described = wire.NETH
    fields_desc = fields_of(described)


class PETH(ExtendedHeader):
    """Reliability probe request."""

    name = "PETH"
    described = wire.PETH
    fields_desc = fields_of(described)


class ERTH(ExtendedHeader):
    """Endpoint request: a probe of an entropy value, or which ports are up."""

    name = "ERTH"
    described = wire.ERTH
    fields_desc = fields_of(described)


class EETH(ExtendedHeader):
    """Endpoint response."""

    name = "EETH"
    described = wire.EETH
    fields_desc = fields_of(described)


_FIRST: dict[str, type[Packet]] = {layer.described.name: layer for layer in (METH, SETH, NETH, PETH, ERTH, EETH)} | {
    "AETH": AETH
}

for _opcode in MRC_OPCODES.values():
    bind_layers(BTH, _FIRST[_opcode.extensions[0].name], opcode=_opcode.number)

BTH.opcode.s2i.update(MRC_OPCODE)
BTH.opcode.i2s.update({code: name for name, code in MRC_OPCODE.items()})
