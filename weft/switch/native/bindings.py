"""Actions of entries and members in C++'s form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from weft.switch.backend.checks import MAX_ID, check_range
from weft.switch.bmv2json import Action, DefaultEntry
from weft.switch.lowering.layout import action_data_layout

Binding: TypeAlias = tuple[int, int, bytes]
"""An action for C++ (ActionBinding): kind, number of the action, member or group, packed arguments."""

ACTION, MEMBER, GROUP = 0, 1, 2
"""Kinds of a Binding."""


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
