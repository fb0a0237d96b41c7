"""Commands on clone sessions, which BMv2 calls mirroring sessions."""

from __future__ import annotations

from collections.abc import Sequence

from finsy.proto import p4r

from weft.controller.errors import CommandError
from weft.controller.switch_cli.commands import command
from weft.controller.switch_cli.replication import (
    existing_group,
    parse_group,
    port_of,
    replica,
    write_clone_session,
)
from weft.controller.switch_cli.session import CommandSession
from weft.controller.switch_cli.values import parse_whole

_MOST_PORT = 2**9 - 1
_MOST_CLONE_SESSION = 2**15 - 1


def _session_id(word: str) -> int:
    return parse_whole(word, 1, _MOST_CLONE_SESSION, "session")


@command("mirroring_add", "<session> <port>")
async def mirroring_add(session: CommandSession, words: Sequence[str]) -> str:
    """Send packets cloned to a session out of a port; change the port of an existing session."""
    session_id = _session_id(words[0])
    await _set(session, session_id, [replica(parse_whole(words[1], 0, _MOST_PORT, "port"), 0)])
    session.mirrored.pop(session_id, None)
    return ""


@command("mirroring_add_mc", "<session> <group>")
async def mirroring_add_mc(session: CommandSession, words: Sequence[str]) -> str:
    """Send packets cloned to a session to a multicast group of this command session."""
    session_id = _session_id(words[0])
    group = await existing_group(session, parse_group(words[1]))
    await _set(session, session_id, group.replicas)
    session.mirrored[session_id] = group.multicast_group_id
    return ""


async def _set(session: CommandSession, session_id: int, replicas: Sequence[p4r.Replica]) -> None:
    is_known = await ports_of(session, session_id) is not None
    await write_clone_session(session, p4r.Update.MODIFY if is_known else p4r.Update.INSERT, session_id, replicas)


@command("mirroring_delete", "<session>")
async def mirroring_delete(session: CommandSession, words: Sequence[str]) -> str:
    """Remove a clone session."""
    session_id = _session_id(words[0])
    await write_clone_session(session, p4r.Update.DELETE, session_id)
    session.mirrored.pop(session_id, None)
    return ""


@command("mirroring_get", "<session>")
async def mirroring_get(session: CommandSession, words: Sequence[str]) -> str:
    """Show the ports or the group of a clone session."""
    session_id = _session_id(words[0])
    ports = await ports_of(session, session_id)
    if ports is None:
        raise CommandError(f"there is no clone session {session_id}")
    if session_id in session.mirrored:
        return f"MirroringSessionConfig(port=None, mgid={session.mirrored[session_id]})"
    return f"MirroringSessionConfig(port={', '.join(map(str, ports))}, mgid=None)"


async def ports_of(session: CommandSession, session_id: int) -> list[int] | None:
    """Return the ports of a clone session; None if there is none."""
    query = p4r.PacketReplicationEngineEntry(clone_session_entry=p4r.CloneSessionEntry())
    found = await session.read(packet_replication_engine_entry=query)
    sessions = [each.packet_replication_engine_entry.clone_session_entry for each in found]
    return next((list(map(port_of, clone.replicas)) for clone in sessions if clone.session_id == session_id), None)
