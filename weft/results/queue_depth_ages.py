"""How old the depths of queues were that adaptive choices relied on, from the switches' own counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.controller.features.depth_ages import DepthAges
from weft.quantities.plain_data import PlainData
from weft.quantities.readable import format_time
from weft.quantities.units import PS_PER_NS
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind, nothing
from weft.topologies import FabricSpec


@dataclass(frozen=True)
class QueueDepthAges(PlainData):
    """Ages of queue depths at the switches of one plane, over the whole run.

    An age is how long before a choice egress had left the depth, at most: switches count ages by powers of two. Null:
    no queue held packets when it was chosen.
    """

    plane: int
    """Its number."""
    choices: int
    """Those that were made by depths."""
    with_a_queue: int
    """Choices among them of a port with a queue that held packets."""
    age_median_ps: int | None
    """Median age of the depths of these; null: there were none."""
    age_99_ps: int | None
    """Age within which 99 % of them were."""
    age_largest_ps: int | None
    """The largest of them."""


def queue_depth_ages(fabric: FabricSpec, ages: Mapping[str, DepthAges]) -> list[QueueDepthAges]:
    """Return every plane's ages, given the switches' by name; missing switches are unknown."""
    results = []
    for plane in range(fabric.planes):
        of_plane = sum(
            (ages[switch.name] for switch in fabric.switches_of_plane(plane) if switch.name in ages),
            DepthAges(),
        )
        if of_plane.choices:
            median, most, largest = (of_plane.queued.at_most_ns(share) for share in (0.5, 0.99, 1.0))
            results.append(
                QueueDepthAges(
                    plane=plane,
                    choices=of_plane.choices,
                    with_a_queue=of_plane.queued.count,
                    age_median_ps=_ps(median),
                    age_99_ps=_ps(most),
                    age_largest_ps=_ps(largest),
                )
            )
    return results


def _ps(age_ns: int | None) -> int | None:
    return None if age_ns is None else age_ns * PS_PER_NS


def _age(title: str, value: str) -> Column[QueueDepthAges]:
    return Column(title, value, form=lambda age_ps: f"< {format_time(age_ps + PS_PER_NS)}", missing="-")


_TABLE = ResultTable[QueueDepthAges](
    "Adaptive load balancing",
    (
        Column("plane", "plane"),
        Column("adaptive\nchoices", "choices"),
        Column("with a\nqueue", "with_a_queue"),
        _age("age of its depth:\nmedian", "age_median_ps"),
        _age("99 %", "age_99_ps"),
        _age("largest", "age_largest_ps"),
    ),
    "[bold]adaptive load balancing[/bold]",
)
QUEUE_DEPTH_AGES = ResultKind(key="queue_depth_ages", model=QueueDepthAges, tables=(_TABLE,), report=nothing)
