"""What all registries share: the modules of a package are listed, so a new file is found by its place."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType


def modules_of(package: str) -> Iterator[ModuleType]:
    """Import the modules of a package and return them, in order of their names."""
    path = importlib.import_module(package).__path__
    for name in sorted(module.name for module in pkgutil.iter_modules(path, f"{package}.")):
        yield importlib.import_module(name)
