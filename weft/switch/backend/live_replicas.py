"""Chooses between replicas and their backups by the state of their ports (P4Runtime §9.5.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.switch.backend import Replica


def live_replicas(replicas: Sequence[Replica], ports_down: set[int]) -> tuple[Replica, ...]:
    """Return for each replica with backups the first one with a port that is up, omitting it if all are down.

    A replica without backups is kept, even if its port is down.
    """
    chosen = (_preferred(replica, ports_down) if replica.backups else replica for replica in replicas)
    return tuple(replica for replica in chosen if replica is not None)


def _preferred(replica: Replica, ports_down: set[int]) -> Replica | None:
    return next((each for each in (replica, *replica.backups) if each.port not in ports_down), None)


class Failover:
    """The ports that are down, and the multicast groups and clone sessions that depend on them."""

    def __init__(self) -> None:
        self.ports_down: set[int] = set()
        self._settings: dict[object, tuple[Sequence[Replica], Callable[[Sequence[Replica]], None]]] = {}

    def apply(self, key: object, replicas: Sequence[Replica], setting: Callable[[Sequence[Replica]], None]) -> None:
        """Call `setting` with the live replicas, now and at each change; `key` names the group or session."""
        setting(live_replicas(replicas, self.ports_down))
        self._settings.pop(key, None)
        if any(replica.backups for replica in replicas):
            self._settings[key] = (replicas, setting)

    def forget(self, key: object) -> None:
        """Forget a removed group or session."""
        self._settings.pop(key, None)

    def clear(self) -> None:
        """Forget all groups and sessions, but not the ports' states."""
        self._settings.clear()

    def set_port_up(self, port: int, up: bool) -> None:
        """Record a port's state and set all groups and sessions with backups again."""
        (self.ports_down.discard if up else self.ports_down.add)(port)
        for replicas, setting in self._settings.values():
            setting(live_replicas(replicas, self.ports_down))
