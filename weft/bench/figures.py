"""Curves and bars of plain numbers, as a report's file keeps them."""

from __future__ import annotations

from collections.abc import Iterable

from weft.results.report_parts import Curve


def curve(name: str, x: Iterable[float], y: Iterable[float]) -> Curve:
    """Return a curve of floats."""
    return Curve(name, [float(value) for value in x], [float(value) for value in y])
