"""Hints for messages: the nearest valid word, commands for installing extras."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

DISTRIBUTION = "weft-fabric"
"""Name of the distribution in setup.cfg."""


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """Return a hint that names the nearest valid word, or all valid words if none is near."""
    choices = sorted(valid)
    nearest = nearest_word(word, choices)
    return f"valid: {', '.join(choices)}" if nearest is None else f"did you mean '{nearest}'?"


def nearest_word(word: str, valid: Iterable[str]) -> str | None:
    """Return the valid word that a word most likely misspells; None if none is near."""
    choices = sorted(valid)
    spelt_out = word.lower().replace("-", "_").replace("+", "_plus")
    if spelt_out in choices:
        return spelt_out
    nearest = difflib.get_close_matches(word, choices, n=1)
    return nearest[0] if nearest else None


def install_extra(extra: str) -> str:
    """Return the command that installs the packages of an extra in setup.cfg.

    It names the packages, not Weft: `weft` on PyPI is another project, and Weft is installed from its checkout.
    """
    from importlib import metadata  # its parser of e-mails is slow to import

    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:  # run from a checkout that is not installed
        return f"see the extra `{extra}` in setup.cfg"
    needed = []
    for requirement in requirements:
        package, _, marker = requirement.partition(";")
        if re.search(rf"""extra == ["']{extra}["']""", marker):
            needed.append(f"'{package.strip()}'")
    return f"pip install {' '.join(needed)}"
