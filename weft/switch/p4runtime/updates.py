"""Checks of an update's type, shared by several kinds of entity (P4Runtime §12)."""

from __future__ import annotations

from finsy.proto import p4r

from weft.switch.p4runtime.errors import ALREADY_EXISTS, NOT_FOUND, RequestError, invalid


def require_modify(update_type: int, what: str) -> None:
    """Raise INVALID_ARGUMENT unless the update is a MODIFY."""
    if update_type != p4r.Update.MODIFY:
        raise invalid(f"{what} can only be modified")


def check_existence(update_type: int, exists: bool) -> None:
    """Raise ALREADY_EXISTS for an INSERT of an existing entity, NOT_FOUND for a MODIFY or DELETE of a missing one."""
    if update_type == p4r.Update.INSERT and exists:
        raise RequestError(ALREADY_EXISTS, "it exists already")
    if update_type != p4r.Update.INSERT and not exists:
        raise RequestError(NOT_FOUND, "it does not exist")
