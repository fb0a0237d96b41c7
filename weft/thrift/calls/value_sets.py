"""Calls on parser value sets."""

from __future__ import annotations

from finsy.proto import p4i

from weft.controller.switch_cli import value_sets
from weft.thrift.bmv2 import ValueSetError
from weft.thrift.calls.registry import Target, carries_out, refused_as
from weft.thrift.calls.tables import hexadecimal


def _named(on: Target, name: str) -> p4i.ValueSet:
    with refused_as(ValueSetError.INVALID_PARSE_VSET_NAME):
        return value_sets.set_named(on.session, name)


@carries_out
async def bm_parse_vset_add(on: Target, *, parse_vset_name: str, value: bytes) -> None:
    """Add a value."""
    name = _named(on, parse_vset_name).preamble.name
    with refused_as(ValueSetError.ERROR):
        await value_sets.pvs_add(on.session, [name, hexadecimal(value)])


@carries_out
async def bm_parse_vset_remove(on: Target, *, parse_vset_name: str, value: bytes) -> None:
    """Remove a value."""
    name = _named(on, parse_vset_name).preamble.name
    with refused_as(ValueSetError.ERROR):
        await value_sets.pvs_remove(on.session, [name, hexadecimal(value)])


@carries_out
async def bm_parse_vset_get(on: Target, *, parse_vset_name: str) -> list[bytes]:
    """Return the values, without members that P4Runtime gave more than one value."""
    found = _named(on, parse_vset_name)
    size = (value_sets.width_bits(found) + 7) // 8
    members = await value_sets.members_of(on.session, found)
    values = (value_sets.whole_value(found, each) for each in members)
    return [value.to_bytes(size, "big") for value in values if value is not None]


@carries_out
async def bm_parse_vset_clear(on: Target, *, parse_vset_name: str) -> None:
    """Remove all values."""
    await value_sets.pvs_clear(on.session, [_named(on, parse_vset_name).preamble.name])
