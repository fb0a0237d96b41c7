"""P4Info ids and aliases as p4c assigns them (P4Runtime specification, sections 6.3 and 6.4.2).

An id is a prefix byte for the kind of object and 24 bits of Jenkins' one-at-a-time hash of the name; collisions
take the next free number, in the order of names. An alias is the shortest suffix of a name, cut at dots, that
no other object has.
"""

from __future__ import annotations

from enum import IntEnum


class Prefix(IntEnum):
    """The first byte of an id (p4.config.v1.P4Ids)."""

    ACTION = 0x01
    TABLE = 0x02
    VALUE_SET = 0x03
    CONTROLLER_HEADER = 0x04
    ACTION_PROFILE = 0x11
    COUNTER = 0x12
    DIRECT_COUNTER = 0x13
    METER = 0x14
    DIRECT_METER = 0x15
    REGISTER = 0x16
    DIGEST = 0x17


class IdConflict(Exception):
    """An @id that cannot be used; the message says why."""


def one_at_a_time(text: str) -> int:
    """Bob Jenkins' one-at-a-time hash, 32 bits."""
    value = 0
    for byte in text.encode():
        value = (value + byte) & 0xFFFFFFFF
        value = (value + (value << 10)) & 0xFFFFFFFF
        value ^= value >> 6
    value = (value + (value << 3)) & 0xFFFFFFFF
    value ^= value >> 11
    return (value + (value << 15)) & 0xFFFFFFFF


class IdAllocator:
    """Collects names, then numbers them all at once."""

    def __init__(self) -> None:
        self._wanted: dict[tuple[Prefix, str], int | None] = {}
        self._ids: dict[tuple[Prefix, str], int] = {}

    def add(self, prefix: Prefix, name: str, wanted: int | None = None) -> None:
        """Announce an object, maybe with the program's @id. Raises IdConflict."""
        if wanted is not None:
            if wanted >> 24 not in (0, prefix):
                raise IdConflict(
                    f"@id {wanted:#x} of '{name}' has the prefix of another kind ({int(prefix):#04x} needed)"
                )
            wanted |= prefix << 24
            for (_, other), taken in self._wanted.items():
                if taken == wanted and other != name:
                    raise IdConflict(f"@id {wanted:#x} of '{name}' is also that of '{other}'")
        self._wanted.setdefault((prefix, name), wanted)

    def assign(self) -> None:
        """Number everything announced."""
        self._ids = {key: wanted for key, wanted in self._wanted.items() if wanted is not None}
        used = set(self._ids.values())
        for prefix, name in sorted(key for key in self._wanted if key not in self._ids):
            number = one_at_a_time(name) & 0xFFFFFF
            while (prefix << 24 | number) in used:
                number = (number + 1) & 0xFFFFFF
            self._ids[(prefix, name)] = prefix << 24 | number
            used.add(prefix << 24 | number)

    def id(self, prefix: Prefix, name: str) -> int:
        """The id of an announced object."""
        return self._ids[(prefix, name)]

    def alias(self, name: str) -> str:
        """The shortest suffix of a name that no other name has."""
        others = [other.split(".")[::-1] for other in {other for _, other in self._wanted} if other != name]
        parts = name.split(".")
        for count in range(1, len(parts)):
            suffix = parts[::-1][:count]
            if not any(other[:count] == suffix for other in others):
                return ".".join(parts[-count:])
        return name


def field_ids(wanted: list[int | None]) -> list[int]:
    """Ids of parameters or fields: the program's, and positions otherwise, skipping those taken."""
    taken = {number for number in wanted if number is not None}
    ids: list[int] = []
    index = 1
    for number in wanted:
        if number is not None:
            index += 1
            ids.append(number)
            continue
        while index in taken:
            index += 1
        ids.append(index)
        taken.add(index)
    return ids
