"""Finds steps that a program repeats for each of many lanes, which are shown as one.

A program for data-parallel lanes has the same statements once per lane, from a macro. A trace shows each of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

LEAST_TIMES = 8
"""Fewest repetitions that are folded."""


def shortened(texts: Sequence[str]) -> Iterator[str]:
    """Yield "NAME = VALUE" texts, the first and last of successive ones with numbered names instead of all."""
    for _, same in groupby(texts, key=lambda text: re.sub(r"\d+", "#", text.partition(" = ")[0])):
        alike = list(same)
        if len(alike) > LEAST_TIMES:
            alike = [alike[0], f"… {len(alike) - 2} more …", alike[-1]]
        yield from alike


@dataclass(frozen=True, slots=True)
class Fold:
    """Steps `first` up to, but without, `end`: the same few steps, `times` times; `text` says it in words."""

    first: int
    end: int
    times: int
    text: str


def folds(texts: Sequence[str], sources: Sequence[str]) -> Iterator[Fold]:
    """Yield the repetitions in successive steps, given what they do and their place in the source ("": none).

    Steps are repetitions of each other if they have the same source and differ in numbers only.
    """
    first = 0
    for source, steps in groupby(sources):
        end = first + sum(1 for _ in steps)
        if source and end - first > LEAST_TIMES:
            fold = _fold(texts, first, end, source)
            if fold is not None:
                yield fold
        first = end


def _fold(texts: Sequence[str], first: int, end: int, source: str) -> Fold | None:
    targets = [text.partition("   ←")[0].partition(" = ")[0] for text in texts[first:end]]
    shapes: dict[str, list[str]] = {}
    for target in targets:
        shapes.setdefault(re.sub(r"\d+", "#", target), []).append(target)
    # Something assigned that has a name of its own each time says which lanes there are.
    lanes = next((each for each in shapes.values() if len(each) >= LEAST_TIMES and len(set(each)) == len(each)), None)
    if lanes is None:
        return None
    text = f"{end - first} steps, {len(lanes)} times the same: {lanes[0]} … {lanes[-1]}   ← {source}"
    return Fold(first, end, len(lanes), text)
