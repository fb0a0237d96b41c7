"""Where the parts of a fabric are: in one engine, or in the partitions of a virtual run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weft.engine import Engine, Partitions
from weft.switch.daemon.config import SwitchConfig


@dataclass(frozen=True)
class Placement:
    """The engines of `switches` by device id, and of hosts (by device id and port of the switch); a common `clock`."""

    clock: Engine | Partitions
    switches: Mapping[int, Engine]
    hosts: Mapping[tuple[int, int], Engine]

    @classmethod
    def in_one(cls, engine: Engine, switches: Iterable[SwitchConfig]) -> Placement:
        """Return the placement of everything in one engine."""
        configs = list(switches)
        return cls(
            engine,
            {config.device_id: engine for config in configs},
            {(config.device_id, port.port): engine for config in configs for port in config.ports},
        )
