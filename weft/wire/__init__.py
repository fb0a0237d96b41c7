"""Headers of Weft's packets, declared once, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from weft.errors import InvalidValueError
from weft.registry import Registry
from weft.wire.fields import Field, Header, Repeated, reserved

__all__ = ["HEADERS", "Field", "Header", "Repeated", "reserved"]


def _headers_in(module: ModuleType) -> Iterator[tuple[str, Header]]:
    return ((value.name, value) for value in vars(module).values() if isinstance(value, Header))


HEADERS: Registry[Header] = Registry("weft.wire.headers", "header", _headers_in, InvalidValueError)
"""All headers by name; a file in `weft/wire/headers/` adds its own."""
