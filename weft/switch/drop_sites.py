"""Places where a program marks packets to be dropped, numbered as in the state that its machine code leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from weft.switch.bmv2json import Action, ActionCallNode, Program, Table

_MARKS = ("mark_to_drop", "drop")
_HIDDEN = "tbl_"
"""Name prefix of the tables that p4c makes for statements of an `apply`, which no P4 program declares."""

Outcome = Literal["", "hit", "miss"]
Key = tuple[str, str, int, Outcome]


@dataclass(frozen=True, slots=True)
class DropSite:
    """An action that marks packets to be dropped, run by one table or statement.

    `table` is empty for a statement outside of tables. `outcome` is hit or miss; it is empty without a lookup.
    `source` is the mark's place, `file:line`, if the compiler recorded it.
    """

    pipeline: str
    table: str
    action: str
    outcome: Outcome
    source: str


@dataclass(frozen=True, slots=True)
class Loss:
    """Packets lost in a switch: reason, ingress port, and the site that marked them.

    `is_copy`: they were copies, which a program removes from a flood or a mirror.
    """

    reason: str
    port: int
    packets: int
    site: DropSite | None
    is_copy: bool = False


def marks_to_drop(action: Action) -> bool:
    """Return whether an action may mark its packet to be dropped."""
    return any(call.name in _MARKS for call in action.primitives)


def drop_sites(program: Program) -> dict[Key, DropSite]:
    """Return all sites by pipeline, node, action and outcome; the first one has number 1."""
    return dict(_sites(program))


def _sites(program: Program) -> Iterator[tuple[Key, DropSite]]:
    for pipeline in program.pipelines.values():
        for name, node in pipeline.nodes.items():
            actions: tuple[Action, ...] = ()
            outcomes: tuple[Outcome, ...] = ("",)
            if isinstance(node, Table):
                actions = node.actions
                outcomes = ("hit", "miss") if node.key and not node.has_fixed_action else ("",)
            elif isinstance(node, ActionCallNode):
                actions = (node.action,)
            for action in filter(marks_to_drop, actions):
                for outcome in outcomes:
                    yield (
                        (pipeline.name, name, action.id, outcome),
                        _site(pipeline.name, node, action, outcome),
                    )


def _site(pipeline: str, node: object, action: Action, outcome: Outcome) -> DropSite:
    is_declared = isinstance(node, Table) and not node.name.startswith(_HIDDEN)
    table = node.name if isinstance(node, Table) and is_declared else ""
    return DropSite(pipeline, table, action.name, outcome, _source(action))


def _source(action: Action) -> str:
    source = next((call.source for call in action.primitives if call.name in _MARKS), None)
    if not source:
        return ""
    # Without its folder, so that outputs are the same on every machine.
    file, line, *_ = source.split(":")
    return f"{PurePath(file).name}:{line}"
