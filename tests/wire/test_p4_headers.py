"""The header types of p4/ have the fields that `weft/wire/` describes: widths and order, whatever the names."""

from functools import cache
from pathlib import Path

import pytest

from weft.compiler import CheckedProgram, ast, check_file
from weft.compiler.types import BitsType
from weft.wire import HEADERS, Field, Header
from weft.wire.headers import (
    aggregation,
    int_md,
    int_shim,
    mac_control,
    network,
    notification,
    parameter,
    roce,
    service,
    valiant_shim,
)

FABRIC = Path(__file__).parents[2] / "p4" / "fabric.p4"
DESCRIBED = [each for each in HEADERS.values() if each.p4]
# Parts of headers, and those of packets between a switch and its controller, which cross no link.
NOT_DESCRIBED = {
    "packet_out_t",
    "packet_in_t",
    "tcp_ports_t",
    "transport_rest_t",
    "quoted_start_t",
    "lanes_t",
    # Words of any number.
    "int_md_stack_t",
}


@cache
def checked(lanes: int = 64) -> CheckedProgram:
    """Every header of the fabric's program, with all modules."""
    modules = {"SERVICE_SYNCHRONISATION": "1", "SERVICE_PARAMETER_CACHE": "1", "INT_MD": "1", "BOLT": "1"}
    return check_file(FABRIC, defines={**modules, "AGGREGATION_LANES": str(lanes)})


def p4_headers(lanes: int = 64) -> dict[str, list[int]]:
    """Widths of the fields of each header type, in order."""
    found = {}
    for each in checked(lanes).tree.declarations:
        if isinstance(each, ast.StructDeclaration) and each.kind == "header":
            types = [field.type for field in each.fields]
            if each.name in NOT_DESCRIBED:
                found[each.name] = [getattr(type_, "width", 0) for type_ in types]
                continue
            assert all(isinstance(type_, BitsType) and not type_.signed for type_ in types)
            found[each.name] = [type_.width for type_ in types]
    return found


def constants(lanes: int = 64) -> dict[str, int]:
    declared = (each for each in checked(lanes).tree.declarations if isinstance(each, ast.ConstantDeclaration))
    return {each.name: each.value for each in declared}


def described_widths(header: Header) -> list[int]:
    """Without lists of headers: P4 has stacks, of a header type of their own."""
    return [field.bits for name, field in header.numbers() if "." not in name]


@pytest.mark.parametrize("header", DESCRIBED, ids=lambda each: each.name)
def test_a_header_type_has_the_fields_that_are_described(header: Header) -> None:
    assert p4_headers()[header.p4] == described_widths(header)


def test_every_header_type_is_described() -> None:
    assert p4_headers().keys() - NOT_DESCRIBED == {each.p4 for each in DESCRIBED}


@pytest.mark.parametrize("lanes", [count for count in aggregation.LANE_COUNTS if count])
def test_lanes_are_as_wide_and_as_many_as_described(lanes: int) -> None:
    lane = aggregation.AGGREGATION.fields[-1]
    assert p4_headers(lanes)["lanes_t"] == [lane.each.bits] * lanes
    below = roce.datagram_udp_bytes(aggregation.AGGREGATION)
    assert constants(lanes)["UDP_LENGTH_LANES"] == below + aggregation.LANE_BYTES * lanes


def test_as_many_hops_are_parsed_as_described() -> None:
    declared = (each for each in checked().tree.declarations if isinstance(each, ast.StructDeclaration))
    (headers,) = (each for each in declared if each.name == "headers_t")
    (hops,) = (field.type for field in headers.fields if field.name == "int_hops")
    assert hops.size == int_shim.INT_HOP_SLOTS


def enumerated(prefix: str, field: Field) -> dict[str, int]:
    return {f"{prefix}_{name.upper()}": value for value, name in field.values.items()}


NOTIFICATION_BYTES = sum(each.size_bytes for each in (network.ETHERNET, network.UDP, notification.SWITCH_NOTIFICATION))
EXPECTED = {
    "ETHERTYPE_IPV4": network.IPV4_ETHERTYPE,
    "ETHERTYPE_ARP": network.ARP_ETHERTYPE,
    "ETHERTYPE_IPV6": network.IPV6_ETHERTYPE,
    "ETHERTYPE_INT_SHIM": int_shim.INT_ETHERTYPE,
    "ETHERTYPE_VALIANT": valiant_shim.VALIANT_ETHERTYPE,
    "UDP_PORT_ROCE": roce.ROCE_UDP_PORT,
    "OPCODE_UD_SEND_ONLY": roce.OPCODES["UD_SEND_ONLY"].number,
    "OPCODE_CNP": roce.OPCODES["CNP"].number,
    "QP_AGGREGATION": aggregation.CONTRIBUTION_QP,
    "QP_MULTICAST": aggregation.RESULT_QP,
    "UDP_LENGTH_HEADER_ONLY": roce.datagram_udp_bytes(aggregation.AGGREGATION),
    "IPV4_BYTES": network.IPV4.size_bytes,
    "AGGREGATION_VERSION": aggregation.HEADER_VERSION,
    "DESTINATION_ALL": aggregation.ALL_WORKERS,
    "QP_SERVICE": service.REQUEST_QP,
    "UDP_LENGTH_SERVICE": roce.datagram_udp_bytes(service.SERVICE),
    "IPV4_LENGTH_SERVICE": network.IPV4.size_bytes + roce.datagram_udp_bytes(service.SERVICE),
    "QP_PARAMETER_STORE": parameter.PARAMETER_STORE_QP,
    "QP_PARAMETER_CLIENT": parameter.PARAMETER_CLIENT_QP,
    "UDP_LENGTH_PARAMETER": roce.datagram_udp_bytes(parameter.PARAMETER),
    "UDP_LENGTH_PARAMETER_BLOCK": roce.datagram_udp_bytes(parameter.PARAMETER) + parameter.BLOCK.size_bytes,
    "SERVICE_VERSION": service.HEADER_VERSION,
    "PARAMETER_VERSION": parameter.HEADER_VERSION,
    "PARAMETER_CACHED": parameter.PARAMETER_CACHED,
    "UDP_PORT_NOTIFICATION": notification.NOTIFICATION_UDP_PORT,
    "NOTIFICATION_VERSION": notification.NOTIFICATION_VERSION,
    "LAST_WINDOW": notification.LAST_WINDOW,
    "FIRST_WINDOW": notification.FIRST_WINDOW,
    "NOTIFICATION_UDP_LENGTH": network.UDP.size_bytes + notification.SWITCH_NOTIFICATION.size_bytes,
    "NOTIFICATION_BYTES_IPV4": NOTIFICATION_BYTES + network.IPV4.size_bytes,
    "NOTIFICATION_BYTES_IPV6": NOTIFICATION_BYTES + network.IPV6.size_bytes,
    "UDP_PORT_INT_MD": int_md.INT_MD_UDP_PORT,
    "INT_TYPE_MD": int_md.INT_MD_TYPE,
    "INT_MD_VERSION": int_md.INT_MD_VERSION,
    "REPORT_VERSION": int_md.REPORT_VERSION,
    "NPT_UDP_PAYLOAD": int_md.NextProtocol.UDP_PAYLOAD,
    "NPT_LAYER_4": int_md.NextProtocol.LAYER_4,
    "REPORT_INNER_ONLY": int_md.ReportType.INNER_ONLY,
    "REPORT_INNER_IPV4": int_md.InnerType.IPV4,
    "REPORT_INNER_IPV6": int_md.InnerType.IPV6,
    "INT_MD_WORDS": int_md.INT_MD.size_bytes // 4,
    "INT_MD_FIXED_BYTES": int_md.INT_MD_SHIM.size_bytes + int_md.INT_MD.size_bytes,
    "UDP_BYTES": network.UDP.size_bytes,
    **enumerated("SERVICE", service.SERVICE.field("kind")),
    **enumerated("PARAMETER", parameter.PARAMETER.field("kind")),
    **enumerated("KIND", aggregation.AGGREGATION.field("kind")),
    **enumerated("OPERATION", aggregation.AGGREGATION.field("operation")),
    **enumerated("DATA_TYPE", aggregation.AGGREGATION.field("data_type")),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_constant_has_the_described_value(name: str) -> None:
    assert constants()[name] == EXPECTED[name]


def test_credit_updates_share_the_ethertype_of_the_shim() -> None:
    """Switches tell them apart by their destination, which reaches no pipeline."""
    assert constants()["ETHERTYPE_VALIANT"] == mac_control.CREDIT_ETHERTYPE
