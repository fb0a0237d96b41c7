"""The available collectives: one module of this package each, and users' classes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType

from weft.engine import ExtensionError
from weft.errors import InvalidValueError
from weft.registry import Registry, classes_of
from weft.traffic.class_reference import is_class_reference, is_msccl_reference
from weft.traffic.collectives.definition import Collective
from weft.traffic.extensions.loading import ClassSpec, make

AUTO = "auto"
"""The algorithm that stands for the one predicted to be the fastest."""
NCCL = "nccl"
"""The algorithm that stands for the one that NCCL would choose (`weft.traffic.nccl`)."""
CHOICES = (AUTO, NCCL)
"""Names that stand for one of a collective's algorithms."""
_NAME = r"[a-z][a-z0-9_-]{0,40}"


def _kinds_in(module: ModuleType) -> Iterator[tuple[str, Collective]]:
    kinds = classes_of(Collective, module)  # type: ignore[type-abstract]
    return ((kind.name, _named(kind(), kind.name)) for kind in kinds)


COLLECTIVE_KINDS: Registry[Collective] = Registry(
    __package__, "collective", _kinds_in, InvalidValueError, besides="or path/to/file.py:Class"
)
"""Weft's own by name."""


def algorithm_names() -> tuple[str, ...]:
    """Return the names of all algorithms of Weft's own collectives, each once."""
    return tuple(dict.fromkeys(each.name for known in COLLECTIVE_KINDS.values() for each in known.algorithms))


def collective_named(name: str) -> Collective:
    """Return a collective by the name of one of Weft's, with or without parameters, or by a user's
    path/to/file.py:Class.

    Raises:
        ValueError: there is none of that name. ExtensionError: the user's class cannot be used; says why.
    """
    if is_msccl_reference(name):
        from weft.traffic.msccl import msccl_collective

        return _named(msccl_collective(name, dict(COLLECTIVE_KINDS)), name)
    if is_class_reference(name):
        return _named(make(ClassSpec(name), Collective), name)  # type: ignore[type-abstract]
    kind, _, parameters = name.partition(":")
    if parameters and kind in COLLECTIVE_KINDS:
        return COLLECTIVE_KINDS[kind].with_parameters(parameters)
    return COLLECTIVE_KINDS.named(name)


def _named(collective: Collective, reference: str) -> Collective:
    """Check a class's attributes, and record its reference. Raises ExtensionError."""

    def require(right: bool, what: str) -> None:
        if not right:
            raise ExtensionError(f"{reference}: {what}")

    name, algorithms = getattr(collective, "name", None), getattr(collective, "algorithms", ())
    require(
        isinstance(name, str) and re.fullmatch(_NAME, name) is not None,
        f"name is {name!r} (valid: a text of up to 41 of a-z, 0-9, _ and -)",
    )
    require(
        not is_class_reference(reference) or name not in COLLECTIVE_KINDS,
        f"name is {name!r}, which is one of Weft's own",
    )
    require(bool(algorithms), "algorithms are missing (valid: a tuple of at least one weft.Algorithm)")
    for taken in {each.name for each in algorithms}.intersection(CHOICES):
        require(False, f"an algorithm is named {taken!r}, which stands for a choice of others")
    collective.reference = reference
    return collective
