"""Commands on multicast groups and clone sessions.

A multicast node is a replication id with ports. P4Runtime has groups of (port, instance) alone: a node is kept here and
becomes replicas of the groups that it is associated with, its replication id as their instance.
"""

from __future__ import annotations

from collections.abc import Sequence

from finsy.proto import p4r

from weft.controller.switch_cli.commands import command
from weft.controller.switch_cli.errors import CommandError
from weft.controller.switch_cli.session import CommandSession
from weft.controller.switch_cli.values import encoded, parse_whole

_MOST = 2**16 - 1
_MOST_PORT = 2**9 - 1
_MOST_CLONE_SESSION = 2**15 - 1


def _group_id(word: str) -> int:
    return parse_whole(word, 1, _MOST, "group")


def _node(session: CommandSession, word: str) -> int:
    handle = parse_whole(word, 0, 2**32 - 1, "node")
    if handle not in session.nodes:
        choices = ", ".join(map(str, list(session.nodes)[:8])) or "none; mc_node_create makes one"
        raise CommandError(f"no node has the handle {handle} (valid: {choices})")
    return handle


def _ports(words: Sequence[str]) -> tuple[int, ...]:
    if "|" in words:
        raise CommandError("lists lags after | (valid: ports alone; multicast groups consist of ports)")
    ports = [parse_whole(word, 0, _MOST_PORT, "port") for word in words]
    if len(set(ports)) < len(ports):
        raise CommandError(f"lists a port twice: {' '.join(words)} (valid: each once)")
    return tuple(sorted(ports))


async def _groups(session: CommandSession) -> dict[int, p4r.MulticastGroupEntry]:
    query = p4r.PacketReplicationEngineEntry(multicast_group_entry=p4r.MulticastGroupEntry())
    found = await session.read(packet_replication_engine_entry=query)
    groups = [each.packet_replication_engine_entry.multicast_group_entry for each in found]
    return {each.multicast_group_id: each for each in groups}


async def _existing_group(session: CommandSession, group_id: int) -> p4r.MulticastGroupEntry:
    groups = await _groups(session)
    if group_id not in groups:
        choices = ", ".join(map(str, list(groups)[:8])) or "none; mc_mgrp_create makes one"
        raise CommandError(f"there is no multicast group {group_id} (valid: {choices})")
    return groups[group_id]


async def _write_group(
    session: CommandSession, kind: p4r.Update.Type.ValueType, group: p4r.MulticastGroupEntry
) -> None:
    entry = p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
    await session.write(kind, packet_replication_engine_entry=entry)


def replica(port: int, instance: int) -> p4r.Replica:
    """Return a replica as P4Runtime since 1.4 has it, its port as bytes."""
    return p4r.Replica(port=encoded(port), instance=instance)


async def _set_replicas(session: CommandSession, group_id: int) -> None:
    """Write a group's replicas: those of its nodes, and what others than this session have put there."""
    await _existing_group(session, group_id)
    replicas = [
        replica(port, instance)
        for handle, groups in session.associated.items()
        if group_id in groups
        for instance, ports in [session.nodes[handle]]
        for port in ports
    ]
    group = p4r.MulticastGroupEntry(multicast_group_id=group_id, replicas=replicas)
    await _write_group(session, p4r.Update.MODIFY, group)


async def _learn(session: CommandSession, group_id: int) -> None:
    """Make nodes of replicas that a group has from elsewhere, so that they stay when it is written anew."""
    known = {
        (instance, port)
        for handle, groups in session.associated.items()
        if group_id in groups
        for instance, ports in [session.nodes[handle]]
        for port in ports
    }
    others: dict[int, list[int]] = {}
    for each in (await _existing_group(session, group_id)).replicas:
        port = (
            int.from_bytes(each.port, "big") if each.WhichOneof("port_kind") == "port" else each.egress_port
        )
        if (each.instance, port) not in known:
            others.setdefault(each.instance, []).append(port)
    for instance, ports in others.items():
        handle = 1 + max(session.nodes, default=-1)
        session.nodes[handle] = (instance, tuple(sorted(ports)))
        session.associated[handle] = {group_id}


@command("mc_mgrp_create", "<group>")
async def mgrp_create(session: CommandSession, words: Sequence[str]) -> str:
    """Make a multicast group, without a port at first."""
    group_id = _group_id(words[0])
    await _write_group(session, p4r.Update.INSERT, p4r.MulticastGroupEntry(multicast_group_id=group_id))
    return f"Creating multicast group {group_id}"


@command("mc_mgrp_destroy", "<group>")
async def mgrp_destroy(session: CommandSession, words: Sequence[str]) -> str:
    """Remove a multicast group; its nodes stay."""
    group = await _existing_group(session, _group_id(words[0]))
    await _write_group(session, p4r.Update.DELETE, group)
    for groups in session.associated.values():
        groups.discard(group.multicast_group_id)
    return f"Destroying multicast group {group.multicast_group_id}"


@command("mc_node_create", "<rid> …")
async def node_create(session: CommandSession, words: Sequence[str]) -> str:
    """Make a multicast node: mc_node_create RID PORT…."""
    instance = parse_whole(words[0], 0, _MOST, "rid")
    ports = _ports(words[1:])
    handle = 1 + max(session.nodes, default=-1)
    session.nodes[handle] = (instance, ports)
    session.associated[handle] = set()
    return f"node was created with handle {handle}"


@command("mc_node_update", "<node> …")
async def node_update(session: CommandSession, words: Sequence[str]) -> str:
    """Give a node other ports: mc_node_update NODE PORT…."""
    handle, ports = _node(session, words[0]), _ports(words[1:])
    for group_id in sorted(session.associated[handle]):
        await _learn(session, group_id)
    session.nodes[handle] = (session.nodes[handle][0], ports)
    for group_id in sorted(session.associated[handle]):
        await _set_replicas(session, group_id)
    return ""


@command("mc_node_associate", "<group> <node>")
async def node_associate(session: CommandSession, words: Sequence[str]) -> str:
    """Make a node's ports part of a group."""
    group_id, handle = _group_id(words[0]), _node(session, words[1])
    await _learn(session, group_id)
    session.associated[handle].add(group_id)
    await _set_replicas(session, group_id)
    return ""


@command("mc_node_dissociate", "<group> <node>")
async def node_dissociate(session: CommandSession, words: Sequence[str]) -> str:
    """Take a node's ports out of a group."""
    group_id, handle = _group_id(words[0]), _node(session, words[1])
    await _learn(session, group_id)
    session.associated[handle].discard(group_id)
    await _set_replicas(session, group_id)
    return ""


@command("mc_node_destroy", "<node>")
async def node_destroy(session: CommandSession, words: Sequence[str]) -> str:
    """Remove a node, from its groups, too."""
    handle = _node(session, words[0])
    groups = session.associated.pop(handle)
    for group_id in sorted(groups):
        session.associated[handle] = {group_id}
        await _learn(session, group_id)
        del session.associated[handle]
        await _set_replicas(session, group_id)
    del session.nodes[handle]
    return ""


@command("mc_dump")
async def mc_dump(session: CommandSession, words: Sequence[str]) -> str:
    """Show all multicast groups, with their nodes."""
    lines = ["==========", "MC ENTRIES"]
    for group_id in sorted(await _groups(session)):
        await _learn(session, group_id)
        lines += ["**********", f"mgrp({group_id})"]
        for handle, groups in session.associated.items():
            if group_id in groups:
                instance, ports = session.nodes[handle]
                lines.append(f"  -> (L1h={handle}, rid={instance}) -> (ports=[{', '.join(map(str, ports))}])")
    return "\n".join([*lines, "=========="])


def _clone_session(session_id: int, port: int | None = None) -> p4r.PacketReplicationEngineEntry:
    replicas = [] if port is None else [replica(port, 0)]
    return p4r.PacketReplicationEngineEntry(
        clone_session_entry=p4r.CloneSessionEntry(session_id=session_id, replicas=replicas)
    )


@command("mirroring_add", "<session> <port>")
async def mirroring_add(session: CommandSession, words: Sequence[str]) -> str:
    """Send what the program clones to a session out of a port; of a session that is there, change the port."""
    session_id = parse_whole(words[0], 1, _MOST_CLONE_SESSION, "session")
    port = parse_whole(words[1], 0, _MOST_PORT, "port")
    kind = p4r.Update.MODIFY if await _clone_ports(session, session_id) else p4r.Update.INSERT
    await session.write(kind, packet_replication_engine_entry=_clone_session(session_id, port))
    return ""


@command("mirroring_delete", "<session>")
async def mirroring_delete(session: CommandSession, words: Sequence[str]) -> str:
    """Remove a clone session."""
    session_id = parse_whole(words[0], 1, _MOST_CLONE_SESSION, "session")
    await session.write(p4r.Update.DELETE, packet_replication_engine_entry=_clone_session(session_id))
    return ""


@command("mirroring_get", "<session>")
async def mirroring_get(session: CommandSession, words: Sequence[str]) -> str:
    """Show the ports of a clone session."""
    session_id = parse_whole(words[0], 1, _MOST_CLONE_SESSION, "session")
    ports = await _clone_ports(session, session_id)
    if not ports:
        raise CommandError(f"there is no clone session {session_id}")
    return f"MirroringSessionConfig(port={', '.join(map(str, ports))})"


async def _clone_ports(session: CommandSession, session_id: int) -> list[int]:
    query = p4r.PacketReplicationEngineEntry(clone_session_entry=p4r.CloneSessionEntry())
    found = await session.read(packet_replication_engine_entry=query)
    sessions = [each.packet_replication_engine_entry.clone_session_entry for each in found]
    return [
        int.from_bytes(each.port, "big") if each.WhichOneof("port_kind") == "port" else each.egress_port
        for clone in sessions
        if clone.session_id == session_id
        for each in clone.replicas
    ]
