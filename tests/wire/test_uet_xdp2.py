"""UET packets of the engine read by another implementation's structures, and its read by the engine.

WEFT_XDP2_CLONE names a clone of github.com/xdp2-dev/xdp2, which has the headers as structures in Python, made after the
same specification. docs/spec/uet.md says where the two disagree.
"""

import ctypes
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.wire.described_bits import packed
from tests.wire.mrc_samples import number_of
from tests.wire.uet_samples import KINDS, Sample, plain, sample
from weft.engine import _core
from weft.wire import Field, Header
from weft.wire.headers import uet

CLONE = os.environ.get("WEFT_XDP2_CLONE", "")
MANY = 10_000

pytestmark = pytest.mark.skipif(not CLONE, reason="WEFT_XDP2_CLONE names no clone of xdp2-dev/xdp2")

COUNTS = pytest.mark.parametrize("count", [300, pytest.param(MANY, marks=pytest.mark.slow)])
# Headers of the delivery sublayer are one structure there.
DELIVERY = {
    ("UETRequest",): "UetPdsRudRodRequest",
    ("UETSynRequest",): "UetPdsRudRodRequestSyn",
    ("UETRequest", "UETRequestCCState"): "UetPdsRudRodRequestCc",
    ("UETSynRequest", "UETRequestCCState"): "UetPdsRudRodRequestSynCc",
    ("UETAck",): "UetPdsAck",
    ("UETAck", "UETAckCC", "UETNSCCState"): "UetPdsAckCcNscc",
    ("UETAck", "UETAckCC", "UETCreditState"): "UetPdsAckCcCredit",
    ("UETAck", "UETAckCC", "UETCCXState"): "UetPdsAckCcx",
    ("UETNack",): "UetPdsNack",
    ("UETNack", "UETNackCCX"): "UetPdsNackCcx",
    ("UETControl",): "UetPdsControlPkt",
    ("UETSynControl",): "UetPdsControlPktSyn",
    ("UETRudi",): "UetPdsRudiReqResp",
    ("UETUud",): "UetPdsUudReq",
}
SEMANTIC = {
    "UETStandard": "UetSesRequestSomHdrStd",
    "UETContinuation": "UetSesRequestNoSomHdrStd",
    "UETDeferrable": "UetSesDeferSendHdrStd",
    "UETDeferrableContinuation": "UetSesDeferSendHdrStd",
    "UETRestart": "UetSesReadyToRestartHdrStd",
    "UETSmall": "UetSesMessageHdrSmall",
    "UETMedium": "UetSesRequestHdrMedium",
    "UETRendezvous": "UetSesRendezvousExtHdr",
    "UETAtomic": "UetSesAtomicOpExtHdr",
    "UETResponse": "UetSesHdrResponse",
    "UETResponseData": "UetSesResponseWithDataHdr",
    "UETSmallResponseData": "UetSesResponseWithDataSmallHdr",
}
# Fields by the structures' names, where those differ.
NAMES = {
    "next_header": ("next_hdr",),
    "retx": ("retrans",),
    "ackreq": ("ackreq", "ack_req"),
    "m": ("ecn_marked",),
    "req": ("request",),
    "ack_psn_offset": ("ack_psn_offset_probe_opaque",),
    "cc_type": ("cc_type", "ccx_type"),
    "nt": ("nak_type",),
    "nack_code": ("nak_code",),
    "nack_psn": ("nak_psn_pkt_id",),
    "nack_payload": ("payload",),
    "isrod": ("rsvd_isrod",),
    "state1": ("ack_cc_state",),
    "dc": ("delivery_complete",),
    "ie": ("initiator_error",),
    "rel": ("relative_addressing",),
    "hd": ("hdr_data_present",),
    "eom": ("end_of_msg",),
    "som": ("start_of_msg",),
    "buffer_offset": ("buffer_offset", "header_data"),
    "match_bits": ("memory_key_match_bits", "match_bits", "memory_key"),
    "initiator_token": ("initiator_restart_token",),
    "target_token": ("target_restart_token",),
    "read_ri_generation": ("ri_generation",),
    "read_pid_on_fep": ("pid_on_fep",),
    "read_resource_index": ("resource_index",),
    "response_message_id": ("message_id",),
}
# Fields that the structures lack or have elsewhere: the page says why Weft has them where it does.
DISAGREEMENTS = {
    "UETCCXState": {"state2"},
    "UETNackCCX": {"state1", "state2"},
    "UETControl": {"ctl_payload"},
    "UETSynControl": {"ctl_payload"},
    "UETDeferrableContinuation": {"payload_length", "message_offset"},
    "UETSmall": {"request_length"},
    "UETMedium": {"request_length"},
    "UETRendezvous": {"read_offset", "read_mem_key"},
    "UETAtomic": {"semantic_control"},
    "UETResponseData": {"payload_length"},
}
NESTED = ("req", "ack", "cmn", "nack")


@pytest.fixture(scope="module")
def structures() -> Iterator[dict[str, Any]]:
    """Return the structures by name."""
    folder = Path(CLONE) / "src" / "tools" / "packets" / "uet"
    assert (folder / "uet_pds.py").is_file(), f"{CLONE} has no src/tools/packets/uet/uet_pds.py"
    sys.path.insert(0, str(folder))
    modules: list[ModuleType] = []
    try:
        modules += [import_module("uet_pds"), import_module("uet_ses")]
        yield {name: value for module in modules for name, value in vars(module).items()}
    finally:
        sys.path.remove(str(folder))
        for module in modules:
            del sys.modules[module.__name__]


def owner_of(structure: Any, name: str) -> tuple[Any, str] | None:
    """Return which structure has a field and what it is called there; outer ones come first."""
    for candidate in NAMES.get(name, (name,)):
        for part in (structure, *(getattr(structure, each) for each in NESTED if has(structure, each))):
            if has(part, candidate):
                return part, candidate
    return None


def has(structure: Any, name: str) -> bool:
    return name in {each[0] for each in structure._fields_}


def number_in(structure: Any, field: Field) -> int | None:
    """Return a field's bits, None if the structure has no such field."""
    if field.name == "job_id" and has(structure, "job_id1"):
        return int(structure.job_id1) << 16 | int(structure.job_id2)
    found = owner_of(structure, field.name)
    return None if found is None else int(getattr(*found))


def set_number(structure: Any, field: Field, value: int) -> None:
    if field.name == "job_id" and has(structure, "job_id1"):
        structure.job_id1, structure.job_id2 = value >> 16, value & 0xFFFF
        return
    found = owner_of(structure, field.name)
    if found is not None:
        setattr(*found, value)


def groups(drawn: Sample) -> list[tuple[str | None, list[tuple[Header, dict[str, int]]]]]:
    """Return the headers as the structures have them; None: there is no structure."""
    count = sum(header in uet.DELIVERY_HEADERS for header, _ in drawn.headers)
    delivery, rest = drawn.headers[:count], drawn.headers[count:]
    found = [(DELIVERY.get(tuple(header.name for header, _ in delivery)), list(delivery))]
    return found + [(SEMANTIC.get(header.name), [(header, values)]) for header, values in rest]


def agreed(header: Header) -> list[Field]:
    without = DISAGREEMENTS.get(header.name, set())
    return [each for each in header.fields if isinstance(each, Field) and each.name not in without]


@pytest.mark.parametrize("kind", KINDS)
@COUNTS
def test_the_structures_read_the_engine_s_packets(structures: Any, kind: str, count: int) -> None:
    for number in range(count):
        drawn = sample(kind, number)
        built = _core.build_uet(plain(drawn), drawn.payload)
        at = 0
        for name, headers in groups(drawn):
            bytes_of_group = sum(header.size_bytes for header, _ in headers)
            data, at = built[at : at + bytes_of_group], at + bytes_of_group
            if name is None:
                continue
            size = ctypes.sizeof(structures[name])
            structure = structures[name].from_buffer_copy(data + bytes(max(0, size - len(data))))
            for header, values in headers:
                for field in agreed(header):
                    found = number_in(structure, field)
                    assert field.is_fixed or found is not None, (header.name, field.name)
                    assert found in (None, values[field.name]), (kind, number, header.name, field.name)


@pytest.mark.parametrize("kind", KINDS)
@COUNTS
def test_the_engine_reads_the_structures_packets(structures: Any, kind: str, count: int) -> None:
    """Fields that they lack are 0."""
    for number in range(count):
        drawn = sample(kind, number)
        headers = tuple(
            (header, values | dict.fromkeys(DISAGREEMENTS.get(header.name, set()), 0))
            for header, values in drawn.headers
        )
        drawn = replace(drawn, headers=headers)
        datagram = b""
        for name, group in groups(drawn):
            ours = b"".join(packed(header, values) for header, values in group)
            if name is None:
                datagram += ours
                continue
            structure = structures[name]()
            for header, values in group:
                for field in agreed(header):
                    set_number(structure, field, values[field.name])
            theirs = bytes(structure)
            datagram += theirs + bytes(len(ours) - len(theirs))
        assert _core.parse_uet(datagram + drawn.payload) == (plain(drawn), drawn.payload)


def test_where_the_two_disagree(structures: Any) -> None:
    """As docs/spec/uet.md says; a later version that agrees is to be noticed."""
    sizes = {name: ctypes.sizeof(structures[name]) for name in (*DELIVERY.values(), *SEMANTIC.values())}
    by_name = {header.name: header for header in uet.HEADERS}
    different = {}
    for names, structure in (*DELIVERY.items(), *(((name,), each) for name, each in SEMANTIC.items())):
        ours = sum(by_name[name].size_bytes for name in names)
        if ours != sizes[structure]:
            different[names[-1]] = (ours, sizes[structure])
    assert different == {
        "UETCCXState": (40, 32),
        "UETNackCCX": (32, 24),
        "UETControl": (16, 12),
        "UETSynControl": (16, 12),
        "UETRendezvous": (24, 8),
    }
    response = uet.RESPONSE_DATA
    data = packed(response, {name: 0 for name, _ in response.numbers()} | {"payload_length": 0x3FFF})
    assert structures["UetSesResponseWithDataHdr"].from_buffer_copy(data).payload_length == 0xFFF
    assert number_of(response.field("payload_length"), 0x3FFF) == 0x3FFF
    atomic = packed(uet.ATOMIC, {name: 0 for name, _ in uet.ATOMIC.numbers()} | {"semantic_control": 1})
    assert structures["UetSesAtomicOpExtHdr"].from_buffer_copy(atomic).ctrl_cacheable == 0
