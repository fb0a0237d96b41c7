"""Short collectives by which `auto` measures algorithms on a fabric.

Under the virtual clock they run on a copy of the fabric, without events and records, so that they do not affect the
fabric's behaviour and counters. Under the real clock they run on the fabric itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from weft.controller.errors import NoSlotsError
from weft.error_translation import raised_as_weft_errors
from weft.errors import CheckFailedError
from weft.run.collectives import CollectiveRequest
from weft.run.spec import RunSpec
from weft.scenario import ObserveSection

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.tuner import Question

_PATIENCE_S = 300.0


def probed_copy(spec: RunSpec) -> RunSpec:
    """Return the description of the copy of a fabric that runs probes."""
    return replace(spec, traffic=(), options=spec.options.changed(events=[], observe=ObserveSection()))


class Probes:
    """Runs probes for a running fabric; `copy` returns its copy, which it keeps running."""

    def __init__(self, fabric: Fabric, copy: Callable[[], Fabric]) -> None:
        self._fabric, self._copy = fabric, copy

    @raised_as_weft_errors()
    def __call__(self, question: Question, algorithm: str, size_bytes: int) -> int:
        """Return how long a collective of a size takes with an algorithm, in ps.

        Raises CheckFailedError if it fails, or if switches lack slots for it.
        """
        is_virtual = self._fabric.options.clock == "virtual"
        fabric = self._copy() if is_virtual else self._fabric
        request = CollectiveRequest(
            question.collective.reference,
            size_bytes,
            algorithm,
            dtype=question.dtype,
            operation=question.operation,
            root=question.root,
            ranks=question.ranks,
            tenant=question.tenant,
        )
        task = fabric.tasks.collective(request)
        try:
            return fabric.run_unnoted(task, _PATIENCE_S, ", probe")
        except NoSlotsError as error:
            raise CheckFailedError(error) from error
