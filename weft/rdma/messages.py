"""Messages between programs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OutOfBandMessage:
    """A value, which JSON can hold, from one host's program to another's; messages of a topic come in order."""

    source: str
    destination: str
    topic: str
    value: object
