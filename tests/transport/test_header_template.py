"""Packets of a queue pair come from a template, and are the same as those written field by field."""

from typing import Any

import pytest
from hypothesis import given

from tests.transport.header_strategies import RC_ACKNOWLEDGE, RC_WRITE_ONLY, packets
from weft.engine import HeaderTemplate, build_packet

Packet = tuple[dict[str, Any], bytes]

OF_ONE_VERSION = {"flow_label", "identification", "dont_fragment"}
KEPT = {"destination_mac", "source_mac", "source_ip", "destination_ip", "dscp", "ecn", "hop_limit"}
KEPT_IN_BTH = ("partition_key", "destination_qp", "fecn", "migrated")
HEADERS = {
    "source_ip": "10.0.0.1",
    "destination_ip": "10.0.0.2",
    "bth": {"opcode": RC_WRITE_ONLY, "destination_qp": 7},
}


def earlier_packet(later: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Headers of a packet of the same queue pair, with all else from another packet."""
    headers = {name: value for name, value in other.items() if name not in OF_ONE_VERSION}
    headers |= {name: later[name] for name in KEPT | OF_ONE_VERSION - {"flow_label"} if name in later}
    headers["bth"] = other["bth"] | {name: later["bth"][name] for name in KEPT_IN_BTH}
    return headers


@given(packets(), packets())
def test_a_template_builds_what_is_built_field_by_field(packet: Packet, other: Packet) -> None:
    headers, payload = packet
    template = HeaderTemplate(earlier_packet(headers, other[0]))  # type: ignore[arg-type]
    frame = build_packet(headers, payload)  # type: ignore[arg-type]
    for _ in range(2):  # a packet leaves nothing behind in it
        assert template.build(headers, payload) == frame  # type: ignore[arg-type]
    zeros = build_packet(headers, bytes(len(payload)))  # type: ignore[arg-type]
    assert template.build_as_length(headers, len(payload)) == zeros[:-4] + bytes(4)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "payload", "message"),
    [
        ({"bth": {"opcode": 0x15}}, b"", "unknown BTH opcode 21"),
        ({"bth": {"opcode": RC_WRITE_ONLY, "psn": 1 << 24}}, b"", "psn is 16777216"),
        ({"flow_label": 1 << 20}, b"", "flow_label"),
        ({"bth": {"opcode": RC_ACKNOWLEDGE}}, b"abcd", "carries no payload"),
        ({}, bytes(0xFFFF), "does not fit an IP packet"),
    ],
)
def test_what_the_codec_refuses_is_refused(changes: dict[str, Any], payload: bytes, message: str) -> None:
    template = HeaderTemplate(HEADERS)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        build_packet(HEADERS | changes, payload)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        template.build(HEADERS | changes, payload)  # type: ignore[arg-type]


def test_a_template_of_two_ip_versions_is_refused() -> None:
    with pytest.raises(ValueError, match="different IP versions"):
        HeaderTemplate(HEADERS | {"destination_ip": "fd00::1"})  # type: ignore[arg-type]
