"""How requests are assigned to instances: one file each, found by listing this folder."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Annotated

from weft.errors import InvalidValueError
from weft.jobs.inference.assignments.kind import Assignment
from weft.registry import Registry, classes_of
from weft.scenario.values import Name


def _kinds_in(module: ModuleType) -> Iterator[tuple[str, Assignment]]:
    return ((kind.name, kind()) for kind in classes_of(Assignment, module))  # type: ignore[type-abstract]


ASSIGNMENTS: Registry[Assignment] = Registry(
    __name__, "assignment", _kinds_in, InvalidValueError, default="least-loaded"
)
"""Assignments by name."""

AssignmentName = Annotated[str, Name("assignment", lambda: ASSIGNMENTS)]

__all__ = ["ASSIGNMENTS", "Assignment", "AssignmentName"]
