"""Multicast groups and clone sessions of the native switch."""

from __future__ import annotations

from collections.abc import Sequence

from weft.engine import _core
from weft.switch.backend import CloneSession, EntryNotFoundError, Replica
from weft.switch.backend.checks import check_clone_session, check_multicast_group
from weft.switch.backend.live_replicas import Failover


class Replication:
    """Destinations of packet copies; `failover` replaces replicas with ports that are down."""

    def __init__(self, native: _core.Switch, engine: _core.Engine, failover: Failover) -> None:
        self._native = native
        self._engine = engine
        self._failover = failover

    def set_multicast_group(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Create or replace a multicast group."""
        check_multicast_group(group_id, replicas)
        with self._engine.lock():
            self._failover.apply(
                ("multicast group", group_id),
                replicas,
                lambda live: self._native.multicast_group_set(group_id, _pairs(live)),
            )

    def delete_multicast_group(self, group_id: int) -> None:
        """Remove a multicast group."""
        with self._engine.lock():
            self._failover.forget(("multicast group", group_id))
            if group_id < 0 or not self._native.multicast_group_delete(group_id):
                raise EntryNotFoundError(f"multicast group {group_id}")

    def set_clone_session(self, session_id: int, session: CloneSession) -> None:
        """Create or replace a clone session."""
        check_clone_session(session_id, session)
        rest = session.class_of_service, session.packet_length_bytes
        with self._engine.lock():
            self._failover.apply(
                ("clone session", session_id),
                session.replicas,
                lambda live: self._native.clone_session_set(session_id, _pairs(live), *rest),
            )

    def delete_clone_session(self, session_id: int) -> None:
        """Remove a clone session."""
        with self._engine.lock():
            self._failover.forget(("clone session", session_id))
            if session_id < 0 or not self._native.clone_session_delete(session_id):
                raise EntryNotFoundError(f"clone session {session_id}")


def _pairs(replicas: Sequence[Replica]) -> list[tuple[int, int]]:
    """Return port and instance of each checked replica."""
    return [(replica.port, replica.instance) for replica in replicas]
