"""Layouts of headers for the Wireshark dissector, as tables in Lua."""

from __future__ import annotations

from weft.wire.fields import Field, Header, Repeated
from weft.wire.headers import aggregation, int_shim, mac_control, mrc, parameter, roce, service, valiant_shim
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
        **{_layout_name(each): each.fields for each in _OF_MRC},
    }
    return "\n".join([*(_layout(name, fields) for name, fields in shown.items()), _mrc_opcodes()])


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
