"""Which of a replica and its backups is used, by the state of their ports (P4Runtime §9.5.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.switch.backend import Replica


def live_replicas(replicas: Sequence[Replica], ports_down: set[int]) -> tuple[Replica, ...]:
    """For each replica with backups the first whose port is up, none where all are down.

    A replica without backups stays, whatever its port.
    """
    chosen = (_preferred(replica, ports_down) if replica.backups else replica for replica in replicas)
    return tuple(replica for replica in chosen if replica is not None)


def _preferred(replica: Replica, ports_down: set[int]) -> Replica | None:
    return next((each for each in (replica, *replica.backups) if each.port not in ports_down), None)


class Failover:
    """The ports that are down, and the multicast groups and clone sessions that change with them."""

    def __init__(self) -> None:
        self.ports_down: set[int] = set()
        self._settings: dict[object, tuple[Sequence[Replica], Callable[[Sequence[Replica]], None]]] = {}

    def apply(
        self, key: object, replicas: Sequence[Replica], setting: Callable[[Sequence[Replica]], None]
    ) -> None:
        """Call `setting` with what is live, now and whenever that changes; `key` names the group or session."""
        setting(live_replicas(replicas, self.ports_down))
        self._settings.pop(key, None)
        if any(replica.backups for replica in replicas):
            self._settings[key] = (replicas, setting)

    def forget(self, key: object) -> None:
        """The group or session is gone."""
        self._settings.pop(key, None)

    def clear(self) -> None:
        """All groups and sessions are gone; ports stay as they are."""
        self._settings.clear()

    def set_port_up(self, port: int, up: bool) -> None:
        """Note a port's state and set again what has backups."""
        (self.ports_down.discard if up else self.ports_down.add)(port)
        for replicas, setting in self._settings.values():
            setting(live_replicas(replicas, self.ports_down))
