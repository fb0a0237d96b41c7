"""A capability of a machine, and what a check finds of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from weft.errors import WeftError


@dataclass(frozen=True)
class Finding:
    """Whether a capability is there, and where, or why not."""

    present: bool
    detail: str


@dataclass(frozen=True)
class Capability:
    """A capability that Weft uses, and the check that looks for it.

    Args:
        name: as tables have it.
        purpose: what Weft uses it for.
        look: finds it without changing anything. An exception means that it is missing.
        cost: what is impossible or slower without it.
        install: how to get it on Debian or Ubuntu, or with pip; may be a function, where that takes time.
        is_essential: whether no run works without it.
    """

    name: str
    purpose: str
    look: Callable[[], Finding]
    cost: str
    install: str | Callable[[], str]
    is_essential: bool = False

    @property
    def remedy(self) -> str:
        """How to get it."""
        return self.install if isinstance(self.install, str) else self.install()


def program(*names: str) -> Callable[[], Finding]:
    """Return a check for the first program of these that is on PATH. Nothing is run."""

    def look() -> Finding:
        found = next((path for name in names if (path := shutil.which(name))), None)
        return Finding(found is not None, found or f"not on PATH: {', '.join(names)}")

    return look


def modules(*names: str) -> Callable[[], Finding]:
    """Return a check for Python modules. None is imported."""

    def look() -> Finding:
        missing = [name for name in names if find_spec(name) is None]
        return Finding(not missing, f"no module {', '.join(missing)}" if missing else ", ".join(names))

    return look


def required_by(require: Callable[[], object], found: str) -> Finding:
    """Return what a run's own check says: `found` unless it raises a WeftError."""
    try:
        require()
    except WeftError as error:
        return Finding(False, str(error))
    return Finding(True, found)
