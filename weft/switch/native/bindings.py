"""Actions of entries and members in C++'s form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from weft.switch.backend import ActionCall
from weft.switch.backend.checks import MAX_ID, check_range
from weft.switch.bmv2json import Action, DefaultEntry
from weft.switch.lowering.layout import ActionDataLayout, action_data_layout

Binding: TypeAlias = tuple[int, int, bytes]
"""An action for C++ (ActionBinding): kind, number of the action, member or group, packed arguments."""

ACTION, MEMBER, GROUP = 0, 1, 2
"""Kinds of a Binding."""


class CalledActions:
    """Actions that entries of a table or members of a profile may call, and the layouts of their data."""

    def __init__(self, actions: Iterable[Action]) -> None:
        self._layouts = {action.name: (action.id, action_data_layout(action)) for action in actions}

    @property
    def by_id(self) -> dict[int, tuple[str, ActionDataLayout]]:
        """Name and layout of each action."""
        return {number: (name, layout) for name, (number, layout) in self._layouts.items()}

    def packed(self, call: ActionCall) -> tuple[int, bytes] | None:
        """Return number and data of a call; None if no action has its name, or its arguments do not fit."""
        number, layout = self._layouts.get(call.action, (0, None))
        if layout is None or len(call.arguments) != len(layout.widths_bits):
            return None
        for argument, width_bits in zip(call.arguments, layout.widths_bits, strict=True):
            if not 0 <= argument < 1 << width_bits:
                return None
        return number, layout.pack(call.arguments)


def checked_id(what: str, number: int) -> int:
    """Return `number` if it fits 32 bits."""
    check_range(what, number, 0, MAX_ID)
    return number


def packed(action: Action, arguments: Sequence[int]) -> tuple[int, bytes]:
    """Return number and data of an action with checked arguments."""
    return action.id, action_data_layout(action).pack(arguments)


def default_binding(default: DefaultEntry | None, no_action: int) -> Binding:
    """Return the binding of the program's default entry; `no_action` stands for none."""
    if default is None:
        return ACTION, no_action, b""
    return (ACTION, *packed(default.action, default.arguments))
