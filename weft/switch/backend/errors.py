"""Why a switch refuses a request."""

from __future__ import annotations


class BackendError(Exception):
    """A request that the switch refuses; the subclass says why."""


class InvalidRequestError(BackendError):
    """The request does not fit the program: unknown name, value too wide, wrong kind of match…"""


class EntryNotFoundError(BackendError):
    """What should be read, changed or removed is not there."""


class EntryExistsError(BackendError):
    """What should be inserted is there already."""


class CapacityExceededError(BackendError):
    """A table, profile or group is full."""


class NotPermittedError(BackendError):
    """The program forbids the change (constant entries or constant default action)."""


class NotReadyError(BackendError):
    """No program is loaded, or something that refers to the entry keeps it from being removed."""


class UnsupportedProgramError(BackendError):
    """The program is well-formed but uses something that this backend does not implement.

    Says what and where.
    """
