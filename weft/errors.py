"""What can go wrong, by exit code of the `weft` command."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class WeftError(Exception):
    """Base of all errors that the command reports without a traceback."""

    exit_code = 1


class CheckFailedError(WeftError):
    """A run finished, but its result is not what it must be."""

    exit_code = 1


class BadInputError(WeftError):
    """A scenario, P4 program, JSON or option value that cannot be used."""

    exit_code = 3


class EnvironmentLacksError(WeftError):
    """Something the machine must offer is missing: root, a program, a kernel feature."""

    exit_code = 4


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """Return a hint that names the nearest valid word, or all of them where none is near."""
    choices = sorted(valid)
    nearest = difflib.get_close_matches(word, choices, n=1)
    return f"did you mean '{nearest[0]}'?" if nearest else f"valid: {', '.join(choices)}"
