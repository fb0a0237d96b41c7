"""Commands on multicast groups.

A multicast node is a replication id with ports and lags. P4Runtime only has groups of (port, instance), so the session
keeps nodes and turns them into replicas of their associated groups, with the replication id as instance. BMv2 uses one
port of a lag, the same for every packet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from finsy.proto import p4r

from weft.controller.errors import CommandError
from weft.controller.switch_cli.commands import command
from weft.controller.switch_cli.session import CommandSession
from weft.controller.switch_cli.values import encoded, parse_whole

_MOST = 2**16 - 1
_MOST_PORT = 2**9 - 1
_MOST_LAG = 2**8 - 1
_LAG_HASH = 255
"""Hash with which BMv2 chooses a lag's port for every packet (simple_pre_lag.cpp)."""


def parse_group(word: str) -> int:
    """Return a group's id. Raises CommandError."""
    return parse_whole(word, 1, _MOST, "group")


def _node(session: CommandSession, word: str) -> int:
    handle = parse_whole(word, 0, 2**32 - 1, "node")
    if handle not in session.nodes:
        choices = ", ".join(map(str, list(session.nodes)[:8])) or "none; mc_node_create makes one"
        raise CommandError(f"no node has the handle {handle}", valid=choices)
    return handle


def _numbers(words: Sequence[str], most: int, what: str) -> tuple[int, ...]:
    numbers = [parse_whole(word, 0, most, what) for word in words]
    if len(set(numbers)) < len(numbers):
        raise CommandError(f"lists a {what} twice: {' '.join(words)}", valid="each once")
    return tuple(sorted(numbers))


def _ports_and_lags(words: Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    ends = list(words).index("|") if "|" in words else len(words)
    return _numbers(words[:ends], _MOST_PORT, "port"), _numbers(words[ends + 1 :], _MOST_LAG, "lag")


def _sends(session: CommandSession, handle: int) -> tuple[int, list[int]]:
    """Return a node's instance and its output ports, the lags' ports last. Raises CommandError."""
    instance, own = session.nodes[handle]
    lags = [session.lags[lag] for lag in session.node_lags.get(handle, ()) if session.lags.get(lag)]
    ports = [*own, *(members[_LAG_HASH % len(members)] for members in lags)]
    twice = next((port for port in ports if ports.count(port) > 1), None)
    if twice is not None:
        raise CommandError(f"node {handle} would send to port {twice} twice", valid="each port once")
    return instance, ports


def _replicas_of(session: CommandSession, group_id: int) -> list[tuple[int, int]]:
    """Return the replicas of a group's nodes as pairs (instance, port)."""
    handles = [handle for handle, groups in session.associated.items() if group_id in groups]
    sends = (_sends(session, handle) for handle in handles)
    return [(instance, port) for instance, ports in sends for port in ports]


async def _groups(session: CommandSession) -> dict[int, p4r.MulticastGroupEntry]:
    query = p4r.PacketReplicationEngineEntry(multicast_group_entry=p4r.MulticastGroupEntry())
    found = await session.read(packet_replication_engine_entry=query)
    groups = [each.packet_replication_engine_entry.multicast_group_entry for each in found]
    return {each.multicast_group_id: each for each in groups}


async def existing_group(session: CommandSession, group_id: int) -> p4r.MulticastGroupEntry:
    """Return a group. Raises CommandError if it does not exist."""
    groups = await _groups(session)
    if group_id not in groups:
        choices = ", ".join(map(str, list(groups)[:8])) or "none; mc_mgrp_create makes one"
        raise CommandError(f"there is no multicast group {group_id}", valid=choices)
    return groups[group_id]


async def _write_group(
    session: CommandSession, kind: p4r.Update.Type.ValueType, group: p4r.MulticastGroupEntry
) -> None:
    entry = p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
    await session.write(kind, packet_replication_engine_entry=entry)
    for clone_session, mirrored in session.mirrored.items():
        if mirrored == group.multicast_group_id:
            await write_clone_session(session, p4r.Update.MODIFY, clone_session, group.replicas)


async def write_clone_session(
    session: CommandSession,
    kind: p4r.Update.Type.ValueType,
    session_id: int,
    replicas: Sequence[p4r.Replica] = (),
) -> None:
    """Create, change or remove a clone session."""
    clone = p4r.CloneSessionEntry(session_id=session_id, replicas=replicas)
    entry = p4r.PacketReplicationEngineEntry(clone_session_entry=clone)
    await session.write(kind, packet_replication_engine_entry=entry)


def replica(port: int, instance: int) -> p4r.Replica:
    """Return a replica in the form of P4Runtime 1.4 and later, with its port as bytes."""
    return p4r.Replica(port=encoded(port), instance=instance)


def port_of(replicated: p4r.Replica) -> int:
    """Return a replica's port, from the form of P4Runtime 1.4 or the earlier one."""
    if replicated.WhichOneof("port_kind") == "port":
        return int.from_bytes(replicated.port, "big")
    return int(replicated.egress_port)


async def _set_replicas(session: CommandSession, group_id: int) -> None:
    """Write a group's replicas, from the session's nodes (`_learn` makes nodes of others' replicas first)."""
    await existing_group(session, group_id)
    replicas = [replica(port, instance) for instance, port in _replicas_of(session, group_id)]
    group = p4r.MulticastGroupEntry(multicast_group_id=group_id, replicas=replicas)
    await _write_group(session, p4r.Update.MODIFY, group)


async def _learn(session: CommandSession, group_id: int) -> None:
    """Create nodes for replicas that others added to a group, so that rewriting the group keeps them."""
    known = set(_replicas_of(session, group_id))
    others: dict[int, list[int]] = {}
    for each in (await existing_group(session, group_id)).replicas:
        port = port_of(each)
        if (each.instance, port) not in known:
            others.setdefault(each.instance, []).append(port)
    for instance, ports in others.items():
        handle = 1 + max(session.nodes, default=-1)
        session.nodes[handle] = (instance, tuple(sorted(ports)))
        session.associated[handle] = {group_id}


async def learned_groups(session: CommandSession) -> list[int]:
    """Return the ids of all groups in order, after the session has made nodes of others' replicas."""
    groups = sorted(await _groups(session))
    for group_id in groups:
        await _learn(session, group_id)
    return groups


@command("mc_mgrp_create", "<group>")
async def mgrp_create(session: CommandSession, words: Sequence[str]) -> str:
    """Create a multicast group without ports."""
    group_id = parse_group(words[0])
    await _write_group(session, p4r.Update.INSERT, p4r.MulticastGroupEntry(multicast_group_id=group_id))
    return f"Creating multicast group {group_id}"


@command("mc_mgrp_destroy", "<group>")
async def mgrp_destroy(session: CommandSession, words: Sequence[str]) -> str:
    """Remove a multicast group; its nodes stay."""
    group = await existing_group(session, parse_group(words[0]))
    await _write_group(session, p4r.Update.DELETE, group)
    for groups in session.associated.values():
        groups.discard(group.multicast_group_id)
    return f"Destroying multicast group {group.multicast_group_id}"


@command("mc_node_create", "<rid> …")
async def node_create(session: CommandSession, words: Sequence[str]) -> str:
    """Create a multicast node: mc_node_create RID PORT… [| LAG…]."""
    instance = parse_whole(words[0], 0, _MOST, "rid")
    ports, lags = _ports_and_lags(words[1:])
    handle = 1 + max(session.nodes, default=-1)
    session.nodes[handle] = (instance, ports)
    session.node_lags[handle] = lags
    session.associated[handle] = set()
    return f"node was created with handle {handle}"


@command("mc_node_update", "<node> …")
async def node_update(session: CommandSession, words: Sequence[str]) -> str:
    """Replace a node's ports: mc_node_update NODE PORT… [| LAG…]."""
    handle = _node(session, words[0])
    ports, lags = _ports_and_lags(words[1:])

    def change() -> None:
        session.nodes[handle] = (session.nodes[handle][0], ports)
        session.node_lags[handle] = lags

    await _change(session, session.associated[handle], change)
    return ""


async def _change(session: CommandSession, groups: Iterable[int], change: Callable[[], None]) -> None:
    """Change nodes or lags and rewrite the affected groups."""
    changed = sorted(groups)
    for group_id in changed:
        await _learn(session, group_id)
    change()
    for group_id in changed:
        await _set_replicas(session, group_id)


@command("mc_set_lag_membership", "<lag> <port> …")
async def set_lag_membership(session: CommandSession, words: Sequence[str]) -> str:
    """Set the ports of a lag: mc_set_lag_membership LAG PORT…."""
    lag = parse_whole(words[0], 0, _MOST_LAG, "lag")
    ports = _numbers(words[1:], _MOST_PORT, "port")
    having = [handle for handle, lags in session.node_lags.items() if lag in lags]
    groups = {group_id for handle in having for group_id in session.associated[handle]}
    await _change(session, groups, lambda: session.lags.update({lag: ports}))
    return ""


@command("mc_node_associate", "<group> <node>")
async def node_associate(session: CommandSession, words: Sequence[str]) -> str:
    """Add a node's ports to a group."""
    group_id, handle = parse_group(words[0]), _node(session, words[1])
    await _learn(session, group_id)
    session.associated[handle].add(group_id)
    await _set_replicas(session, group_id)
    return ""


@command("mc_node_dissociate", "<group> <node>")
async def node_dissociate(session: CommandSession, words: Sequence[str]) -> str:
    """Remove a node's ports from a group."""
    group_id, handle = parse_group(words[0]), _node(session, words[1])
    await _learn(session, group_id)
    session.associated[handle].discard(group_id)
    await _set_replicas(session, group_id)
    return ""


@command("mc_node_destroy", "<node>")
async def node_destroy(session: CommandSession, words: Sequence[str]) -> str:
    """Remove a node, also from its groups."""
    handle = _node(session, words[0])
    groups = session.associated.pop(handle)
    for group_id in sorted(groups):
        session.associated[handle] = {group_id}
        await _learn(session, group_id)
        del session.associated[handle]
        await _set_replicas(session, group_id)
    del session.nodes[handle]
    session.node_lags.pop(handle, None)
    return ""


@command("mc_dump")
async def mc_dump(session: CommandSession, words: Sequence[str]) -> str:
    """Show all multicast groups, with their nodes."""
    lines = ["==========", "MC ENTRIES"]
    for group_id in await learned_groups(session):
        lines += ["**********", f"mgrp({group_id})"]
        for handle, groups in session.associated.items():
            if group_id in groups:
                instance, ports = session.nodes[handle]
                lags = session.node_lags.get(handle, ())
                sends = f"(ports=[{_listed(ports)}], lags=[{_listed(lags)}])"
                lines.append(f"  -> (L1h={handle}, rid={instance}) -> {sends}")
    lines += ["==========", "LAGS"]
    lines += [f"lag({lag}) -> ports=[{_listed(ports)}]" for lag, ports in sorted(session.lags.items())]
    return "\n".join([*lines, "=========="])


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
