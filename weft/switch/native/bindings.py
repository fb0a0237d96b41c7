"""Actions of entries and members, as C++ takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from weft.switch.backend.checks import MAX_ID, check_range
from weft.switch.bmv2json import Action, DefaultEntry
from weft.switch.lowering.layout import action_data_layout

Binding: TypeAlias = tuple[int, int, bytes]
"""How C++ takes an action (ActionBinding): kind, number of the action, member or group, packed arguments."""

ACTION, MEMBER, GROUP = 0, 1, 2
"""Kinds of a Binding."""


def checked_id(what: str, number: int) -> int:
    """`number`, if it fits 32 bits."""
    check_range(what, number, 0, MAX_ID)
    return number


def packed(action: Action, arguments: Sequence[int]) -> tuple[int, bytes]:
    """Number and data of an action whose arguments have been checked."""
    return action.id, action_data_layout(action).pack(arguments)


def default_binding(default: DefaultEntry | None, no_action: int) -> Binding:
    """The binding of the default entry that the program gives; `no_action` stands for none."""
    if default is None:
        return ACTION, no_action, b""
    return (ACTION, *packed(default.action, default.arguments))
