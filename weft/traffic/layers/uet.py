"""Headers of Ultra Ethernet Transport (UET) behind UDP port 4793, each layer with what its packet says follows.

Sources: `weft/wire/headers/uet.py` and docs/spec/uet.md.
"""

from __future__ import annotations

from typing import Any

from scapy.layers.inet import UDP
from scapy.packet import Packet, Raw, bind_bottom_up, bind_top_down

from weft.traffic.layers.made_fields import fields_of
from weft.wire import Header
from weft.wire.headers import uet as wire

_LAYERS: dict[str, type[Packet]] = {}
_TYPES = {each.number: each for each in wire.PACKET_TYPES.values()}


class UETLayer(Packet):
    """A header of UET."""

    described: Header

    def __init_subclass__(cls) -> None:
        """Know the layer by the name of its header."""
        if "described" in cls.__dict__:
            _LAYERS[cls.described.name] = cls


class _Delivery(UETLayer):
    """A header of the packet delivery sublayer: the type says which follow it, and `next_header` what is behind."""

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return the next header's layer."""
        first: Packet = self
        index = 0
        while isinstance(first.underlayer, _Delivery):
            first, index = first.underlayer, index + 1
        kind = _TYPES.get(int(first.type))
        if kind is None:
            return Raw
        if index + 1 < len(kind.headers):
            header = kind.headers[index + 1]
            if header is wire.OTHER_CC_STATE:
                header = wire.CC_STATES.get(int(self.cc_type), header)
            return _LAYERS[header.name]
        return _semantic(int(first.next_header), payload) if kind.has_semantic else Raw


def _semantic(next_header: int, payload: bytes) -> type[Packet]:
    header = wire.SEMANTIC_HEADERS.get(next_header)
    if wire.NEXT_HEADERS.get(next_header) == "request_standard" and len(payload) > 1:
        header = wire.standard_header(payload[0] & 0x3F, payload[1] & 1)
    return Raw if header is None else _LAYERS[header.name]


class _Semantic(UETLayer):
    """A header of the semantic sublayer: the opcode says whether an extension follows."""

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return the extension's layer."""
        header = wire.extension(self.described, int(self.opcode))
        return Raw if header is None else _LAYERS[header.name]


class UETRequest(_Delivery):
    """RUD or ROD request."""

    name = "UETRequest"
    described = wire.REQUEST
    fields_desc = fields_of(described)


class UETSynRequest(_Delivery):
    """RUD or ROD request that establishes a packet delivery context."""

    name = "UETSynRequest"
    described = wire.SYN_REQUEST
    fields_desc = fields_of(described)


class UETRequestCCState(_Delivery):
    """Congestion control state of a request."""

    name = "UETRequestCCState"
    described = wire.REQUEST_CC_STATE
    fields_desc = fields_of(described)


class UETAck(_Delivery):
    """ACK, ACK_CC or ACK_CCX."""

    name = "UETAck"
    described = wire.ACK
    fields_desc = fields_of(described)


class UETAckCC(_Delivery):
    """Extension of ACK_CC and ACK_CCX; the state follows."""

    name = "UETAckCC"
    described = wire.ACK_CC
    fields_desc = fields_of(described)


class UETNSCCState(_Delivery):
    """State of ACK_CC for NSCC."""

    name = "UETNSCCState"
    described = wire.NSCC_STATE
    fields_desc = fields_of(described)


class UETCreditState(_Delivery):
    """State of ACK_CC for credits."""

    name = "UETCreditState"
    described = wire.CREDIT_STATE
    fields_desc = fields_of(described)


class UETOtherCCState(_Delivery):
    """State of ACK_CC of any other type."""

    name = "UETOtherCCState"
    described = wire.OTHER_CC_STATE
    fields_desc = fields_of(described)


class UETCCXState(_Delivery):
    """State of ACK_CCX."""

    name = "UETCCXState"
    described = wire.CCX_STATE
    fields_desc = fields_of(described)


class UETNack(_Delivery):
    """NACK or NACK_CCX."""

    name = "UETNack"
    described = wire.NACK
    fields_desc = fields_of(described)


class UETNackCCX(_Delivery):
    """Extension of NACK_CCX."""

    name = "UETNackCCX"
    described = wire.NACK_CCX
    fields_desc = fields_of(described)


class UETControl(_Delivery):
    """Control packet."""

    name = "UETControl"
    described = wire.CONTROL
    fields_desc = fields_of(described)


class UETSynControl(_Delivery):
    """Control packet that establishes a packet delivery context."""

    name = "UETSynControl"
    described = wire.SYN_CONTROL
    fields_desc = fields_of(described)


class UETRudi(_Delivery):
    """RUDI request or response."""

    name = "UETRudi"
    described = wire.RUDI
    fields_desc = fields_of(described)


class UETUud(_Delivery):
    """UUD request."""

    name = "UETUud"
    described = wire.UUD
    fields_desc = fields_of(described)


class UETStandard(_Semantic):
    """Standard request, first packet of its message."""

    name = "UETStandard"
    described = wire.STANDARD
    fields_desc = fields_of(described)


class UETContinuation(_Semantic):
    """Standard request, later packet."""

    name = "UETContinuation"
    described = wire.CONTINUATION
    fields_desc = fields_of(described)


class UETDeferrable(_Semantic):
    """Deferrable send, first packet."""

    name = "UETDeferrable"
    described = wire.DEFERRABLE
    fields_desc = fields_of(described)


class UETDeferrableContinuation(_Semantic):
    """Deferrable send, later packet."""

    name = "UETDeferrableContinuation"
    described = wire.DEFERRABLE_CONTINUATION
    fields_desc = fields_of(described)


class UETRestart(_Semantic):
    """Ready to restart."""

    name = "UETRestart"
    described = wire.RESTART
    fields_desc = fields_of(described)


class UETSmall(_Semantic):
    """Small request."""

    name = "UETSmall"
    described = wire.SMALL
    fields_desc = fields_of(described)


class UETMedium(_Semantic):
    """Medium request."""

    name = "UETMedium"
    described = wire.MEDIUM
    fields_desc = fields_of(described)


class UETRendezvous(UETLayer):
    """Rendezvous extension."""

    name = "UETRendezvous"
    described = wire.RENDEZVOUS
    fields_desc = fields_of(described)


class UETAtomic(UETLayer):
    """Atomic extension; operands of compare and swap may follow."""

    name = "UETAtomic"
    described = wire.ATOMIC
    fields_desc = fields_of(described)

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return the operands' layer if the operation has them."""
        return UETCompareSwap if int(self.atomic_code) in wire.COMPARE_SWAP_CODES else Raw


class UETCompareSwap(UETLayer):
    """Operands of compare and swap."""

    name = "UETCompareSwap"
    described = wire.COMPARE_SWAP
    fields_desc = fields_of(described)


class UETResponse(_Semantic):
    """Response."""

    name = "UETResponse"
    described = wire.RESPONSE
    fields_desc = fields_of(described)


class UETResponseData(_Semantic):
    """Response with data."""

    name = "UETResponseData"
    described = wire.RESPONSE_DATA
    fields_desc = fields_of(described)


class UETSmallResponseData(_Semantic):
    """Small response with data."""

    name = "UETSmallResponseData"
    described = wire.SMALL_RESPONSE_DATA
    fields_desc = fields_of(described)


def first_layer(data: bytes) -> type[Packet]:
    """Return the layer of a packet's first header; Raw for types without a layout, such as encrypted packets."""
    if len(data) < wire.UUD.size_bytes:
        return Raw
    kind = _TYPES.get(data[0] >> 3)
    if kind is None:
        return Raw
    has_syn = bool(data[1] & 0b100) and kind.syn_headers
    return _LAYERS[(kind.syn_headers if has_syn else kind.headers)[0].name]


class _First(Packet):
    """Stands for the first header until its type is known."""

    @classmethod
    def dispatch_hook(cls, data: bytes | None = None, *_: Any, **__: Any) -> type[Packet]:
        """Return the first header's layer."""
        return first_layer(data or b"")


bind_bottom_up(UDP, _First, dport=wire.UET_UDP_PORT)
for _header in {
    each.name: each for kind in _TYPES.values() for each in (kind.headers[0], *kind.syn_headers[:1])
}.values():
    bind_top_down(UDP, _LAYERS[_header.name], dport=wire.UET_UDP_PORT)
