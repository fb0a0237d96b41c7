"""Pipeline schedules, the orders of stages' passes: one file each, found by listing this folder."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Annotated

from weft.errors import InvalidValueError
from weft.jobs.pipeline_schedules.kind import Pass, PipelineSchedule, Step, most_held
from weft.registry import Registry, classes_of
from weft.scenario.values import Name


def _kinds_in(module: ModuleType) -> Iterator[tuple[str, PipelineSchedule]]:
    return ((kind.name, kind()) for kind in classes_of(PipelineSchedule, module))  # type: ignore[type-abstract]


PIPELINE_SCHEDULES: Registry[PipelineSchedule] = Registry(
    __name__, "pipeline schedule", _kinds_in, InvalidValueError, default="1f1b"
)
"""Schedules by name."""

ScheduleName = Annotated[str, Name("pipeline schedule", lambda: PIPELINE_SCHEDULES)]

__all__ = ["PIPELINE_SCHEDULES", "Pass", "PipelineSchedule", "ScheduleName", "Step", "most_held"]
