"""P4Info of fabric.p4, as the compiler makes it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from finsy.proto import p4i

from weft.compiler import compile_file

FABRIC = Path(__file__).resolve().parents[2] / "p4" / "fabric.p4"


def fabric_p4info() -> p4i.P4Info:
    """The message; a copy, which a test may change."""
    return p4i.P4Info.FromString(_compiled())


@cache
def _compiled() -> bytes:
    return compile_file(FABRIC).p4info_bytes()
