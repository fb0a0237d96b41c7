"""Errors with which a switch refuses requests."""

from __future__ import annotations

from weft.errors import Refusal


class BackendError(Refusal):
    """A request that the switch refuses; the subclass says why."""


class InvalidRequestError(BackendError):
    """The request does not fit the program: unknown name, value too wide, wrong kind of match…"""


class EntryNotFoundError(BackendError):
    """The entry to read, change or remove does not exist."""


class EntryExistsError(BackendError):
    """The entry to insert already exists."""


class CapacityExceededError(BackendError):
    """A table, profile or group is full."""


class NotPermittedError(BackendError):
    """The program forbids the change (constant entries or constant default action)."""


class NotReadyError(BackendError):
    """No program is loaded, or an entry cannot be removed because another one refers to it."""


class UnsupportedProgramError(BackendError):
    """The program is well-formed but uses something that this backend does not implement.

    Says what and where.
    """
