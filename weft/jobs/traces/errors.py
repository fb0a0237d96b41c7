"""Errors in traces."""

from __future__ import annotations

from weft.errors import BadInputError


class TraceError(BadInputError):
    """A trace that cannot be read or written; the message names the file and the rank, node or line."""
