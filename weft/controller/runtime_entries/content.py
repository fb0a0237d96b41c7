"""Content of a file of entries.

```json
{"table_entries": [{"table": "MyIngress.ipv4_lpm", "match": {"hdr.ipv4.dstAddr": ["10.0.1.1", 32]},
                    "action_name": "MyIngress.ipv4_forward", "action_params": {"port": 1}}],
 "multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{"egress_port": 1, "instance": 1}]}],
 "clone_session_entries": [{"clone_session_id": 5, "replicas": [{"egress_port": 2}], "packet_length_bytes": 128}]}
```

The example has the tutorials' kinds of entries. Other kinds are named after P4Runtime's messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import finsy

from weft.controller.entities import Cell, Entity
from weft.controller.errors import SettingError
from weft.controller.program_names import ProgramNames
from weft.controller.runtime_entries.cells import CELL_READERS, cell_key
from weft.controller.runtime_entries.fields import at, mapping
from weft.controller.runtime_entries.profiles import profile_group, profile_member, require_known
from weft.controller.runtime_entries.replication import clone_session, multicast_group
from weft.controller.runtime_entries.tables import table_entry

MAX_ENTRIES = 1 << 20
_Read = TypeVar("_Read")
_READERS: dict[str, Callable[[Any, ProgramNames], Entity]] = {
    "table_entries": table_entry,
    "action_profile_members": profile_member,
    "action_profile_groups": profile_group,
    "multicast_group_entries": lambda entry, _: multicast_group(entry),
    "clone_session_entries": lambda entry, _: clone_session(entry),
}
_IGNORED = ("target", "p4info", "bmv2_json")
"""Keys of the tutorials' files that the scenario's `p4` replaces."""


@dataclass(frozen=True)
class RuntimeEntries:
    """The content of a file, by place (`table_entries[3]`).

    Attributes:
        entities: part of the controller's plan, which a switch holds permanently.
        cells: cells written once, after a switch has loaded its program.

    """

    entities: Mapping[str, Entity]
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class EntriesSettings:
    """A user's entries by switch: part of its plan, overriding features' entries with the same key.

    `cells` are written once, after a switch has loaded its program.
    """

    by_switch: Mapping[str, tuple[Entity, ...]] = field(default_factory=dict)
    cells: Mapping[str, tuple[Cell, ...]] = field(default_factory=dict)


def runtime_entries(tree: Any, program: ProgramNames, is_whole: bool = True) -> RuntimeEntries:
    """Return the entries in a file's content; unless `is_whole`, they may refer to other entities of the switch.

    Raises:
        SettingError: names the invalid entry, counted from 0, and the reason: `table_entries[3]: unknown table …`.

    """
    tree = mapping(tree, (*_READERS, *CELL_READERS, *_IGNORED), "a file of entries")
    entities = _all_of(tree, _READERS, program)
    cells = _all_of(tree, CELL_READERS, program)
    if is_whole:
        require_known(entities, program)
    _require_room(entities, program)
    _require_different(cells)
    return RuntimeEntries(entities, cells)


def _all_of(
    tree: Mapping[str, Any],
    readers: Mapping[str, Callable[[Any, ProgramNames], _Read]],
    program: ProgramNames,
) -> dict[str, _Read]:
    found = {}
    for kind, read in readers.items():
        entries = tree.get(kind)
        if entries is None:
            continue
        if not isinstance(entries, list) or len(entries) > MAX_ENTRIES:
            raise SettingError(f"{kind}: must be a list of at most {MAX_ENTRIES:,} entries")
        for number, entry in enumerate(entries):
            place = f"{kind}[{number}]"
            found[place] = at(place, read, entry, program)
    return found


def _require_room(entities: Mapping[str, Entity], program: ProgramNames) -> None:
    """Raise SettingError at the first entry or member that exceeds the size of its table or profile."""
    found: Counter[str] = Counter()
    for place, entity in entities.items():
        if isinstance(entity, finsy.P4TableEntry) and not entity.is_default_action:
            name, size = entity.table_id, program.tables[entity.table_id].info.size
        elif isinstance(entity, finsy.P4ActionProfileMember):
            name, size = entity.action_profile_id, program.profiles[entity.action_profile_id].size
        else:
            continue
        found[name] += 1
        if 0 < size < found[name]:
            raise SettingError(f"{name} has room for {size}", place=place)


def _require_different(cells: Mapping[str, Cell]) -> None:
    found: dict[tuple[str, str, int | None], str] = {}
    for place, cell in cells.items():
        key = cell_key(cell)
        if key in found:
            raise SettingError(f"has the same key as {found[key]}", place=place)
        found[key] = place
