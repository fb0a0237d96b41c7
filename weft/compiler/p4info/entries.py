"""The entries that a program lists, as P4Runtime writes them (P4Runtime specification, section 9.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from finsy.proto import p4i, p4r

from weft.compiler import keysets
from weft.compiler.ir import Const, Entry, LoweredProgram

_PRIORITIZED = frozenset({p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.OPTIONAL})


def initial_entries(program: LoweredProgram, info: p4i.P4Info) -> p4r.WriteRequest:
    """A WriteRequest that inserts them, table by table; matches that leave a key open are left out."""
    messages = {message.preamble.name: message for message in info.tables}
    actions = {message.preamble.name: message for message in info.actions}
    request = p4r.WriteRequest()
    for pipeline in program.pipelines:
        for table in pipeline.tables:
            if table.hidden or table.name not in messages:
                continue
            keys = [(key.match_kind, key.width) for key in table.keys if key.match_kind != "selector"]
            for entry in table.entries or []:
                update = request.updates.add(type=p4r.Update.INSERT)
                _fill(update.entity.table_entry, messages[table.name], keys, actions, entry)
    return request


def _fill(
    message: Any,
    table: p4i.Table,
    keys: Sequence[tuple[str, int]],
    actions: dict[str, p4i.Action],
    entry: Entry,
) -> None:
    message.table_id = table.preamble.id
    for field, (match_kind, width), keyset in zip(table.match_fields, keys, entry.keys, strict=True):
        match = _match(match_kind, width, keyset)
        if match is not None:
            match.field_id = field.id
            message.match.append(match)
    _fill_action(message.action.action, actions[entry.action.name], entry)
    if any(field.match_type in _PRIORITIZED for field in table.match_fields):
        message.priority = entry.control_priority
    message.is_const = entry.is_const


def _match(match_kind: str, width: int, keyset: object) -> Any:
    """None where any value matches."""
    low, high = keysets.bounds(keyset, width) if match_kind == "range" else (0, 0)
    value, mask = (0, 0) if match_kind == "range" else keysets.value_and_mask(keyset, width)
    full = (1 << width) - 1
    made: Any = p4r.FieldMatch()
    match match_kind:
        case "exact":
            made.exact.value = _bytes(value, width)
        case "range":
            if (low, high) == (0, full):
                return None
            made.range.low, made.range.high = _bytes(low, width), _bytes(high, width)
        case _ if mask == 0:
            return None
        case "lpm":
            made.lpm.value, made.lpm.prefix_len = _bytes(value, width), mask.bit_count()
        case "ternary":
            made.ternary.value, made.ternary.mask = _bytes(value, width), _bytes(mask, width)
        case "optional":
            made.optional.value = _bytes(value, width)
    return made


def _fill_action(message: Any, action: p4i.Action, entry: Entry) -> None:
    message.action_id = action.preamble.id
    arguments: list[Const] = entry.arguments
    for number, parameter, value in zip(
        [each.id for each in action.params], entry.action.parameters, arguments, strict=True
    ):
        message.params.add(param_id=number, value=_bytes(int(value.value), parameter.width))


def _bytes(value: int, width: int) -> bytes:
    """As many bytes as the width has, as p4c writes them."""
    return (value & ((1 << width) - 1)).to_bytes((width + 7) // 8, "big")
