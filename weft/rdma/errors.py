"""Errors that a call of `weft.rdma` raises at once, where libibverbs returns an error number."""

from __future__ import annotations

import errno
from collections.abc import Iterable

from weft.errors import BadInputError
from weft.rdma.enums import WCStatus


class VerbsError(BadInputError):
    """A call was refused. `errno` is what libibverbs would return: EINVAL, ENOMEM, EOPNOTSUPP, ECONNREFUSED."""

    def __init__(
        self, problem: str | Exception, number: int = errno.EINVAL, *, valid: str | Iterable[object] = ""
    ) -> None:
        super().__init__(problem, valid=valid)
        self.errno = number


class WorkError(BadInputError):
    """A work completion has another status than success (`WC.check`)."""

    def __init__(self, message: str, status: WCStatus) -> None:
        super().__init__(message)
        self.status = status
