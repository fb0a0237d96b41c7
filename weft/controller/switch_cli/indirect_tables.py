"""Commands on tables with entries that refer to members or groups of an action profile."""

from __future__ import annotations

from collections.abc import Sequence

from finsy.proto import p4i, p4r

from weft.controller.errors import CommandError
from weft.controller.switch_cli import profiles, tables  # noqa: F401 - profiles registers its commands
from weft.controller.switch_cli.commands import command, named
from weft.controller.switch_cli.session import CommandSession


def _indirect(session: CommandSession, name: str) -> p4i.Table:
    table = tables.table_named(session, name)
    if not table.implementation_id:
        raise CommandError(f"entries of {table.preamble.name} have direct actions", valid="table_add …")
    return table


def _profile(session: CommandSession, name: str) -> str:
    """Return the name of a table's action profile."""
    table = _indirect(session, name)
    for profile in session.info.action_profiles:
        if profile.preamble.id == table.implementation_id:
            return str(profile.preamble.name)
    raise CommandError(f"the program does not describe the action profile of {table.preamble.name}")


def _reference(handle: int, is_group: bool) -> p4r.TableAction:
    if is_group:
        return p4r.TableAction(action_profile_group_id=handle + 1)
    return p4r.TableAction(action_profile_member_id=handle + 1)


async def _add(session: CommandSession, words: Sequence[str], is_group: bool) -> str:
    table = _indirect(session, words[0])
    entry, rest = tables.key_and_rest(table, words[1:])
    if len(rest) != 1:
        raise CommandError(f"has {len(rest)} words after =>", valid="one handle")
    entry.action.CopyFrom(_reference(tables.parse_handle(rest[0]), is_group))
    return await tables.added(session, entry)


async def _set_default(session: CommandSession, words: Sequence[str], is_group: bool) -> str:
    table = _indirect(session, words[0])
    entry = p4r.TableEntry(
        table_id=table.preamble.id,
        is_default_action=True,
        action=_reference(tables.parse_handle(words[1]), is_group),
    )
    await session.write(p4r.Update.MODIFY, table_entry=entry)
    return ""


@command("table_indirect_add", "<table> …")
async def add(session: CommandSession, words: Sequence[str]) -> str:
    """Add an entry that refers to a member: table_indirect_add TABLE KEY… => MEMBER [PRIORITY]."""
    return await _add(session, words, is_group=False)


@command("table_indirect_add_with_group", "<table> …")
async def add_with_group(session: CommandSession, words: Sequence[str]) -> str:
    """Add an entry that refers to a group: table_indirect_add_with_group TABLE KEY… => GROUP [PRIORITY]."""
    return await _add(session, words, is_group=True)


@command("table_indirect_set_default", "<table> <member>")
async def set_default(session: CommandSession, words: Sequence[str]) -> str:
    """Set the member for packets that match no entry."""
    return await _set_default(session, words, is_group=False)


@command("table_indirect_set_default_with_group", "<table> <group>")
async def set_default_with_group(session: CommandSession, words: Sequence[str]) -> str:
    """Set the group for packets that match no entry."""
    return await _set_default(session, words, is_group=True)


@command("table_indirect_reset_default", "<table>")
async def reset_default(session: CommandSession, words: Sequence[str]) -> str:
    """Reset the default to the program's."""
    _indirect(session, words[0])
    return await tables.table_reset_default(session, words)


@command("table_indirect_delete", "<table> <handle>")
async def delete(session: CommandSession, words: Sequence[str]) -> str:
    """Remove an entry."""
    _indirect(session, words[0])
    return await tables.table_delete(session, words)


def _of_table(of_profile: str, name: str) -> None:
    """Register a command on an action profile as the command `name` on a table, which has the profile."""
    known = named(of_profile)

    async def run(session: CommandSession, words: Sequence[str]) -> str:
        return await known.run(session, [_profile(session, words[0]), *words[1:]])

    run.__doc__ = f"Do the same as {of_profile} with the action profile of a table."
    command(name, known.usage.replace("<profile>", "<table>"))(run)


for _verb in (
    "create_member", "modify_member", "delete_member",
    "create_group", "delete_group", "add_member_to_group", "remove_member_from_group",
):  # fmt: skip
    _of_table(f"act_prof_{_verb}", f"table_indirect_{_verb}")
for _verb in ("dump_member", "dump_group"):
    _of_table(f"act_prof_{_verb}", f"table_{_verb}")
