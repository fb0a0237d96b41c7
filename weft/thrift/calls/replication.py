"""Calls on multicast groups and clone sessions. Maps of ports and lags are texts of 0 and 1, the last for port 0."""

from __future__ import annotations

import json

from weft.controller.switch_cli import mirroring, replication
from weft.thrift.bmv2 import MirroringError, MulticastError
from weft.thrift.calls.registry import CallRefusedError, CallUnsupportedError, Target, carries_out, refused_as
from weft.thrift.calls.tables import Record

_MOST_NODES = 1 << 16
_MOST_BITS = 1 << 10


def _members(bits: str) -> list[str]:
    """Return the numbers in a map, as words of a command."""
    if len(bits) > _MOST_BITS or not set(bits) <= {"0", "1"}:
        reason = f"a map of ports is no text of at most {_MOST_BITS} 0 and 1"
        raise CallRefusedError(MulticastError.ERROR, reason)
    return [str(number) for number, bit in enumerate(reversed(bits)) if bit == "1"]


def _sends(port_map: str, lag_map: str) -> list[str]:
    return [*_members(port_map), "|", *_members(lag_map)]


def _require_node(on: Target, handle: int) -> None:
    if handle not in on.session.nodes:
        raise CallRefusedError(MulticastError.INVALID_L1_HANDLE, f"there is no node {handle}")


async def _require_group(on: Target, group: int) -> None:
    if group not in await replication.learned_groups(on.session):
        raise CallRefusedError(MulticastError.INVALID_MGRP_HANDLE, f"there is no group {group}")


@carries_out
async def bm_mc_mgrp_create(on: Target, *, mgrp: int) -> int:
    """Create a group, unless it exists, and return its handle, its id."""
    if mgrp not in await replication.learned_groups(on.session):
        with refused_as(MulticastError.INVALID_MGID):
            await replication.mgrp_create(on.session, [str(mgrp)])
    return mgrp


@carries_out
async def bm_mc_mgrp_destroy(on: Target, *, mgrp_handle: int) -> None:
    """Remove a group, if it exists."""
    if mgrp_handle in await replication.learned_groups(on.session):
        await replication.mgrp_destroy(on.session, [str(mgrp_handle)])


@carries_out
async def bm_mc_node_create(on: Target, *, rid: int, port_map: str, lag_map: str = "") -> int:
    """Create a node and return its handle."""
    if len(on.session.nodes) >= _MOST_NODES:
        raise CallRefusedError(MulticastError.TABLE_FULL, f"there are {_MOST_NODES} nodes")
    before = set(on.session.nodes)
    with refused_as(MulticastError.ERROR):
        await replication.node_create(on.session, [str(rid), *_sends(port_map, lag_map)])
    (handle,) = on.session.nodes.keys() - before
    return handle


@carries_out
async def bm_mc_node_update(on: Target, *, l1_handle: int, port_map: str, lag_map: str = "") -> None:
    """Replace a node's ports and lags."""
    _require_node(on, l1_handle)
    with refused_as(MulticastError.ERROR):
        await replication.node_update(on.session, [str(l1_handle), *_sends(port_map, lag_map)])


@carries_out
async def bm_mc_node_associate(on: Target, *, mgrp_handle: int, l1_handle: int) -> None:
    """Add a node to a group."""
    _require_node(on, l1_handle)
    await _require_group(on, mgrp_handle)
    with refused_as(MulticastError.ERROR):
        await replication.node_associate(on.session, [str(mgrp_handle), str(l1_handle)])


@carries_out
async def bm_mc_node_dissociate(on: Target, *, mgrp_handle: int, l1_handle: int) -> None:
    """Remove a node from a group."""
    _require_node(on, l1_handle)
    await _require_group(on, mgrp_handle)
    with refused_as(MulticastError.ERROR):
        await replication.node_dissociate(on.session, [str(mgrp_handle), str(l1_handle)])


@carries_out
async def bm_mc_node_destroy(on: Target, *, l1_handle: int) -> None:
    """Remove a node, also from its groups."""
    _require_node(on, l1_handle)
    await replication.node_destroy(on.session, [str(l1_handle)])


@carries_out
async def bm_mc_set_lag_membership(on: Target, *, lag_index: int, port_map: str) -> None:
    """Set the ports of a lag."""
    with refused_as(MulticastError.ERROR):
        await replication.set_lag_membership(on.session, [str(lag_index), *_members(port_map)])


@carries_out
async def bm_mc_get_entries(on: Target) -> str:
    """Return groups, nodes and lags as BMv2's JSON; a node has one set of ports, so both of its handles are equal."""
    groups = await replication.learned_groups(on.session)
    session = on.session
    nodes = sorted(session.nodes.items())
    return json.dumps(
        {
            "mgrps": [
                {"id": group, "l1_handles": [each for each, of in sorted(session.associated.items()) if group in of]}
                for group in groups
            ],
            "l1_handles": [{"handle": each, "rid": rid, "l2_handle": each} for each, (rid, _) in nodes],
            "l2_handles": [
                {"handle": each, "ports": ports, "lags": session.node_lags.get(each, ())} for each, (_, ports) in nodes
            ],
            "lags": [{"id": lag, "ports": ports} for lag, ports in sorted(session.lags.items())],
        }
    )


@carries_out
async def mirroring_session_add(on: Target, *, mirror_id: int, config: Record) -> None:
    """Send a session's clones out of a port or to a multicast group."""
    port, group = config["port"], config["mgid"]
    if (port is None) == (group is None):
        raise CallUnsupportedError("a clone session has a port or a multicast group, and not both")
    if port is not None:
        await mirroring.mirroring_add(on.session, [str(mirror_id), str(port)])
    else:
        await mirroring.mirroring_add_mc(on.session, [str(mirror_id), str(group)])


async def _ports(on: Target, mirror_id: int) -> list[int]:
    ports = await mirroring.ports_of(on.session, mirror_id)
    if ports is None:
        raise CallRefusedError(MirroringError.SESSION_NOT_FOUND, f"there is no session {mirror_id}")
    return ports


@carries_out
async def mirroring_session_delete(on: Target, *, mirror_id: int) -> None:
    """Remove a session."""
    await _ports(on, mirror_id)
    await mirroring.mirroring_delete(on.session, [str(mirror_id)])


@carries_out
async def mirroring_session_get(on: Target, *, mirror_id: int) -> Record:
    """Return a session's port or group."""
    ports = await _ports(on, mirror_id)
    if mirror_id in on.session.mirrored:
        return {"mgid": on.session.mirrored[mirror_id]}
    if len(ports) != 1:
        raise CallUnsupportedError(f"P4Runtime gave the session {len(ports)} ports; this call has room for one")
    return {"port": ports[0]}


# The older calls, which answer 1 for success and 0 or -1 for failure


@carries_out
async def mirroring_mapping_add(on: Target, *, mirror_id: int, egress_port: int) -> int:
    """Send a session's clones out of a port."""
    await mirroring_session_add(on, mirror_id=mirror_id, config={"port": egress_port, "mgid": None})
    return 1


@carries_out
async def mirroring_mapping_delete(on: Target, *, mirror_id: int) -> int:
    """Remove a session and return whether there was one."""
    if await mirroring.ports_of(on.session, mirror_id) is None:
        return 0
    await mirroring_session_delete(on, mirror_id=mirror_id)
    return 1


@carries_out
async def mirroring_mapping_get_egress_port(on: Target, *, mirror_id: int) -> int:
    """Return a session's port; -1 if it has none."""
    ports = await mirroring.ports_of(on.session, mirror_id)
    return ports[0] if ports and mirror_id not in on.session.mirrored else -1
