"""Multicast groups and mirroring sessions, built up as on BMv2's command line.

A node (one replication id, some ports) is created first, gets the next handle from 0 on, and is then associated
with groups; a session mirrors to a port or to a group.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.switch.backend import CloneSession, Replica, SwitchBackend
from weft.switch.stf.errors import StfStatementError


@dataclass(slots=True)
class _Node:
    replication_id: int
    ports: tuple[int, ...]


class ScriptedReplication:
    """The groups and sessions that a script made on `backend`."""

    def __init__(self, backend: SwitchBackend) -> None:
        self._backend = backend
        self._nodes: list[_Node] = []
        self._groups: dict[int, list[int]] = {}
        self._mirrored_groups: dict[int, int] = {}

    def create_group(self, group: int) -> None:
        """Create an empty group."""
        if group in self._groups:
            raise StfStatementError(f"multicast group {group} exists already")
        self._groups[group] = []
        self._write_group(group)

    def create_node(self, replication_id: int, *ports: int) -> None:
        """Create a node; its handle is the number of earlier nodes."""
        self._nodes.append(_Node(replication_id, ports))

    def update_node(self, handle: int, *ports: int) -> None:
        """Change the ports of a node, also in groups that have it."""
        self._node(handle).ports = ports
        for group, handles in self._groups.items():
            if handle in handles:
                self._write_group(group)

    def associate_node(self, group: int, handle: int) -> None:
        """Put a node into a group."""
        self._node(handle)
        if handle in self._group(group):
            raise StfStatementError(f"multicast group {group} has node {handle} already")
        self._group(group).append(handle)
        self._write_group(group)

    def mirror_to_port(self, session: int, port: int) -> None:
        """Make a session mirror to one port."""
        self._mirrored_groups.pop(session, None)
        self._backend.clone_session_set(session, CloneSession((Replica(port),)))

    def mirror_to_group(self, session: int, group: int) -> None:
        """Make a session mirror to a group, including nodes that join it later."""
        self._group(group)
        self._mirrored_groups[session] = group
        self._write_group(group)

    def delete_mirror(self, session: int) -> None:
        """Remove a session."""
        self._mirrored_groups.pop(session, None)
        self._backend.clone_session_delete(session)

    def _node(self, handle: int) -> _Node:
        if handle >= len(self._nodes):
            raise StfStatementError(f"there is no node {handle}: {len(self._nodes)} were created, from 0 on")
        return self._nodes[handle]

    def _group(self, group: int) -> list[int]:
        if group not in self._groups:
            known = ", ".join(map(str, sorted(self._groups))) or "none was created"
            raise StfStatementError(f"there is no multicast group {group} (groups: {known})")
        return self._groups[group]

    def _write_group(self, group: int) -> None:
        nodes = [self._nodes[handle] for handle in self._groups[group]]
        replicas = tuple(Replica(port, node.replication_id) for node in nodes for port in node.ports)
        self._backend.multicast_group_set(group, replicas)
        for session, mirrored in self._mirrored_groups.items():
            if mirrored == group:
                self._backend.clone_session_set(session, CloneSession(replicas))
