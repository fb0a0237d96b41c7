"""Events that a switch reports to its controllers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from weft.switch.backend.entities import TableKey


@dataclass(frozen=True, slots=True)
class PacketIn:
    """A packet sent to the CPU port, as deparsed (with the packet_in header, if the program has
    one). `time_ps` is by the engine's clock; None without one.
    """

    data: bytes
    time_ps: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Digest:
    """One `generate_digest`: the values of the learn list's elements. `time_ps` as in PacketIn."""

    learn_list_id: int
    values: tuple[int, ...]
    time_ps: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class IdleTimeout:
    """No packet hit an entry of `table` for its idle timeout; reported once until the next hit."""

    table: str
    key: TableKey
    priority: int


StreamEvent: TypeAlias = PacketIn | Digest | IdleTimeout
