"""Errors of the lowering."""

from __future__ import annotations


class UnsupportedError(Exception):
    """The program uses something that the native switch does not implement; the text says what and where."""
