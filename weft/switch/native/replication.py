"""Multicast groups and clone sessions of the native switch."""

from __future__ import annotations

from collections.abc import Sequence

from weft.switch.backend import CloneSession, EntryNotFoundError, Replica
from weft.switch.checks import check_clone_session, check_multicast_group
from weft.switch.native.base import NativeSwitchBase
from weft.switch.native.values import native_replicas


class NativeReplication(NativeSwitchBase):
    """Where the switch sends copies of packets to."""

    def multicast_group_set(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Create or replace a multicast group."""
        check_multicast_group(group_id, replicas)
        with self.engine.lock():
            self._failover.apply(
                ("multicast group", group_id),
                replicas,
                lambda live: self.native.multicast_group_set(group_id, native_replicas(live)),
            )

    def multicast_group_delete(self, group_id: int) -> None:
        """Remove a multicast group."""
        with self.engine.lock():
            self._failover.forget(("multicast group", group_id))
            if group_id < 0 or not self.native.multicast_group_delete(group_id):
                raise EntryNotFoundError(f"multicast group {group_id}")

    def clone_session_set(self, session_id: int, session: CloneSession) -> None:
        """Create or replace a clone session."""
        check_clone_session(session_id, session)
        rest = session.class_of_service, session.packet_length_bytes
        with self.engine.lock():
            self._failover.apply(
                ("clone session", session_id),
                session.replicas,
                lambda live: self.native.clone_session_set(session_id, native_replicas(live), *rest),
            )

    def clone_session_delete(self, session_id: int) -> None:
        """Remove a clone session."""
        with self.engine.lock():
            self._failover.forget(("clone session", session_id))
            if session_id < 0 or not self.native.clone_session_delete(session_id):
                raise EntryNotFoundError(f"clone session {session_id}")
