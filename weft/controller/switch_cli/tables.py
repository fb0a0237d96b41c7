"""Commands on tables with direct actions.

In BMv2 the lowest priority number wins, in P4Runtime the highest; so a priority p becomes 2^31 - 1 - p, as in BMv2's
own P4Runtime server.
"""

from __future__ import annotations

from collections.abc import Sequence

from finsy.proto import p4i, p4r

from weft.controller.errors import CommandError
from weft.controller.switch_cli.commands import command
from weft.controller.switch_cli.names import find
from weft.controller.switch_cli.session import CommandSession, key_of
from weft.controller.switch_cli.values import (
    encoded,
    parse_match,
    parse_value,
    parse_whole,
    shown_match,
    shown_parameters,
)

HIGHEST_PRIORITY = 2**31 - 1
_ARROW = "=>"
_BY_PRIORITY = (p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.OPTIONAL)
_LONGEST_TIMEOUT_MS = 2**32 - 1


def table_named(session: CommandSession, name: str) -> p4i.Table:
    """Return a table. Raises CommandError."""
    tables: Sequence[p4i.Table] = session.info.tables
    return find(tables, name, "table")


def has_priority(table: p4i.Table) -> bool:
    """Return whether entries of a table need a priority."""
    return any(field.match_type in _BY_PRIORITY for field in table.match_fields)


def action_named(session: CommandSession, table: p4i.Table, name: str) -> p4i.Action:
    """Return an action of a table. Raises CommandError."""
    ids = {reference.id for reference in table.action_refs}
    actions: list[p4i.Action] = [each for each in session.info.actions if each.preamble.id in ids]
    return find(actions, name, f"action of {table.preamble.name}")


def action_of(session: CommandSession, table: p4i.Table, name: str, words: Sequence[str]) -> p4r.Action:
    """Return a table's action with its parameters. Raises CommandError."""
    return with_parameters(action_named(session, table, name), words)


def with_parameters(info: p4i.Action, words: Sequence[str]) -> p4r.Action:
    """Return an action with its parameters. Raises CommandError: there are too many or too few, or one is invalid."""
    if len(words) != len(info.params):
        raise CommandError(
            f"action {info.preamble.name} has {len(info.params)} parameters, {len(words)} are given",
            valid=(f"{each.name}({each.bitwidth})" for each in info.params),
        )
    action = p4r.Action(action_id=info.preamble.id)
    for parameter, word in zip(info.params, words, strict=True):
        what = f"parameter {parameter.name} of {info.preamble.name}"
        if parameter.bitwidth == 0:
            raise CommandError("its type is translated to text, which simple_switch_CLI does not support", place=what)
        value = parse_value(word, parameter.bitwidth, what)
        action.params.add(param_id=parameter.id, value=encoded(value))
    return action


def key_and_rest(table: p4i.Table, words: Sequence[str]) -> tuple[p4r.TableEntry, list[str]]:
    """Parse `<fields> => <rest> [priority]` into an entry with this key, and the rest. Raises CommandError."""
    words = list(words)
    priority = 0
    if has_priority(table):
        if not words or words[-1] == _ARROW:
            raise CommandError("has no priority, which its table's keys need", valid="a number at the end")
        lowest_first = parse_whole(words.pop(), 0, HIGHEST_PRIORITY - 1, "priority (the last word)")
        priority = HIGHEST_PRIORITY - lowest_first
    if _ARROW in words:
        at = words.index(_ARROW)
        key, rest = words[:at], words[at + 1 :]
    else:
        key, rest = words, []
    fields = table.match_fields
    if len(key) != len(fields):
        wanted = ", ".join(f"{each.name} ({p4i.MatchField.MatchType.Name(each.match_type).lower()})" for each in fields)
        raise CommandError(
            f"table {table.preamble.name} has {len(fields)} key fields, {len(key)} are given before =>",
            valid=f"{wanted or 'none'}",
        )
    matches = [parse_match(field, word) for field, word in zip(fields, key, strict=True)]
    entry = p4r.TableEntry(
        table_id=table.preamble.id, match=[each for each in matches if each is not None], priority=priority
    )
    return entry, rest


def direct_only(table: p4i.Table) -> None:
    """Raise CommandError if a table's entries refer to members of a profile."""
    if table.implementation_id:
        raise CommandError(f"entries of {table.preamble.name} refer to a profile's members", valid="table_indirect_…")


@command("table_add", "<table> <action> …")
async def table_add(session: CommandSession, words: Sequence[str]) -> str:
    """Add an entry: table_add TABLE ACTION KEY… => PARAMETER… [PRIORITY]."""
    table = table_named(session, words[0])
    direct_only(table)
    entry, parameters = key_and_rest(table, words[2:])
    entry.action.action.CopyFrom(action_of(session, table, words[1], parameters))
    return await added(session, entry)


async def added(session: CommandSession, entry: p4r.TableEntry) -> str:
    """Insert an entry and return a message with its handle."""
    if entry.table_id in session.rates:
        entry.meter_config.CopyFrom(session.rates[entry.table_id])
    await session.write(p4r.Update.INSERT, table_entry=entry)
    return f"Entry has been added with handle {session.handle_of(entry)}"


@command("table_modify", "<table> <action> <handle> …")
async def table_modify(session: CommandSession, words: Sequence[str]) -> str:
    """Change an entry's action: table_modify TABLE ACTION HANDLE PARAMETER…."""
    table = table_named(session, words[0])
    direct_only(table)
    entry = await session.entry(table, parse_handle(words[2]))
    # Some files have => here as well, as in table_add.
    parameters = [word for word in words[3:] if word != _ARROW]
    action = p4r.TableAction(action=action_of(session, table, words[1], parameters))
    await session.write(p4r.Update.MODIFY, table_entry=await changed_entry(session, table, entry, action))
    return ""


@command("table_delete", "<table> <handle>")
async def table_delete(session: CommandSession, words: Sequence[str]) -> str:
    """Remove an entry."""
    table = table_named(session, words[0])
    entry = await session.entry(table, parse_handle(words[1]))
    await session.write(p4r.Update.DELETE, table_entry=bare(entry))
    del session.handles[table.preamble.id][key_of(entry)]
    return ""


@command("table_clear", "<table>")
async def table_clear(session: CommandSession, words: Sequence[str]) -> str:
    """Remove all entries of a table except its default action."""
    table = table_named(session, words[0])
    entries = [p4r.Entity(table_entry=bare(entry)) for entry in await session.entries(table)]
    await session.write_all(p4r.Update.DELETE, entries)
    session.handles.pop(table.preamble.id, None)
    return ""


@command("table_set_default", "<table> <action> …")
async def table_set_default(session: CommandSession, words: Sequence[str]) -> str:
    """Set the action for packets that match no entry."""
    table = table_named(session, words[0])
    direct_only(table)
    parameters = [word for word in words[2:] if word != _ARROW]
    action = p4r.TableAction(action=action_of(session, table, words[1], parameters))
    entry = p4r.TableEntry(table_id=table.preamble.id, is_default_action=True, action=action)
    await session.write(p4r.Update.MODIFY, table_entry=entry)
    return ""


@command("table_reset_default", "<table>")
async def table_reset_default(session: CommandSession, words: Sequence[str]) -> str:
    """Reset the default action to the program's."""
    entry = p4r.TableEntry(table_id=table_named(session, words[0]).preamble.id, is_default_action=True)
    await session.write(p4r.Update.MODIFY, table_entry=entry)
    return ""


@command("table_set_timeout", "<table> <handle> <timeout_ms>")
async def table_set_timeout(session: CommandSession, words: Sequence[str]) -> str:
    """Set an entry's idle timeout in milliseconds."""
    table = table_named(session, words[0])
    if table.idle_timeout_behavior != p4i.Table.NOTIFY_CONTROL:
        raise CommandError(f"table {table.preamble.name} has no support_timeout")
    entry = await session.entry(table, parse_handle(words[1]))
    timeout_ms = parse_whole(words[2], 0, _LONGEST_TIMEOUT_MS, "timeout_ms")
    changed = await changed_entry(session, table, entry, entry.action)
    changed.idle_timeout_ns = timeout_ms * 10**6
    await session.write(p4r.Update.MODIFY, table_entry=changed)
    return ""


@command("table_num_entries", "<table>")
async def table_num_entries(session: CommandSession, words: Sequence[str]) -> str:
    """Show how many entries a table has."""
    return str(len(await session.entries(table_named(session, words[0]))))


@command("table_dump", "<table>")
async def table_dump(session: CommandSession, words: Sequence[str]) -> str:
    """Show a table's entries and its default action."""
    table = table_named(session, words[0])
    lines = ["==========", "TABLE ENTRIES"]
    for entry in await session.entries(table):
        lines += ["**********", *entry_lines(session, table, entry)]
    default = await default_action(session, table)
    lines += ["==========", "Dumping default entry", "EMPTY" if default is None else action_line(session, default)]
    return "\n".join([*lines, "=========="])


async def default_action(session: CommandSession, table: p4i.Table) -> p4r.TableAction | None:
    """Return the action for packets that match no entry of a table; None if it has none."""
    query = p4r.TableEntry(table_id=table.preamble.id, is_default_action=True)
    found = [each.table_entry for each in await session.read(table_entry=query)]
    return found[0].action if found else None


@command("table_dump_entry", "<table> <handle>")
async def table_dump_entry(session: CommandSession, words: Sequence[str]) -> str:
    """Show one entry."""
    table = table_named(session, words[0])
    return "\n".join(entry_lines(session, table, await session.entry(table, parse_handle(words[1]))))


@command("table_dump_entry_from_key", "<table> …")
async def table_dump_entry_from_key(session: CommandSession, words: Sequence[str]) -> str:
    """Show the entry with a key: table_dump_entry_from_key TABLE KEY… [PRIORITY]."""
    table = table_named(session, words[0])
    wanted, _ = key_and_rest(table, words[1:])
    for entry in await session.entries(table):
        if key_of(entry) == key_of(wanted):
            return "\n".join(entry_lines(session, table, entry))
    raise CommandError(f"no entry of {table.preamble.name} has this key")


def entry_lines(session: CommandSession, table: p4i.Table, entry: p4r.TableEntry) -> list[str]:
    """Return the lines that show an entry."""
    matches = {each.field_id: each for each in entry.match}
    lines = [f"Dumping entry {session.handle_of(entry):#x}", "Match key:"]
    for field in table.match_fields:
        kind = p4i.MatchField.MatchType.Name(field.match_type)
        lines.append(f"* {field.name:<20}: {kind:<10}{shown_match(field, matches.get(field.id))}")
    if has_priority(table):
        lines.append(f"Priority: {HIGHEST_PRIORITY - entry.priority}")
    return [*lines, action_line(session, entry.action)]


def action_line(session: CommandSession, action: p4r.TableAction) -> str:
    """Return the line that shows an entry's action, member or group."""
    kind = action.WhichOneof("type")
    if kind == "action":
        return f"Action entry: {action_name(session, action.action)} - {shown_parameters(action.action)}"
    if kind == "action_profile_member_id":
        return f"Index: member({action.action_profile_member_id - 1})"
    if kind == "action_profile_group_id":
        return f"Index: group({action.action_profile_group_id - 1})"
    return "EMPTY"


def action_name(session: CommandSession, action: p4r.Action) -> str:
    """Return an action's name."""
    names = {each.preamble.id: each.preamble.name for each in session.info.actions}
    return str(names.get(action.action_id, f"action {action.action_id}"))


def parse_handle(word: str) -> int:
    """Return a handle. Raises CommandError."""
    return parse_whole(word, 0, 2**32 - 1, "handle")


async def changed_entry(
    session: CommandSession, table: p4i.Table, entry: p4r.TableEntry, action: p4r.TableAction
) -> p4r.TableEntry:
    """Return an entry with a new action, keeping what MODIFY would reset: idle timeout and meter rates."""
    changed = bare(entry, action)
    changed.idle_timeout_ns = entry.idle_timeout_ns
    if any(meter.direct_table_id == table.preamble.id for meter in session.info.direct_meters):
        rates = await rates_of(session, entry)
        if rates is not None:
            changed.meter_config.CopyFrom(rates)
    return changed


async def rates_of(session: CommandSession, entry: p4r.TableEntry) -> p4r.MeterConfig | None:
    """Return an entry's rates in its table's meter; None if they are not set."""
    direct = p4r.DirectMeterEntry(table_entry=bare(entry))
    found = [each.direct_meter_entry for each in await session.read(direct_meter_entry=direct)]
    return found[0].config if found and found[0].HasField("config") else None


def bare(entry: p4r.TableEntry, action: p4r.TableAction | None = None) -> p4r.TableEntry:
    """Return an entry with only its key, and the given action, if any."""
    return p4r.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority, action=action)
