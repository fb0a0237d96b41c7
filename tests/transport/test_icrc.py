"""The invariant CRC against frames from elsewhere and against the specification written out."""

from typing import Any

import pytest
from hypothesis import given

from tests.transport.header_strategies import packets
from tests.transport.icrc_reference import icrc_of_frame, reseal
from weft.engine import build_packet, icrc, parse_error, parse_packet

# A CNP captured on a ConnectX-4 Lx (published with Scapy's tests, test/contrib/roce.uts).
CAPTURED_CNP = bytes.fromhex(
    "e41d2dab2bc2 7cfe90643b32 0800"
    "45c2003c718c4000401191610a0011010a001201"
    "000012b700280000"
    "8100ffff4000011800000000"
    "00000000000000000000000000000000"
    "82fd002a"
)

# A UC SEND only with two bytes of pad and a UDP checksum (same source); without its iCRC, 78 f3 53 f3.
UC_SEND = bytes.fromhex(
    "45010040047840004011b4d5c0a80007c0a80007"
    "c00012b7002caca2"
    "2460ffff000000d300cf1710"
    "4630818be28935d90e9a95505401be885e500000"
)


def test_frame_of_a_network_adapter() -> None:
    assert parse_error(CAPTURED_CNP) == "none"
    headers, payload = parse_packet(CAPTURED_CNP)
    assert payload == b""
    assert headers["bth"]["opcode"] == 0x81
    assert headers["bth"]["becn"]
    assert headers["bth"]["destination_qp"] == 0x118
    assert (headers["dscp"], headers["ecn"]) == (48, 2)
    assert build_packet(headers) == CAPTURED_CNP


def test_published_send() -> None:
    assert icrc(UC_SEND).to_bytes(4, "little") == bytes.fromhex("78f353f3")


@given(packets())
def test_built_frames_end_in_the_icrc_of_the_specification(packet: tuple[dict[str, Any], bytes]) -> None:
    frame = build_packet(*packet)  # type: ignore[arg-type]
    assert frame[-4:] == icrc_of_frame(frame)


@given(packets())
def test_what_switches_change_does_not_matter(packet: tuple[dict[str, Any], bytes]) -> None:
    headers, payload = packet
    frame = build_packet(headers, payload)  # type: ignore[arg-type]
    changed = {**headers, "dscp": headers["dscp"] ^ 0x2A, "ecn": 3, "hop_limit": headers["hop_limit"] ^ 1}
    changed["bth"] = {**headers["bth"], "fecn": not headers["bth"]["fecn"]}
    changed.pop("telemetry", None)
    assert build_packet(changed, payload)[-4:] == frame[-4:]  # type: ignore[arg-type]


def test_reseal_agrees_with_the_codec() -> None:
    assert reseal(CAPTURED_CNP) == CAPTURED_CNP


@pytest.mark.parametrize("size", [0, 19, 39])
def test_incomplete_headers_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="less than IP, UDP and BTH headers"):
        icrc(b"\x45" * size)
