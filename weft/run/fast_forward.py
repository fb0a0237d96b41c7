"""Which runs fast-forward takes part in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.run.task import Task
from weft.traffic.jobs.operations import Kind


def reason_against(tasks: Sequence[Task[Any]], *, has_moved: bool) -> str:
    """Return why none of a run's operations may be repeated; "" if they may.

    Only what is noted can be kept from being repeated at the wrong time: collectives and messages of jobs. With
    `has_moved`, a spare has the rank of another host, so that ranks are not where the groups have them.
    """
    if has_moved:
        return "in which a spare has another host's rank"
    for task in tasks:
        if task.job is None:
            return f"of {task.name}, which is no job"
        if task.inputs is not None:
            return f"of {task.name}: its collectives have data"
        if any(len(part.operations.of_kind(Kind.READ)) for part in task.job.parts):
            return f"of {task.name}: it reads other ranks' memory"
        if task.job.clear_to_send or any(call.clear_to_send for call in task.job.calls):
            return f"of {task.name}: receivers clear its messages"
    return ""
