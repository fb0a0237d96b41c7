"""Errors of P4Runtime requests.

An error has a canonical code (google.rpc.Code) and a message with place and valid choices.
"""

from __future__ import annotations

from collections.abc import Iterable

from finsy.proto import p4r, rpc_code, rpc_status

from weft.errors import Refusal
from weft.switch import backend

OK = int(rpc_code.OK)
UNKNOWN = int(rpc_code.UNKNOWN)
INVALID_ARGUMENT = int(rpc_code.INVALID_ARGUMENT)
NOT_FOUND = int(rpc_code.NOT_FOUND)
ALREADY_EXISTS = int(rpc_code.ALREADY_EXISTS)
ABORTED = int(rpc_code.ABORTED)
PERMISSION_DENIED = int(rpc_code.PERMISSION_DENIED)
RESOURCE_EXHAUSTED = int(rpc_code.RESOURCE_EXHAUSTED)
FAILED_PRECONDITION = int(rpc_code.FAILED_PRECONDITION)
OUT_OF_RANGE = int(rpc_code.OUT_OF_RANGE)
UNIMPLEMENTED = int(rpc_code.UNIMPLEMENTED)
INTERNAL = int(rpc_code.INTERNAL)

MAX_STATUS_BYTES = 6000
"""Most bytes of error details before their messages are cut.

gRPC clients accept 8 KiB of metadata by default (P4Runtime 1.5, "gRPC Metadata Maximum Size").
"""
MAX_STATUS_BYTES_PER_ELEMENT = 100
"""Limit, from the same section, that clients set if even empty messages would not fit 8 KiB."""
MAX_STATUS_MESSAGE = 1000

_BACKEND_CODES: dict[type[backend.BackendError], int] = {
    backend.InvalidRequestError: INVALID_ARGUMENT,
    backend.EntryNotFoundError: NOT_FOUND,
    backend.EntryExistsError: ALREADY_EXISTS,
    backend.CapacityExceededError: RESOURCE_EXHAUSTED,
    backend.NotPermittedError: PERMISSION_DENIED,
    backend.NotReadyError: FAILED_PRECONDITION,
    backend.UnsupportedProgramError: INVALID_ARGUMENT,
}


class RequestError(Refusal):
    """A request, or one update of it, that the server refuses."""

    def __init__(
        self, code: int, problem: str | Exception, *, place: str = "", valid: str | Iterable[object] = ""
    ) -> None:
        super().__init__(problem, place=place, valid=valid)
        self.code = code
        self.message = str(self)


class BatchError(RequestError):
    """Some elements of a batch failed; `details` has one p4.v1.Error for each element, in order (§12.3)."""

    def __init__(self, message: str, details: list[p4r.Error]) -> None:
        super().__init__(UNKNOWN, message)
        self.details = details


def invalid(problem: str | Exception, *, place: str = "", valid: str | Iterable[object] = "") -> RequestError:
    """An INVALID_ARGUMENT error."""
    return RequestError(INVALID_ARGUMENT, problem, place=place, valid=valid)


def choices(valid: Iterable[object], limit: int = 10) -> str:
    """`'a', 'b'`, shortened when there are many."""
    names = [repr(name) if isinstance(name, str) else str(name) for name in valid]
    shown = names[:limit] + ([f"{len(names) - limit} more"] if len(names) > limit else [])
    return ", ".join(shown) or "none"


class place:
    """Prefixes the message of every error raised inside, including backend errors, with `where`."""

    __slots__ = ("_where",)

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        # a class, because contextlib's generators cost more than the work inside
        if isinstance(error, RequestError):
            raise RequestError(error.code, error, place=self._where) from error
        if isinstance(error, backend.BackendError):
            raise RequestError(backend_code(error), error, place=self._where) from error


def backend_code(error: backend.BackendError) -> int:
    """Return the canonical code of a backend's error."""
    return next((code for kind, code in _BACKEND_CODES.items() if isinstance(error, kind)), INTERNAL)


def to_error(error: RequestError | None) -> p4r.Error:
    """The p4.v1.Error of one element of a batch; None is success."""
    if error is None:
        return p4r.Error(canonical_code=OK)
    return p4r.Error(canonical_code=error.code, message=error.message, space="weft")


def raise_for_batch(what: str, errors: list[RequestError | None]) -> None:
    """Raise BatchError if any element of the batch failed."""
    failed = [(index, error) for index, error in enumerate(errors) if error is not None]
    if not failed:
        return
    index, first = failed[0]
    message = f"{len(failed)} of {len(errors)} {what} failed; number {index}: {first.message}"
    raise BatchError(message, [to_error(error) for error in errors])


def status_message(error: RequestError) -> str:
    """The message of an RPC's status, short enough for its metadata."""
    return error.message[:MAX_STATUS_MESSAGE]


def to_status(error: BatchError) -> rpc_status.Status:
    """Return the google.rpc.Status with all details; their messages are cut to fit the metadata."""
    details, message = error.details, status_message(error)
    limit = MAX_STATUS_BYTES
    if _status(message, [_cut(detail, 0) for detail in details]).ByteSize() > limit:
        limit += MAX_STATUS_BYTES_PER_ELEMENT * len(details)
    status = _status(message, details)
    longest = max(len(detail.message) for detail in details)
    while status.ByteSize() > limit and longest:
        longest //= 2
        status = _status(message, [_cut(detail, longest) for detail in details])
    return status


def _status(message: str, details: list[p4r.Error]) -> rpc_status.Status:
    status = rpc_status.Status(code=UNKNOWN, message=message)
    for detail in details:
        status.details.add().Pack(detail)
    return status


def _cut(detail: p4r.Error, longest: int) -> p4r.Error:
    if len(detail.message) <= longest:
        return detail
    return p4r.Error(canonical_code=detail.canonical_code, message=detail.message[:longest], space=detail.space)


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
