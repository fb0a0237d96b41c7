"""Commands that show the program's objects and the available commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from finsy.proto import p4i

from weft.controller.errors import CommandError
from weft.controller.switch_cli.commands import COMMANDS, REFUSED, command, named
from weft.controller.switch_cli.session import CommandSession
from weft.controller.switch_cli.tables import table_named


def _table_line(session: CommandSession, table: p4i.Table) -> str:
    profiles = {each.preamble.id: each.preamble.name for each in session.info.action_profiles}
    keys = ", ".join(
        f"{each.name}({p4i.MatchField.MatchType.Name(each.match_type).lower()}, {each.bitwidth})"
        for each in table.match_fields
    )
    return f"{table.preamble.name:<30} [implementation={profiles.get(table.implementation_id)}, mk={keys}]"


def _action_line(action: p4i.Action) -> str:
    parameters = ", ".join(f"{each.name}({each.bitwidth})" for each in action.params)
    return f"{action.preamble.name:<30} [{parameters}]"


def _actions_of(session: CommandSession, table: p4i.Table) -> list[str]:
    ids = {reference.id for reference in table.action_refs}
    return [_action_line(each) for each in session.info.actions if each.preamble.id in ids]


@command("show_tables")
async def show_tables(session: CommandSession, words: Sequence[str]) -> str:
    """List the tables with their keys."""
    return "\n".join(_table_line(session, each) for each in session.info.tables)


@command("show_actions")
async def show_actions(session: CommandSession, words: Sequence[str]) -> str:
    """List the actions with their parameters."""
    return "\n".join(map(_action_line, session.info.actions))


@command("table_show_actions", "<table>")
async def table_show_actions(session: CommandSession, words: Sequence[str]) -> str:
    """List a table's actions."""
    return "\n".join(_actions_of(session, table_named(session, words[0])))


@command("table_info", "<table>")
async def table_info(session: CommandSession, words: Sequence[str]) -> str:
    """Show a table's keys and actions."""
    table = table_named(session, words[0])
    return "\n".join([_table_line(session, table), "*" * 80, *_actions_of(session, table)])


@command("show_ports")
async def show_ports(session: CommandSession, words: Sequence[str]) -> str:
    """List the ports with their interfaces, if the switch belongs to a running lab."""
    return "\n".join(session.ports) or "P4Runtime does not list ports: they are known of a running lab's switches only"


@command("switch_info")
async def switch_info(session: CommandSession, words: Sequence[str]) -> str:
    """Show the switch's device id and the program's name."""
    name = session.info.pkg_info.name or "unknown"
    return f"device_id                : {session.switch.device_id}\nprogram                  : {name}"


@command("write_config_to_file", "<file>")
async def write_config_to_file(session: CommandSession, words: Sequence[str]) -> str:
    """Write the JSON of the switch's program to a file."""
    if not session.may_write_files:
        raise CommandError(
            "a scenario's commands write no files", valid="weft switch-cli SWITCH write_config_to_file FILE"
        )
    config = await session.switch.read_device_config()
    try:
        Path(words[0]).write_bytes(config)
    except OSError as error:
        raise CommandError(f"{words[0]} cannot be written: {error.strerror}") from None
    return ""


@command("help", "[command]")
async def show_help(session: CommandSession, words: Sequence[str]) -> str:
    """List the commands, or show what one does."""
    if words:
        if words[0] in REFUSED:
            return f"{words[0]} is not possible here: {REFUSED[words[0]]}"
        found = named(words[0])
        return f"{found.name} {found.usage}".rstrip() + f"\n{found.summary}"
    return "\n".join(sorted(COMMANDS))
