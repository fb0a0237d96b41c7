"""Errors between ranks and the process that holds their fabric."""

from __future__ import annotations

from weft.errors import Refusal


class RanksError(Refusal, RuntimeError):
    """A collective of ranks failed: all of them raise it, with the reason, and no further one can be called."""
