"""Scapy's layers and the descriptions in `weft/wire/` are one format."""

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.fields import MultipleTypeField
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, raw

from tests.wire.described_bits import headers, packed, unpacked
from weft.traffic import layers
from weft.traffic.layers.made_fields import fields_of
from weft.wire import HEADERS, Field, Header, Repeated, reserved
from weft.wire.headers.mac_control import CREDIT_UPDATE, PRIORITY_PAUSE
from weft.wire.headers.network import ETHERNET

MADE = {
    name: layer
    for name in HEADERS
    if (layer := getattr(layers, name, None)) is not None and layer.__module__.startswith("weft.")
}
# Scapy's own, with which frames are built: their fields may stand for several, or be parts of one.
OF_SCAPY: dict[str, Packet] = {
    "BTH": layers.BTH(),
    "AETH": layers.AETH(),
    "CNPPadding": layers.CNPPadding(),
    "Ether": Ether(),
    "ARP": ARP(hwlen=6, plen=4),
    "IP": IP(),
    "IPv6": IPv6(),
    "ICMP": ICMP(),
    "UDP": UDP(),
}
# An IPv6 neighbour's message is several layers in Scapy; the others are bytes, but for PriorityPause (below) and
# MrcBTH, with which Scapy's BTH is compared in test_mrc.py. weft/traffic/int_md_format.py reads INT-MD.
WITHOUT_LAYER = {
    *("PriorityPause", "ICMPv6ND", "ICRC", "ParameterBlock", "MrcBTH"),
    *("IntMdShim", "IntMd", "IntMdNode", "IntMdInterfaces", "IntMdLatency", "IntMdQueue", "IntMdTime"),
    *("TelemetryReportGroup", "TelemetryReport"),
}


def width(packet: Packet, field: Any) -> int:
    """Return how many bits a field of a layer of Scapy's own takes."""
    chosen = field._find_fld_pkt(packet) if isinstance(field, MultipleTypeField) else field
    return round(8 * chosen.sz)


def boundaries(bits: list[Any]) -> set[int]:
    return set(accumulate(bits))


def described(header: Header) -> list[int]:
    return [field.bits for _, field in header.numbers()]


def test_every_header_has_a_layer() -> None:
    assert {*MADE, *OF_SCAPY, *WITHOUT_LAYER} == HEADERS.keys()
    assert not MADE.keys() & OF_SCAPY.keys()


@pytest.mark.parametrize("name", OF_SCAPY)
def test_scapy_s_own_layers_have_the_described_fields(name: str) -> None:
    """Every field begins and ends with one that is described, and all within the header are there."""
    packet, header = OF_SCAPY[name], HEADERS[name]
    found = [width(packet, field) for field in packet.fields_desc]
    ends = {end for end in boundaries(found) if end <= header.bits}
    assert ends <= boundaries(described(header))
    assert header.bits in ends


@pytest.mark.parametrize("name", ["BTH", "AETH", "CNPPadding"])
def test_layers_of_rocev2_have_the_described_names_and_values(name: str) -> None:
    layer, header = OF_SCAPY[name], HEADERS[name]
    found = layer.fields_desc[: len(header.fields)]
    assert [(each.name, each.default) for each in found] == [(each.name, each.default) for each in header.fields]


def test_pauses_are_scapy_s() -> None:
    """Scapy splits the class vector; it begins behind the Ethernet header."""
    found = [8 * field.sz for field in layers.MACControlClassBasedFlowControl.fields_desc]
    assert {ETHERNET.bits + end for end in boundaries(found)} >= {
        end for end in boundaries(described(PRIORITY_PAUSE)) if end > ETHERNET.bits
    }
    assert ETHERNET.bits + sum(found) == PRIORITY_PAUSE.bits


def number_in(packet: Packet, name: str) -> int:
    """Return "hops[1].tx_units" of a layer."""
    value: Any = packet
    for part in name.split("."):
        attribute, _, index = part.partition("[")
        value = value.getfieldval(attribute)
        value = value[int(index[:-1])] if index else value
    return int(value)


def as_sender(field: Field, bits: int) -> int:
    """Return the number that a field's bits stand for."""
    return bits - (1 << field.bits) if field.notation == "signed" and bits >> (field.bits - 1) else bits


@pytest.mark.parametrize("name", MADE)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_layer_reads_and_writes_what_is_described(name: str, data: st.DataObject) -> None:
    header, layer = HEADERS[name], MADE[name]
    without = len(ETHERNET.fields) if header is CREDIT_UPDATE else 0
    header = Header(header.name, header.title, header.source, header.fields[without:])
    given_values = {"lane_count": 0} if name == "AggregationHeader" else {}
    values = data.draw(headers(header, **given_values))
    wire = packed(header, values)
    packet = layer(wire)
    numbers = {each: number_in(packet, each) % (1 << field.bits) for each, field in header.numbers()}
    assert numbers == values
    assert unpacked(header, wire) == values
    plain = {each.name: as_sender(each, values[each.name]) for each in header.fields if isinstance(each, Field)}
    lists = {each.name: packet.getfieldval(each.name) for each in header.fields if isinstance(each, Repeated)}
    assert raw(layer(**plain, **lists)) == wire


@pytest.mark.parametrize("name", MADE)
def test_a_layer_begins_with_the_described_values(name: str) -> None:
    packet = MADE[name]()
    for each in HEADERS[name].fields:
        if isinstance(each, Field) and each.name not in ("lane_count", "destination", "source", "ethertype"):
            assert packet.getfieldval(each.name) == each.default, each.name


def test_any_field_that_can_be_described_has_a_layer() -> None:
    header = Header(
        "Sample",
        "",
        "",
        (
            Field("flag", 1),
            reserved(7),
            Field("kind", 8, values={1: "one", 2: "two"}, default=1),
            Field("type", 16, values={0x800: "ip"}, notation="hexadecimal", is_closed=False),
            Field("words", 32, values={0: "none"}, is_closed=False),
            Field("address", 48, notation="mac"),
            Field("offset", 32, notation="signed"),
            Field("odd", 40, notation="hexadecimal"),
            Repeated("numbers", Field("number", 16), 3),
        ),
    )
    layer = type("Sample", (Packet,), {"name": "Sample", "fields_desc": fields_of(header)})
    packet = layer(kind="two", address="02:00:00:00:00:01", offset=-1, odd=0x1122334455, numbers=[1, 2, 3])
    assert raw(packet).hex() == "0002000000000000020000000001ffffffff1122334455000100020003"
    assert layer(raw(packet)).numbers == [1, 2, 3]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Field("f", 0), "field f: 0 bits"),
        (lambda: Field("f", 2, default=4), "field f: 4 does not fit 2 bits"),
        (lambda: Field("f", 2, values={9: "nine"}), "field f: 9 does not fit"),
        (
            lambda: Field("f", 2, values={1: "one"}, notes={2: "more"}),
            r"field f: notes on \[2\], names of \[1\]",
        ),
        (lambda: Header("H", "", "", (Field("f", 4),)), "header H: 4 bits"),
        (lambda: Header("H", "", "", (Field("f", 4), Field("f", 4))), "header H: fields f, f"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_field_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(KeyError, match=r"IntHop has no field 'rate' \(valid: rate_code, timestamp_ns"):
        HEADERS["IntHop"]["rate"]
    with pytest.raises(KeyError, match=r"IntShim\.hops is a list"):
        HEADERS["IntShim"].field("hops")
