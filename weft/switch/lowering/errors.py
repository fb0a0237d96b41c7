"""Errors of the lowering."""

from __future__ import annotations

from weft.errors import Refusal


class UnsupportedError(Refusal):
    """The program uses something that the native switch does not implement; the text says what and where."""
