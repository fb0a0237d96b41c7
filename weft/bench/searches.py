"""Binary searches over many keys at once: the trials of a step run together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from weft.trials import Procedure, Trial, TrialRun

_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Searched(Generic[_Key]):
    """The largest value that held, and its trial; None where not even the smallest did."""

    key: _Key
    value: float | None
    run: TrialRun | None


def largest_that_holds(
    ranges: Mapping[_Key, tuple[float, float]],
    trial: Callable[[_Key, float], Trial],
    holds: Callable[[_Key, float, TrialRun], bool],
    resolution: float,
    *,
    geometric: bool = False,
) -> Procedure[dict[_Key, Searched[_Key]]]:
    """Search the largest value in each range at which a trial holds, as RFC 2544, section 26.1, does.

    The upper end is tried first, then the middle of what is left, until that is no wider than the resolution.

    Args:
        ranges: lower and upper end by key; the lower end is tried only if nothing above it holds.
        trial: makes the trial of a value.
        holds: whether a trial of a value holds.
        resolution: width of the range at which the search ends; with `geometric` the ratio of its ends, above 1.
        geometric: the middle is the geometric mean.
    """
    low = {key: lower for key, (lower, _) in ranges.items()}
    high: dict[_Key, float | None] = dict.fromkeys(ranges)
    best: dict[_Key, Searched[_Key]] = {key: Searched(key, None, None) for key in ranges}
    asked = {key: upper for key, (_, upper) in ranges.items()}
    lowest_tried: set[_Key] = set()
    while asked:
        runs = yield [trial(key, value) for key, value in asked.items()]
        following: dict[_Key, float] = {}
        for (key, value), run in zip(asked.items(), runs, strict=True):
            if holds(key, value, run):
                low[key], best[key] = value, Searched(key, value, run)
            else:
                high[key] = value
            upper = high[key]
            if upper is None or (value == low[key] and key in lowest_tried):
                continue
            width = upper / low[key] if geometric else upper - low[key]
            if width > resolution:
                following[key] = (upper * low[key]) ** 0.5 if geometric else (upper + low[key]) / 2
            elif best[key].value is None and key not in lowest_tried:
                lowest_tried.add(key)
                following[key] = low[key]
        asked = following
    return best
