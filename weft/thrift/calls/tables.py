"""Calls on tables: entries with actions, members or groups, default entries, direct counters and meters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from finsy.proto import p4i, p4r

from weft.controller.switch_cli import arrays, tables
from weft.controller.switch_cli.arrays import MICROSECONDS
from weft.controller.switch_cli.session import key_of
from weft.quantities.units import PS_PER_MS, PS_PER_NS
from weft.thrift.bmv2 import ActionType, MatchType, MeterError, TableError
from weft.thrift.calls.registry import CallRefusedError, Target, carries_out, refused_as, statuses_as

Record: TypeAlias = dict[str, Any]
"""A struct's fields by name."""
_NO_PRIORITY = -1
_MOST_TIMEOUT_MS = 2**31 - 1


def table_named(on: Target, name: str) -> p4i.Table:
    """Return a table; refused as INVALID_TABLE_NAME."""
    with refused_as(TableError.INVALID_TABLE_NAME):
        return tables.table_named(on.session, name)


def _direct(on: Target, name: str) -> p4i.Table:
    table = table_named(on, name)
    with refused_as(TableError.WRONG_TABLE_TYPE):
        tables.direct_only(table)
    return table


def _indirect(on: Target, name: str, with_groups: bool = False) -> p4i.Table:
    table = table_named(on, name)
    profiles = {each.preamble.id: each for each in on.session.info.action_profiles}
    profile = profiles.get(table.implementation_id)
    if profile is None or (with_groups and not profile.with_selector):
        raise CallRefusedError(TableError.WRONG_TABLE_TYPE, f"{name} has no {'groups' if with_groups else 'members'}")
    return table


async def _entry(on: Target, table: p4i.Table, handle: int) -> p4r.TableEntry:
    with refused_as(TableError.INVALID_HANDLE):
        return await on.session.entry(table, handle)


def hexadecimal(data: bytes) -> str:
    """Return bytes as a word of a command."""
    return f"0x{data.hex() or '0'}"


def _word(param: Record) -> str:
    """Return a key field as a word of a command."""
    try:
        kind = MatchType(param["type"])
    except ValueError:
        raise CallRefusedError(TableError.BAD_MATCH_KEY, f"there is no match type {param['type']}") from None
    given = param[kind.name.lower()]
    if given is None:
        raise CallRefusedError(TableError.BAD_MATCH_KEY, f"a key field has no {kind.name.lower()} value")
    if kind is MatchType.EXACT:
        return hexadecimal(given["key"])
    if kind is MatchType.LPM:
        return f"{hexadecimal(given['key'])}/{given['prefix_length']}"
    if kind is MatchType.TERNARY:
        return f"{hexadecimal(given['key'])}&&&{hexadecimal(given['mask'])}"
    if kind is MatchType.VALID:
        return str(int(given["key"]))
    return f"{hexadecimal(given['start'])}->{hexadecimal(given['end_'])}"


def _keyed(table: p4i.Table, match_key: Sequence[Record], options: Record) -> p4r.TableEntry:
    """Return an entry with a key and a priority."""
    words = [_word(each) for each in match_key]
    if tables.has_priority(table):
        words.append(str(options["priority"] or 0))
    with refused_as(TableError.BAD_MATCH_KEY):
        entry, _ = tables.key_and_rest(table, words)
    return entry


def action_with(info: p4i.Action, data: Sequence[bytes]) -> p4r.Action:
    """Return an action with its parameters; refused as BAD_ACTION_DATA."""
    with refused_as(TableError.BAD_ACTION_DATA):
        return tables.with_parameters(info, [hexadecimal(each) for each in data])


def _action(on: Target, table: p4i.Table, name: str, data: Sequence[bytes]) -> p4r.TableAction:
    with refused_as(TableError.INVALID_ACTION_NAME):
        info = tables.action_named(on.session, table, name)
    return p4r.TableAction(action=action_with(info, data))


def _member(handle: int) -> p4r.TableAction:
    _require_handle(handle, TableError.INVALID_MBR_HANDLE)
    return p4r.TableAction(action_profile_member_id=handle + 1)


def _group(handle: int) -> p4r.TableAction:
    _require_handle(handle, TableError.INVALID_GRP_HANDLE)
    return p4r.TableAction(action_profile_group_id=handle + 1)


def _require_handle(handle: int, code: TableError) -> None:
    if handle < 0:
        raise CallRefusedError(code, f"{handle} is no handle")


def _missing_code(action: p4r.TableAction | None) -> TableError:
    """Return the code for an action that refers to a member or a group that does not exist."""
    kind = None if action is None else action.WhichOneof("type")
    return {
        "action_profile_member_id": TableError.INVALID_MBR_HANDLE,
        "action_profile_group_id": TableError.INVALID_GRP_HANDLE,
    }.get(kind or "", TableError.ERROR)


# Changes


async def _add(
    on: Target, table: p4i.Table, match_key: Sequence[Record], options: Record, action: p4r.TableAction
) -> int:
    entry = _keyed(table, match_key, options)
    entry.action.CopyFrom(action)
    with statuses_as(NOT_FOUND=_missing_code(action)):
        await tables.added(on.session, entry)
    return on.session.handle_of(entry)


async def _modify(on: Target, table: p4i.Table, handle: int, action: p4r.TableAction) -> None:
    entry = await _entry(on, table, handle)
    changed = await tables.changed_entry(on.session, table, entry, action)
    with statuses_as(NOT_FOUND=_missing_code(action)):
        await on.session.write(p4r.Update.MODIFY, table_entry=changed)


async def _set_default(on: Target, table: p4i.Table, action: p4r.TableAction | None) -> None:
    """Set a table's default action; None resets it to the program's."""
    entry = p4r.TableEntry(table_id=table.preamble.id, is_default_action=True, action=action)
    with statuses_as(PERMISSION_DENIED=TableError.DEFAULT_ENTRY_IS_CONST, NOT_FOUND=_missing_code(action)):
        await on.session.write(p4r.Update.MODIFY, table_entry=entry)


async def _delete(on: Target, table: p4i.Table, handle: int) -> None:
    await _entry(on, table, handle)
    await tables.table_delete(on.session, [table.preamble.name, str(handle)])


async def _set_timeout(on: Target, table: p4i.Table, handle: int, timeout_ms: int) -> None:
    await _entry(on, table, handle)
    with refused_as(TableError.AGEING_DISABLED):
        await tables.table_set_timeout(on.session, [table.preamble.name, str(handle), str(timeout_ms)])


@carries_out
async def bm_mt_clear_entries(on: Target, *, table_name: str, reset_default_entry: bool) -> None:
    """Remove all entries."""
    table = table_named(on, table_name)
    await tables.table_clear(on.session, [table.preamble.name])
    if reset_default_entry:
        await _set_default(on, table, None)


@carries_out
async def bm_mt_add_entry(
    on: Target,
    *,
    table_name: str,
    match_key: Sequence[Record],
    action_name: str,
    action_data: Sequence[bytes],
    options: Record,
) -> int:
    """Add an entry and return its handle."""
    table = _direct(on, table_name)
    return await _add(on, table, match_key, options, _action(on, table, action_name, action_data))


@carries_out
async def bm_mt_indirect_add_entry(
    on: Target, *, table_name: str, match_key: Sequence[Record], mbr_handle: int, options: Record
) -> int:
    """Add an entry that refers to a member."""
    return await _add(on, _indirect(on, table_name), match_key, options, _member(mbr_handle))


@carries_out
async def bm_mt_indirect_ws_add_entry(
    on: Target, *, table_name: str, match_key: Sequence[Record], grp_handle: int, options: Record
) -> int:
    """Add an entry that refers to a group."""
    return await _add(on, _indirect(on, table_name, with_groups=True), match_key, options, _group(grp_handle))


@carries_out
async def bm_mt_modify_entry(
    on: Target, *, table_name: str, entry_handle: int, action_name: str, action_data: Sequence[bytes]
) -> None:
    """Change an entry's action."""
    table = _direct(on, table_name)
    await _modify(on, table, entry_handle, _action(on, table, action_name, action_data))


@carries_out
async def bm_mt_indirect_modify_entry(on: Target, *, table_name: str, entry_handle: int, mbr_handle: int) -> None:
    """Have an entry refer to another member."""
    await _modify(on, _indirect(on, table_name), entry_handle, _member(mbr_handle))


@carries_out
async def bm_mt_indirect_ws_modify_entry(on: Target, *, table_name: str, entry_handle: int, grp_handle: int) -> None:
    """Have an entry refer to another group."""
    await _modify(on, _indirect(on, table_name, with_groups=True), entry_handle, _group(grp_handle))


@carries_out
async def bm_mt_delete_entry(on: Target, *, table_name: str, entry_handle: int) -> None:
    """Remove an entry."""
    await _delete(on, _direct(on, table_name), entry_handle)


@carries_out
async def bm_mt_indirect_delete_entry(on: Target, *, table_name: str, entry_handle: int) -> None:
    """Remove an entry that refers to a member or a group."""
    await _delete(on, _indirect(on, table_name), entry_handle)


@carries_out
async def bm_mt_set_entry_ttl(on: Target, *, table_name: str, entry_handle: int, timeout_ms: int) -> None:
    """Set an entry's idle timeout."""
    await _set_timeout(on, _direct(on, table_name), entry_handle, timeout_ms)


@carries_out
async def bm_mt_indirect_set_entry_ttl(on: Target, *, table_name: str, entry_handle: int, timeout_ms: int) -> None:
    """Set the idle timeout of an entry that refers to a member or a group."""
    await _set_timeout(on, _indirect(on, table_name), entry_handle, timeout_ms)


@carries_out
async def bm_mt_set_default_action(
    on: Target, *, table_name: str, action_name: str, action_data: Sequence[bytes]
) -> None:
    """Set the default action."""
    table = _direct(on, table_name)
    await _set_default(on, table, _action(on, table, action_name, action_data))


@carries_out
async def bm_mt_indirect_set_default_member(on: Target, *, table_name: str, mbr_handle: int) -> None:
    """Set the default member."""
    await _set_default(on, _indirect(on, table_name), _member(mbr_handle))


@carries_out
async def bm_mt_indirect_ws_set_default_group(on: Target, *, table_name: str, grp_handle: int) -> None:
    """Set the default group."""
    await _set_default(on, _indirect(on, table_name, with_groups=True), _group(grp_handle))


@carries_out
async def bm_mt_reset_default_entry(on: Target, *, table_name: str) -> None:
    """Reset the default entry to the program's."""
    await _set_default(on, table_named(on, table_name), None)


@carries_out
async def bm_mt_indirect_reset_default_entry(on: Target, *, table_name: str) -> None:
    """Reset the default entry to the program's."""
    await _set_default(on, _indirect(on, table_name), None)


# Reads


@carries_out
async def bm_mt_get_num_entries(on: Target, *, table_name: str) -> int:
    """Return the number of entries."""
    return len(await on.session.entries(table_named(on, table_name)))


@carries_out
async def bm_mt_get_entries(on: Target, *, table_name: str) -> list[Record]:
    """Return all entries."""
    table = table_named(on, table_name)
    return [_shown(on, table, each) for each in await on.session.entries(table)]


@carries_out
async def bm_mt_get_entry(on: Target, *, table_name: str, entry_handle: int) -> Record:
    """Return the entry with a handle."""
    table = table_named(on, table_name)
    return _shown(on, table, await _entry(on, table, entry_handle))


@carries_out
async def bm_mt_get_entry_from_key(
    on: Target, *, table_name: str, match_key: Sequence[Record], options: Record
) -> Record:
    """Return the entry with a key; without one, the default entry."""
    table = table_named(on, table_name)
    if not match_key:
        action = await tables.default_action(on.session, table)
        return {"match_key": [], "options": {}, "entry_handle": 0, "action_entry": _shown_action(on, action)}
    wanted = key_of(_keyed(table, match_key, options))
    for entry in await on.session.entries(table):
        if key_of(entry) == wanted:
            return _shown(on, table, entry)
    raise CallRefusedError(TableError.BAD_MATCH_KEY, f"no entry of {table_name} has this key")


@carries_out
async def bm_mt_get_default_entry(on: Target, *, table_name: str) -> Record:
    """Return the default entry's action, member or group."""
    return _shown_action(on, await tables.default_action(on.session, table_named(on, table_name)))


def _shown(on: Target, table: p4i.Table, entry: p4r.TableEntry) -> Record:
    matches = {each.field_id: each for each in entry.match}
    has_priority = tables.has_priority(table)
    shown: Record = {
        "match_key": [_shown_match(field, matches.get(field.id)) for field in table.match_fields],
        "options": {"priority": tables.HIGHEST_PRIORITY - entry.priority if has_priority else _NO_PRIORITY},
        "entry_handle": on.session.handle_of(entry),
        "action_entry": _shown_action(on, entry.action),
    }
    if entry.idle_timeout_ns:
        shown["life"] = {
            "timeout_ms": _milliseconds(entry.idle_timeout_ns),
            "time_since_hit_ms": _milliseconds(entry.time_since_last_hit.elapsed_ns),
        }
    return shown


def _milliseconds(nanoseconds: int) -> int:
    return min(nanoseconds * PS_PER_NS // PS_PER_MS, _MOST_TIMEOUT_MS)


def _shown_match(field: p4i.MatchField, match: p4r.FieldMatch | None) -> Record:
    """Return a key field; P4Runtime leaves out those that match every value."""
    size = (field.bitwidth + 7) // 8
    full = ((1 << field.bitwidth) - 1).to_bytes(size, "big")
    given = match or p4r.FieldMatch()

    def whole(data: bytes) -> bytes:
        return data.rjust(size, b"\0")

    if field.match_type == p4i.MatchField.EXACT:
        return {"type": MatchType.EXACT, "exact": {"key": whole(given.exact.value)}}
    if field.match_type == p4i.MatchField.LPM:
        return {
            "type": MatchType.LPM,
            "lpm": {"key": whole(given.lpm.value), "prefix_length": given.lpm.prefix_len},
        }
    if field.match_type == p4i.MatchField.RANGE:
        ends = {"start": whole(given.range.low), "end_": whole(given.range.high) if match else full}
        return {"type": MatchType.RANGE, "range": ends}
    if field.match_type == p4i.MatchField.OPTIONAL:  # a ternary key in BMv2
        masked = {"key": whole(given.optional.value), "mask": full if match else whole(b"")}
        return {"type": MatchType.TERNARY, "ternary": masked}
    masked = {"key": whole(given.ternary.value), "mask": whole(given.ternary.mask)}
    return {"type": MatchType.TERNARY, "ternary": masked}


def _shown_action(on: Target, action: p4r.TableAction | None) -> Record:
    kind = None if action is None else action.WhichOneof("type")
    if action is None or kind is None:
        return {"action_type": ActionType.NONE}
    if kind == "action":
        return {"action_type": ActionType.ACTION_DATA, **shown_action_data(on, action.action)}
    if kind == "action_profile_member_id":
        return {"action_type": ActionType.MEMBER, "mbr_handle": action.action_profile_member_id - 1}
    return {"action_type": ActionType.GROUP, "grp_handle": action.action_profile_group_id - 1}


def shown_action_data(on: Target, action: p4r.Action) -> Record:
    """Return an action's name and its parameters in order, each with all of its bytes."""
    info = next(each for each in on.session.info.actions if each.preamble.id == action.action_id)
    values = {each.param_id: each.value for each in action.params}
    data = [values[each.id].rjust((each.bitwidth + 7) // 8, b"\0") for each in info.params]
    return {"action_name": info.preamble.name, "action_data": data}


# Direct counters and meters


def _having(on: Target, name: str, among: Callable[[Target], Sequence[Any]], code: TableError) -> p4i.Table:
    """Return a table with a direct counter or meter of `among`; otherwise refused as `code`."""
    table = table_named(on, name)
    if all(each.direct_table_id != table.preamble.id for each in among(on)):
        raise CallRefusedError(code, f"{name} has none")
    return table


async def _counter(on: Target, table_name: str, handle: int) -> p4r.DirectCounterEntry:
    table = _having(on, table_name, lambda it: it.session.info.direct_counters, TableError.COUNTERS_DISABLED)
    return p4r.DirectCounterEntry(table_entry=tables.bare(await _entry(on, table, handle)))


@carries_out
async def bm_mt_read_counter(on: Target, *, table_name: str, entry_handle: int) -> Record:
    """Return what an entry has counted."""
    return shown_counter(await arrays.read_counter(on.session, await _counter(on, table_name, entry_handle)))


def shown_counter(data: p4r.CounterData) -> Record:
    """Return a counter's value."""
    return {"bytes": data.byte_count, "packets": data.packet_count}


@carries_out
async def bm_mt_write_counter(on: Target, *, table_name: str, entry_handle: int, value: Record) -> None:
    """Set what an entry has counted."""
    cell = await _counter(on, table_name, entry_handle)
    await arrays.write_counter(on.session, cell, value["packets"], value["bytes"])


@carries_out
async def bm_mt_reset_counters(on: Target, *, table_name: str) -> None:
    """Set the counters of all entries to 0."""
    table = _having(on, table_name, lambda it: it.session.info.direct_counters, TableError.COUNTERS_DISABLED)
    await arrays.reset_direct_counters(on.session, table)


async def _metered(on: Target, table_name: str, handle: int) -> p4r.TableEntry:
    table = _having(on, table_name, lambda it: it.session.info.direct_meters, TableError.METERS_DISABLED)
    return await _entry(on, table, handle)


@carries_out
async def bm_mt_set_meter_rates(on: Target, *, table_name: str, entry_handle: int, rates: Sequence[Record]) -> None:
    """Set the rates of an entry's meter."""
    entry = await _metered(on, table_name, entry_handle)
    config = meter_config(rates, TableError.INVALID_METER_OPERATION)
    direct = p4r.DirectMeterEntry(table_entry=tables.bare(entry), config=config)
    await on.session.write(p4r.Update.MODIFY, direct_meter_entry=direct)


@carries_out
async def bm_mt_get_meter_rates(on: Target, *, table_name: str, entry_handle: int) -> list[Record]:
    """Return the rates of an entry's meter; none if they are not set."""
    return shown_rates(await tables.rates_of(on.session, await _metered(on, table_name, entry_handle)))


def rate_words(rates: Sequence[Record]) -> list[str]:
    """Return rates as words of a command."""
    return [f"{each['units_per_micros']:.12f}:{each['burst_size']}" for each in rates]


def meter_config(rates: Sequence[Record], code: TableError | MeterError) -> p4r.MeterConfig:
    """Return rates, committed and peak, per microsecond; refused as `code`."""
    with refused_as(code):
        return arrays.meter_config(rate_words(rates))


def shown_rates(config: p4r.MeterConfig | None) -> list[Record]:
    """Return rates per microsecond, committed and peak; none if they are not set."""
    if config is None:
        return []
    return [
        {"units_per_micros": rate / MICROSECONDS, "burst_size": burst}
        for rate, burst in ((config.cir, config.cburst), (config.pir, config.pburst))
    ]
