"""Marks public methods that only Weft itself may call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

CallableT = TypeVar("CallableT", bound=Callable[..., object])


def internal(method: CallableT) -> CallableT:
    """Mark a method of a public class that other modules of Weft call: the API's pages leave it out."""
    vars(method)["is_internal"] = True
    return method


def is_internal(member: object) -> bool:
    """Return whether a member of a class is marked; of a property, whether its getter is."""
    return bool(getattr(getattr(member, "fget", member), "is_internal", False))
