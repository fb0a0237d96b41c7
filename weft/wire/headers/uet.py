"""Ultra Ethernet Transport (UET): headers of its packet delivery sublayer (PDS) and semantic sublayer (SES).

Source: Ultra Ethernet Specification 1.0.1, sections 3.4 and 3.5. docs/spec/uet.md says how the fields are known, and
which rest on an assumption.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

from weft.wire.fields import Field, Header, reserved

UET_UDP_PORT = 4793

_SPECIFICATION = "UE 1.0.1"


@dataclass(frozen=True)
class PacketType:
    """A packet type of the PDS.

    Args:
        number: in `type`.
        headers: of the PDS, in wire order.
        syn_headers: the same in a packet with `syn`; empty: the type has no such flag.
        has_semantic: a semantic header may follow; `next_header` says which.

    """

    number: int
    headers: tuple[Header, ...]
    _: KW_ONLY
    syn_headers: tuple[Header, ...] = ()
    has_semantic: bool = True


NEXT_HEADERS = {
    0: "none",
    1: "request_small",
    2: "request_medium",
    3: "request_standard",
    4: "response",
    5: "response_data",
    6: "response_data_small",
}
CONTROL_TYPES = {
    0: "noop",
    1: "ack_request",
    2: "clear_command",
    3: "clear_request",
    4: "close_command",
    5: "close_request",
    6: "probe",
    7: "credit",
    8: "credit_request",
    9: "negotiation",
}
_NACK_CODES = {
    0x01: "trimmed",
    0x02: "trimmed_lasthop",
    0x03: "trimmed_ack",
    0x04: "no_pdc_avail",
    0x05: "no_ccc_avail",
    0x06: "no_bitmap",
    0x07: "no_pkt_buffer",
    0x08: "no_gtd_del_avail",
    0x09: "no_ses_msg_avail",
    0x0A: "no_resource",
    0x0B: "psn_oor_window",
    0x0D: "rod_ooo",
    0x0E: "inv_dpdcid",
    0x0F: "pdc_hdr_mismatch",
    0x10: "closing",
    0x11: "closing_in_err",
    0x12: "pkt_not_rcvd",
    0x13: "gtd_resp_unavail",
    0x14: "ack_with_data",
    0x15: "invalid_syn",
    0x16: "pdc_mode_mismatch",
    0x17: "new_start_psn",
    0x18: "rcvd_ses_procg",
    0x19: "unexp_event",
    0x1A: "rcvr_infer_loss",
    0xFD: "exp_nack_normal",
    0xFE: "exp_nack_err",
    0xFF: "exp_nack_fatal",
}
REQUEST_OPCODES = {
    0x00: "no_op",
    0x01: "write",
    0x02: "read",
    0x03: "atomic",
    0x04: "fetching_atomic",
    0x05: "send",
    0x06: "rendezvous_send",
    0x07: "datagram_send",
    0x08: "deferrable_send",
    0x09: "tagged_send",
    0x0A: "rendezvous_tsend",
    0x0B: "deferrable_tsend",
    0x0C: "deferrable_rtr",
    0x0D: "tsend_atomic",
    0x0E: "tsend_fetch_atomic",
    0x0F: "msg_error",
}
RESPONSE_OPCODES = {0: "default_response", 1: "response", 2: "response_with_data", 3: "no_response"}
_RETURN_CODES = dict(
    enumerate(
        (
            *("null", "ok", "bad_generation", "disabled", "disabled_gen", "no_match"),
            *("unsupported_op", "unsupported_size", "at_invalid", "at_perm", "at_ats_error", "at_no_trans"),
            *("at_out_of_range", "host_poisoned", "host_unsuccess_cmpl", "amo_unsupported_op"),
            *("amo_unsupported_dt", "amo_unsupported_size", "amo_unaligned", "amo_fp_nan", "amo_fp_underflow"),
            *("amo_fp_overflow", "amo_fp_inexact", "perm_violation", "op_violation", "bad_index", "bad_pid"),
            *("bad_job_id", "bad_mkey", "bad_addr", "cancelled", "undeliverable", "uncor", "uncor_trnsnt"),
            *("too_long", "initiator_error", "dropped"),
        )
    )
)
ATOMIC_CODES = dict(
    enumerate(
        (
            *("min", "max", "sum", "diff", "prod", "lor", "land", "bor", "band", "lxor", "bxor", "read", "write"),
            *("cswap", "cswap_ne", "cswap_le", "cswap_lt", "cswap_ge", "cswap_gt", "mswap", "inval"),
        )
    )
)
_DATA_TYPES = dict(
    enumerate(
        (
            *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "int128", "uint128"),
            *("float", "double", "float_complex", "double_complex", "long_double", "long_double_complex"),
            *("bf16", "fp16"),
        )
    )
)

ATOMIC_OPCODES = (0x03, 0x04, 0x0D, 0x0E)
"""Requests with an atomic extension header."""
COMPARE_SWAP_CODES = tuple(range(0x0D, 0x13))
"""Atomic operations with two operands, which stand in a header behind the atomic one."""
RENDEZVOUS_OPCODES = (0x06, 0x0A)
"""Standard requests with a rendezvous extension header."""
DEFERRABLE_OPCODES = (0x08, 0x0B)
"""Standard requests with restart tokens in place of the buffer's offset."""
RESTART_OPCODE = 0x0C
"""Standard request with restart tokens in place of the match bits."""


def _prologue(types: Mapping[int, str], *flags: Field) -> tuple[Field, ...]:
    """Return the first 16 bits of a packet that has a semantic header."""
    return (
        Field("type", 5, default=min(types), values=types),
        Field("next_header", 4, "semantic header that follows", values=NEXT_HEADERS, is_closed=False),
        *flags,
    )


_RETX = Field("retx", 1, "retransmission")
_ACKREQ = Field("ackreq", 1, "asks for an ACK")
_ECN = Field("m", 1, "the packet that is answered was marked (ECN CE)")
_SPDCID = Field("spdcid", 16, "packet delivery context (PDC) of the sender")
_DPDCID = Field("dpdcid", 16, "PDC of the destination")
_NEW_PDC = (
    Field("use_rsv_pdc", 1, "the PDC is to be a reserved one"),
    reserved(3, "reserved3"),
    Field("psn_offset", 12, "from the first PSN of the new PDC to `psn`"),
)
_PSN = Field("psn", 32, "packet sequence number")


def _request(name: str, title: str, syn: int, last: tuple[Field, ...]) -> Header:
    return Header(
        name,
        title,
        f"{_SPECIFICATION}, tables 3-33 and 3-34",
        (
            *_prologue(
                {2: "rud_request", 3: "rod_request", 13: "rud_cc_request", 14: "rod_cc_request"},
                reserved(2, "reserved1"),
                _RETX,
                _ACKREQ,
                Field("syn", 1, default=syn, is_fixed=True),
                reserved(2, "reserved2"),
            ),
            Field("clear_psn_offset", 16, "from `psn` to the last PSN that is cleared", notation="signed"),
            _PSN,
            _SPDCID,
            *last,
        ),
    )


REQUEST = _request("UETRequest", "RUD or ROD request", 0, (_DPDCID,))
SYN_REQUEST = _request("UETSynRequest", "RUD or ROD request that establishes a PDC", 1, _NEW_PDC)
REQUEST_CC_STATE = Header(
    "UETRequestCCState",
    "Congestion control state of a request",
    f"{_SPECIFICATION}, table 3-34",
    (
        Field("ccc_id", 8, "congestion control context (CCC)"),
        Field("credit_target", 24, "credit that the sender asks for"),
    ),
)
ACK = Header(
    "UETAck",
    "ACK",
    f"{_SPECIFICATION}, table 3-35",
    (
        *_prologue(
            {7: "ack", 8: "ack_cc", 9: "ack_ccx"},
            reserved(1, "reserved1"),
            _ECN,
            Field("retx", 1, "the packet that is answered was a retransmission"),
            Field("probe", 1, "answers a probe"),
            Field("req", 2, "of the initiator", values={0: "none", 1: "clear", 2: "close"}, is_closed=False),
            reserved(1, "reserved2"),
        ),
        Field(
            "ack_psn_offset",
            16,
            "from `cack_psn` to the PSN that is answered; with `probe` the probe's `probe_opaque`",
            notation="signed",
        ),
        Field("cack_psn", 32, "all packets up to this PSN have arrived"),
        _SPDCID,
        _DPDCID,
    ),
)
ACK_CC = Header(
    "UETAckCC",
    "Extension of ACK_CC and ACK_CCX",
    f"{_SPECIFICATION}, tables 3-36 and 3-37",
    (
        Field("cc_type", 4, "kind of the state that follows", values={0: "nscc", 1: "credit"}, is_closed=False),
        Field("cc_flags", 4, notation="hexadecimal"),
        Field("mpr", 8, "maximum PSN range"),
        Field("sack_psn_offset", 16, "from `cack_psn` to the PSN of bit 0", notation="signed"),
        Field("sack_bitmap", 64, "1: arrived", notation="hexadecimal"),
    ),
)
NSCC_STATE = Header(
    "UETNSCCState",
    "State of ACK_CC for NSCC",
    f"{_SPECIFICATION}, table 3-36",
    (
        Field("service_time", 16, "time that the target took"),
        Field("restore_cwnd", 1, "the window may grow back"),
        Field("rcv_cwnd_pend", 7, "penalty on the window"),
        Field("rcvd_bytes", 24, "received, in the unit of the specification"),
        Field("ooo_count", 16, "packets that have arrived out of order"),
    ),
)
CREDIT_STATE = Header(
    "UETCreditState",
    "State of ACK_CC for credits",
    f"{_SPECIFICATION}, table 3-36",
    (
        Field("credit", 24),
        reserved(24),
        Field("ooo_count", 16, "packets that have arrived out of order"),
    ),
)
OTHER_CC_STATE = Header(
    "UETOtherCCState",
    "State of ACK_CC of any other type",
    f"{_SPECIFICATION}, table 3-36",
    (Field("state", 64, notation="hexadecimal"),),
)
CCX_STATE = Header(
    "UETCCXState",
    "State of ACK_CCX",
    f"{_SPECIFICATION}, table 3-37",
    (Field("state1", 64, notation="hexadecimal"), Field("state2", 64, notation="hexadecimal")),
)
CC_STATES: Mapping[int, Header] = {0: NSCC_STATE, 1: CREDIT_STATE}
"""State of an ACK_CC by its `cc_type`; others have `OTHER_CC_STATE`."""

NACK = Header(
    "UETNack",
    "NACK",
    f"{_SPECIFICATION}, table 3-40",
    (
        Field("type", 5, default=10, values={10: "nack", 12: "nack_ccx"}),
        reserved(4, "next_header"),
        reserved(1, "reserved1"),
        _ECN,
        Field("retx", 1, "the packet that is answered was a retransmission"),
        Field("nt", 1, "the packet that is answered", values={0: "rud_or_rod", 1: "rudi"}),
        reserved(3, "reserved2"),
        Field("nack_code", 8, "see below", values=_NACK_CODES, is_closed=False, notation="hexadecimal"),
        Field("vendor_code", 8, "the manufacturer's", notation="hexadecimal"),
        Field("nack_psn", 32, "PSN that is answered; with `nt` 1 its `pkt_id`"),
        _SPDCID,
        _DPDCID,
        Field("nack_payload", 32, "depends on `nack_code`", notation="hexadecimal"),
    ),
)
NACK_CCX = Header(
    "UETNackCCX",
    "Extension of NACK_CCX",
    f"{_SPECIFICATION}, table 3-41",
    (
        Field("nccx_type", 4),
        Field("state1", 60, notation="hexadecimal"),
        Field("state2", 64, notation="hexadecimal"),
    ),
)


def _control(name: str, title: str, syn: int, last: tuple[Field, ...]) -> Header:
    return Header(
        name,
        title,
        f"{_SPECIFICATION}, table 3-38",
        (
            Field("type", 5, default=11, values={11: "control"}),
            Field("ctl_type", 4, values=CONTROL_TYPES, is_closed=False),
            reserved(1, "reserved1"),
            Field("isrod", 1, "the PDC is ROD's; in noop and negotiation"),
            _RETX,
            _ACKREQ,
            Field("syn", 1, default=syn, is_fixed=True),
            reserved(2, "reserved2"),
            Field("probe_opaque", 16, "of a probe; its ACK returns it", notation="hexadecimal"),
            _PSN,
            _SPDCID,
            *last,
            Field("ctl_payload", 32, "depends on `ctl_type`", notation="hexadecimal"),
        ),
    )


CONTROL = _control("UETControl", "Control packet", 0, (_DPDCID,))
SYN_CONTROL = _control("UETSynControl", "Control packet that establishes a PDC", 1, _NEW_PDC)
RUDI = Header(
    "UETRudi",
    "RUDI request or response",
    f"{_SPECIFICATION}, table 3-39",
    (
        *_prologue(
            {4: "rudi_request", 5: "rudi_response"},
            reserved(1, "reserved1"),
            Field("m", 1, "of a response: the request was marked (ECN CE)"),
            _RETX,
            reserved(4, "reserved2"),
        ),
        reserved(16, "reserved3"),
        Field("pkt_id", 32, "number of the packet; the response has the request's"),
    ),
)
UUD = Header(
    "UETUud",
    "UUD request",
    f"{_SPECIFICATION}, table 3-42",
    (*_prologue({6: "uud_request"}, reserved(7, "flags")), reserved(16)),
)

PACKET_TYPES: Mapping[str, PacketType] = {
    "RUD_REQUEST": PacketType(2, (REQUEST,), syn_headers=(SYN_REQUEST,)),
    "ROD_REQUEST": PacketType(3, (REQUEST,), syn_headers=(SYN_REQUEST,)),
    "RUDI_REQUEST": PacketType(4, (RUDI,)),
    "RUDI_RESPONSE": PacketType(5, (RUDI,)),
    "UUD_REQUEST": PacketType(6, (UUD,)),
    "ACK": PacketType(7, (ACK,)),
    "ACK_CC": PacketType(8, (ACK, ACK_CC, OTHER_CC_STATE)),
    "ACK_CCX": PacketType(9, (ACK, ACK_CC, CCX_STATE)),
    "NACK": PacketType(10, (NACK,), has_semantic=False),
    "CONTROL": PacketType(11, (CONTROL,), syn_headers=(SYN_CONTROL,), has_semantic=False),
    "NACK_CCX": PacketType(12, (NACK, NACK_CCX), has_semantic=False),
    "RUD_CC_REQUEST": PacketType(13, (REQUEST, REQUEST_CC_STATE), syn_headers=(SYN_REQUEST, REQUEST_CC_STATE)),
    "ROD_CC_REQUEST": PacketType(14, (REQUEST, REQUEST_CC_STATE), syn_headers=(SYN_REQUEST, REQUEST_CC_STATE)),
}
"""Packet types of the PDS that have a layout here. In place of `OTHER_CC_STATE`, `cc_type` may say another."""


def _opcode_and_flags(opcodes: Mapping[int, str], hd: Field, som: Field, eom: Field) -> tuple[Field, ...]:
    return (
        reserved(2, "reserved1"),
        Field("opcode", 6, default=min(opcodes), values=opcodes),
        Field("version", 2, is_fixed=True),
        Field("dc", 1, "respond when the data is globally observable"),
        Field("ie", 1, "the initiator had an error"),
        Field("rel", 1, "addressing", values={0: "absolute", 1: "relative"}),
        hd,
        eom,
        som,
    )


_HAS_HEADER_DATA = Field("hd", 1, "the message has header data")
_END = Field("eom", 1, "last packet of the message", default=1)
_RESOURCE = (
    Field("ri_generation", 8, "generation of the resource index"),
    Field("job_id", 24, "job"),
    reserved(4, "reserved2"),
    Field("pid_on_fep", 12, "process at the target (PIDonFEP)"),
    reserved(4, "reserved3"),
    Field("resource_index", 12, "resource index at the target"),
)
_INITIATOR = Field("initiator", 32, "initiator's id", notation="hexadecimal")
_BUFFER_OFFSET = Field("buffer_offset", 64, "offset in the target's buffer")
_MATCH_BITS = Field("match_bits", 64, "match bits, or memory key", notation="hexadecimal")
_HEADER_DATA = (Field("header_data", 64, "completion data, with `hd`", notation="hexadecimal"),)
_PLACE_IN_MESSAGE = (
    reserved(18, "reserved4"),
    Field("payload_length", 14, "bytes of payload in the packet"),
    Field("message_offset", 32, "bytes of the message before the packet's"),
)
_TOKENS = (
    Field("initiator_token", 32, "initiator's restart token", notation="hexadecimal"),
    Field("target_token", 32, "target's restart token", notation="hexadecimal"),
)


def _standard(
    name: str,
    title: str,
    opcodes: Mapping[int, str],
    *,
    som: int | None,
    place: tuple[Field, ...] = (_BUFFER_OFFSET,),
    key: tuple[Field, ...] = (_MATCH_BITS,),
    data: tuple[Field, ...] = _HEADER_DATA,
) -> Header:
    first = (
        Field("som", 1, "first packet of the message", default=1)
        if som is None
        else Field("som", 1, default=som, is_fixed=True)
    )
    return Header(
        name,
        title,
        f"{_SPECIFICATION}, tables 3-8 and 3-9",
        (
            *_opcode_and_flags(opcodes, _HAS_HEADER_DATA, first, _END),
            Field("message_id", 16, "message"),
            *_RESOURCE,
            *place,
            _INITIATOR,
            *key,
            *data,
            Field("request_length", 32, "bytes of the message"),
        ),
    )


_DEFERRABLE = {number: REQUEST_OPCODES[number] for number in DEFERRABLE_OPCODES}
_RESTART = {RESTART_OPCODE: REQUEST_OPCODES[RESTART_OPCODE]}
_PLAIN = {number: name for number, name in REQUEST_OPCODES.items() if number not in {*_DEFERRABLE, RESTART_OPCODE}}

STANDARD = _standard("UETStandard", "Standard request, first packet", _PLAIN, som=1)
CONTINUATION = _standard("UETContinuation", "Standard request, later packet", _PLAIN, som=0, data=_PLACE_IN_MESSAGE)
DEFERRABLE = _standard("UETDeferrable", "Deferrable send, first packet", _DEFERRABLE, som=1, place=_TOKENS)
DEFERRABLE_CONTINUATION = _standard(
    "UETDeferrableContinuation",
    "Deferrable send, later packet",
    _DEFERRABLE,
    som=0,
    place=_TOKENS,
    data=_PLACE_IN_MESSAGE,
)
RESTART = _standard("UETRestart", "Ready to restart", _RESTART, som=None, key=_TOKENS)


def _short(name: str, title: str, hd: Field, last: tuple[Field, ...]) -> Header:
    """Return a header of a message of one packet."""
    som = Field("som", 1, "first packet of the message: 1", default=1)
    return Header(
        name,
        title,
        f"{_SPECIFICATION}, table 3-10",
        (
            *_opcode_and_flags(REQUEST_OPCODES, hd, som, Field("eom", 1, "last one: 1", default=1)),
            reserved(2, "reserved4"),
            Field("request_length", 14, "bytes of the message"),
            *_RESOURCE,
            *last,
        ),
    )


SMALL = _short("UETSmall", "Small request", reserved(1, "hd"), (_BUFFER_OFFSET,))
MEDIUM = _short(
    "UETMedium",
    "Medium request",
    _HAS_HEADER_DATA,
    (
        Field("buffer_offset", 64, "offset in the target's buffer; with `hd` the header data"),
        _INITIATOR,
        _MATCH_BITS,
    ),
)
RENDEZVOUS = Header(
    "UETRendezvous",
    "Rendezvous extension",
    _SPECIFICATION,
    (
        Field("eager_length", 32, "bytes that are sent at once"),
        Field("read_ri_generation", 8, "of the buffer from which the target reads the rest"),
        Field("read_pid_on_fep", 12, "the same"),
        Field("read_resource_index", 12, "the same"),
        Field("read_offset", 64, "the same"),
        Field("read_mem_key", 64, "the same", notation="hexadecimal"),
    ),
)
ATOMIC = Header(
    "UETAtomic",
    "Atomic extension",
    _SPECIFICATION,
    (
        Field("atomic_code", 8, "operation, see below", values=ATOMIC_CODES, is_closed=False, notation="hexadecimal"),
        Field(
            "atomic_datatype",
            8,
            "of the operands, see below",
            values=_DATA_TYPES,
            is_closed=False,
            notation="hexadecimal",
        ),
        Field("semantic_control", 8, "bit 0: cacheable, bit 1: coherent with the CPU", notation="hexadecimal"),
        reserved(8),
    ),
)
COMPARE_SWAP = Header(
    "UETCompareSwap",
    "Operands of compare and swap",
    _SPECIFICATION,
    (
        Field("compare_high", 64, "upper half of the value to compare with", notation="hexadecimal"),
        Field("compare_low", 64, "lower half", notation="hexadecimal"),
        Field("swap_high", 64, "upper half of the value to store", notation="hexadecimal"),
        Field("swap_low", 64, "lower half", notation="hexadecimal"),
    ),
)
_RESPONSE_HEAD = (
    Field("list", 2, "list where the message matched", values={0: "expected", 1: "overflow"}, is_closed=False),
    Field("opcode", 6, values=RESPONSE_OPCODES, is_closed=False),
    Field("version", 2, is_fixed=True),
    Field("return_code", 6, "see below", values=_RETURN_CODES, is_closed=False),
)
_JOB = Field("job_id", 24, "the request's")
_MODIFIED = Field("modified_length", 32, "bytes of the target's buffer that change")
RESPONSE = Header(
    "UETResponse",
    "Response",
    f"{_SPECIFICATION}, table 3-11",
    (
        *_RESPONSE_HEAD,
        Field("message_id", 16, "the request's"),
        Field("ri_generation", 8, "generation that the target has, if the request's is another"),
        _JOB,
        _MODIFIED,
    ),
)
RESPONSE_DATA = Header(
    "UETResponseData",
    "Response with data",
    f"{_SPECIFICATION}, table 3-12",
    (
        *_RESPONSE_HEAD,
        Field("response_message_id", 16, "message"),
        reserved(8, "reserved1"),
        _JOB,
        Field("read_request_message_id", 16, "message_id of the request"),
        reserved(2, "reserved2"),
        Field("payload_length", 14, "bytes of payload in the packet"),
        _MODIFIED,
        Field("message_offset", 32, "bytes of the message before the packet's"),
    ),
)
SMALL_RESPONSE_DATA = Header(
    "UETSmallResponseData",
    "Small response with data",
    f"{_SPECIFICATION}, table 3-13",
    (
        *_RESPONSE_HEAD,
        reserved(2, "reserved1"),
        Field("payload_length", 14, "bytes of payload in the packet"),
        reserved(8, "reserved2"),
        _JOB,
        Field("original_request_psn", 32, "PSN of the request"),
    ),
)

SEMANTIC_HEADERS: Mapping[int, Header] = {
    1: SMALL,
    2: MEDIUM,
    4: RESPONSE,
    5: RESPONSE_DATA,
    6: SMALL_RESPONSE_DATA,
}
"""Semantic headers by `next_header`; standard requests (3) have several, which `standard_header()` returns."""


def standard_header(opcode: int, som: int) -> Header:
    """Return the layout of a standard request."""
    if opcode == RESTART_OPCODE:
        return RESTART
    if opcode in DEFERRABLE_OPCODES:
        return DEFERRABLE if som else DEFERRABLE_CONTINUATION
    return STANDARD if som else CONTINUATION


def extension(header: Header, opcode: int) -> Header | None:
    """Return the extension header behind a request, None if there is none."""
    if header not in REQUEST_HEADERS:
        return None
    if opcode in ATOMIC_OPCODES:
        return ATOMIC
    return RENDEZVOUS if opcode in RENDEZVOUS_OPCODES and header in (STANDARD, CONTINUATION) else None


REQUEST_HEADERS = (STANDARD, CONTINUATION, DEFERRABLE, DEFERRABLE_CONTINUATION, RESTART, SMALL, MEDIUM)
RESPONSE_HEADERS = (RESPONSE, RESPONSE_DATA, SMALL_RESPONSE_DATA)
DELIVERY_HEADERS = (
    *(REQUEST, SYN_REQUEST, REQUEST_CC_STATE, ACK, ACK_CC, NSCC_STATE, CREDIT_STATE, OTHER_CC_STATE, CCX_STATE),
    *(NACK, NACK_CCX, CONTROL, SYN_CONTROL, RUDI, UUD),
)
EXTENSION_HEADERS = (RENDEZVOUS, ATOMIC, COMPARE_SWAP)
HEADERS = (*DELIVERY_HEADERS, *REQUEST_HEADERS, *EXTENSION_HEADERS, *RESPONSE_HEADERS)
"""All headers of UET, in the order of the page."""

NAMED_VALUES: Mapping[str, Field] = {
    "nack_code": NACK.field("nack_code"),
    "return_code": RESPONSE.field("return_code"),
    "atomic_code": ATOMIC.field("atomic_code"),
    "atomic_datatype": ATOMIC.field("atomic_datatype"),
}
"""Fields with too many named values for a table of a header."""
