"""Layouts of headers for the Wireshark dissector, as tables in Lua."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weft.wire.fields import Field, Header, Repeated
from weft.wire.headers import (
    aggregation,
    int_shim,
    mac_control,
    mrc,
    notification,
    parameter,
    roce,
    service,
    uet,
    valiant_shim,
)
from weft.wire.headers.network import ETHERNET


def constants() -> str:
    """Return the numbers by which the dissector finds headers."""
    address = mac_control.MAC_CONTROL_ADDRESS.to_bytes(6, "big").hex().upper()
    numbers = {
        "INT_ETHERTYPE": f"0x{int_shim.INT_ETHERTYPE:04X}",
        "VALIANT_ETHERTYPE": f"0x{valiant_shim.VALIANT_ETHERTYPE:04X}",
        "MAC_CONTROL_ADDRESS": f'"{address}"',
        "CLASSES": str(mac_control.CLASSES),
        "UD_SEND_ONLY": f"0x{roce.OPCODES['UD_SEND_ONLY'].number:02X}",
        "CONTRIBUTION_QP": f"0x{aggregation.CONTRIBUTION_QP:06X}",
        "RESULT_QP": f"0x{aggregation.RESULT_QP:06X}",
        "LANE_BYTES": str(aggregation.LANE_BYTES),
        "REQUEST_QP": f"0x{service.REQUEST_QP:06X}",
        "ANSWER_QP": f"0x{service.ANSWER_QP:06X}",
        "PARAMETER_STORE_QP": f"0x{parameter.PARAMETER_STORE_QP:06X}",
        "PARAMETER_CLIENT_QP": f"0x{parameter.PARAMETER_CLIENT_QP:06X}",
        "NOTIFICATION_UDP_PORT": str(notification.NOTIFICATION_UDP_PORT),
        "UET_UDP_PORT": str(uet.UET_UDP_PORT),
    }
    return "".join(f"local {name} = {number}\n" for name, number in numbers.items())


def layouts() -> str:
    """Return every header that the dissector shows: its length in bytes, and its fields."""
    behind_ethernet = mac_control.CREDIT_UPDATE.fields[len(ETHERNET.fields) :]
    shown = {
        "INT_SHIM": int_shim.INT_SHIM.fields,
        "INT_HOP": int_shim.INT_HOP.fields,
        "VALIANT_SHIM": valiant_shim.VALIANT_SHIM.fields,
        "CREDIT_UPDATE": behind_ethernet,
        "CREDIT_LANE": mac_control.CREDIT_LANE.fields,
        "AGGREGATION": aggregation.AGGREGATION.fields,
        "SERVICE": service.SERVICE.fields,
        "PARAMETER": parameter.PARAMETER.fields,
        "NOTIFICATION": notification.SWITCH_NOTIFICATION.fields,
        **{_layout_name(each): each.fields for each in _OF_MRC},
        **{_uet_name(each): each.fields for each in uet.HEADERS},
    }
    return "\n".join([*(_layout(name, fields) for name, fields in shown.items()), _mrc_opcodes(), *_uet_tables()])


_OF_MRC = (
    mrc.MRC_BTH,
    *{each.name: each for opcode in mrc.MRC_OPCODES.values() for each in opcode.extensions}.values(),
)


def _layout_name(header: Header) -> str:
    return f"MRC_{header.name.removeprefix('Mrc').upper()}"


def _mrc_opcodes() -> str:
    """Return which headers follow the BTH of each of MRC's opcodes."""
    lines = []
    for name, opcode in mrc.MRC_OPCODES.items():
        headers = ", ".join(map(_layout_name, opcode.extensions))
        lines.append(f'  [0x{opcode.number:02X}] = {{ name = "{name}", headers = {{ {headers} }} }},')
    return "local MRC_OPCODES = {\n" + "\n".join(lines) + "\n}\n"


def _uet_name(header: Header) -> str:
    return f"UET_{header.name.removeprefix('UET').upper()}"


def _uet_tables() -> Iterator[str]:
    """Return which headers UET packets have: by type, `cc_type`, `next_header`, opcode and atomic operation."""
    yield _table_of("UET_LAYOUTS", {_quoted(each): _uet_name(each) for each in uet.HEADERS})
    yield _table_of(
        "UET_TYPES",
        {
            each.number: f'{{ name = "{name}", headers = {_names(each.headers)}, '
            f"syn_headers = {_names(each.syn_headers)}, has_semantic = {str(each.has_semantic).lower()} }}"
            for name, each in uet.PACKET_TYPES.items()
        },
    )
    yield _table_of("UET_CC_STATES", {number: _uet_name(each) for number, each in uet.CC_STATES.items()})
    yield _table_of("UET_SEMANTIC", {number: _uet_name(each) for number, each in uet.SEMANTIC_HEADERS.items()})
    yield _table_of(
        "UET_STANDARD_REQUESTS",
        {
            number: f"{{ [0] = {_uet_name(uet.standard_header(number, 0))}, "
            f"[1] = {_uet_name(uet.standard_header(number, 1))} }}"
            for number in uet.REQUEST_OPCODES
        },
    )
    yield _table_of(
        "UET_EXTENSIONS",
        {_uet_name(each): f"{{ {found} }}" for each in uet.REQUEST_HEADERS if (found := _extensions_of(each))},
    )
    yield _table_of("UET_COMPARE_SWAP", dict.fromkeys(uet.COMPARE_SWAP_CODES, "true"))


def _extensions_of(header: Header) -> str:
    found = {number: uet.extension(header, number) for number in header.field("opcode").values}
    return ", ".join(f"[{number}] = {_uet_name(each)}" for number, each in found.items() if each)


def _names(headers: tuple[Header, ...]) -> str:
    return f"{{ {', '.join(map(_uet_name, headers))} }}"


def _quoted(header: Header) -> str:
    return f'"{header.name.removeprefix("UET").lower()}"'


def _table_of(name: str, entries: Mapping[int | str, str]) -> str:
    lines = [f"  [{key}] = {value}," for key, value in entries.items()]
    return f"local {name} = {{\n" + "\n".join(lines) + "\n}\n"


def _layout(name: str, fields: tuple[Field | Repeated, ...]) -> str:
    """Return a header without its lists, which the dissector shows by itself."""
    plain = [each for each in fields if isinstance(each, Field)]
    lines = [f"  bytes = {sum(each.bits for each in plain) // 8},", *(f"  {_entry(each)}," for each in plain)]
    return f"local {name} = {{\n" + "\n".join(lines) + "\n}\n"


def _entry(field: Field) -> str:
    parts = [f'name = "{_shown_name(field)}"', f"bits = {field.bits}", f'label = "{_label(field)}"']
    if field.is_fixed:
        parts.append(f"fixed = {field.default}")
    if field.notation == "hexadecimal":
        parts.append("hex = true")
    if field.notation == "signed":
        parts.append("signed = true")
    if field.unit_bytes:
        parts.append(f"unit = {field.unit_bytes}")
    if field.values:
        names = ", ".join(f'[{value}] = "{name}"' for value, name in field.values.items())
        parts.append(f"names = {{ {names} }}")
    return "{ " + ", ".join(parts) + " }"


def _shown_name(field: Field) -> str:
    """Return "tx_bytes" for "tx_units": the dissector shows bytes."""
    return f"{field.name.rpartition('_')[0]}_bytes" if field.unit_bytes else field.name


def _label(field: Field) -> str:
    return field.label or field.name.replace("_", " ").capitalize()
