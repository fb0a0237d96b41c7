"""Actions, tables and the graphs of pipelines, as the loader has checked them.

Source: behavioral-model docs/JSON_format.md, format version 2.x.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from weft.switch.bmv2json.expressions import Expression, FieldRef
from weft.switch.bmv2json.primitives import PrimitiveCall


@dataclass(frozen=True, slots=True)
class ActionParameter:
    """A parameter that a table entry supplies."""

    name: str
    width_bits: int


@dataclass(frozen=True, slots=True)
class Action:
    """An action. Ids are unique in a program, names are not (p4c repeats NoAction).

    Within a table names are unique, too.
    """

    name: str
    id: int
    parameters: tuple[ActionParameter, ...]
    primitives: tuple[PrimitiveCall, ...]


class MatchKind(enum.Enum):
    """Match kind of a table or a key field.

    P4's `optional` is `TERNARY` here; `selector` is not a key field.
    """

    VALID = "valid"
    EXACT = "exact"
    LPM = "lpm"
    TERNARY = "ternary"
    RANGE = "range"


@dataclass(frozen=True, slots=True)
class KeyField:
    """One field of a table's key; `name` is the control plane's name.

    `mask` is applied to the field before matching.
    """

    name: str
    kind: MatchKind
    field: FieldRef
    mask: int | None = None


class TableType(enum.Enum):
    """How a table's entries name their action."""

    SIMPLE = "simple"
    INDIRECT = "indirect"
    INDIRECT_WITH_SELECTOR = "indirect_ws"


@dataclass(frozen=True, slots=True)
class DefaultEntry:
    """The program's default action; `constant` if the control plane may not change it."""

    action: Action
    arguments: tuple[int, ...]
    constant: bool


@dataclass(frozen=True, slots=True)
class MatchValue:
    """One field of a constant entry, with bits that do not count cleared.

    `second` is the prefix length, mask or end of the range.
    """

    kind: MatchKind
    value: int
    second: int = 0


@dataclass(frozen=True, slots=True)
class ConstantEntry:
    """An entry of the program; a **lower** `priority` wins, as in BMv2."""

    key: tuple[MatchValue, ...]
    action: Action
    arguments: tuple[int, ...]
    priority: int
    source: str | None = None
    """Where the P4 program has it, as PrimitiveCall's."""


@dataclass(frozen=True, slots=True)
class Table:
    """`next_nodes` maps action ids to the next node (None: end of pipeline).

    `hit_next`/`miss_next` replace it if `branches_on_hit`.
    """

    name: str
    id: int
    kind: MatchKind
    type: TableType
    max_size: int
    key: tuple[KeyField, ...]
    actions: tuple[Action, ...]
    next_nodes: Mapping[int, str | None]
    branches_on_hit: bool
    hit_next: str | None
    miss_next: str | None
    base_default_next: str | None
    with_counters: bool
    supports_timeout: bool
    direct_meter: str | None
    action_profile: str | None
    default_entry: DefaultEntry | None
    constant_entries: tuple[ConstantEntry, ...]
    immutable: bool
    """True if the program lists entries, so that the control plane may not add or remove any."""
    source: str | None = None
    """Where the P4 program declares it, as PrimitiveCall's."""

    def action(self, name: str) -> Action:
        """The action of this table called `name`; KeyError if there is none."""
        for action in self.actions:
            if action.name == name:
                return action
        raise KeyError(name)

    @property
    def has_fixed_action(self) -> bool:
        """True where the same action is always executed, without data: the compiler's wrapper of a direct call.

        The native switch looks nothing up there.
        """
        return (
            not self.key
            and self._has_fixed_default
            and not self.with_counters
            and self.direct_meter is None
            and not self.constant_entries
        )

    @property
    def misses_do_nothing(self) -> bool:
        """True where the default action is empty and constant, so that a miss may at most be counted.

        The native switch does not read the default entry's action there.
        """
        default = self.default_entry
        is_empty = default is not None and not default.action.primitives
        return bool(self.key) and self._has_fixed_default and is_empty

    @property
    def _has_fixed_default(self) -> bool:
        default = self.default_entry
        is_fixed = default is not None and default.constant and not default.action.parameters
        return is_fixed and self.type is TableType.SIMPLE

    @property
    def needs_priority(self) -> bool:
        """True where several entries may match and a priority decides."""
        return self.kind in (MatchKind.TERNARY, MatchKind.RANGE)


@dataclass(frozen=True, slots=True)
class Conditional:
    """A branch of a pipeline."""

    name: str
    id: int
    expression: Expression
    true_next: str | None
    false_next: str | None
    source: str | None = None
    """Where the P4 program has it, as PrimitiveCall's."""


@dataclass(frozen=True, slots=True)
class ActionCallNode:
    """A direct call of an action without parameters."""

    name: str
    id: int
    action: Action
    next_node: str | None


PipelineNode: TypeAlias = Table | Conditional | ActionCallNode


@dataclass(frozen=True, slots=True)
class ActionProfile:
    """`selector_algorithm` and `selector_input` are set if the profile selects among members of groups."""

    name: str
    id: int
    max_size: int
    selector_algorithm: str | None
    selector_input: tuple[FieldRef, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`nodes` by name form an acyclic graph from `initial_node` (None: empty)."""

    name: str
    id: int
    initial_node: str | None
    nodes: Mapping[str, PipelineNode]
    action_profiles: Mapping[str, ActionProfile]

    @property
    def tables(self) -> list[Table]:
        """The tables among the nodes."""
        return [node for node in self.nodes.values() if isinstance(node, Table)]
