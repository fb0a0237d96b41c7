"""Metrics of a lab's run: the items of its traffic, and the progress of running items."""

from __future__ import annotations

from weft.metrics.exposition import Family
from weft.run.fabric import Fabric


def progress_families(fabric: Fabric) -> list[Family]:
    """Return the metrics of a fabric's run."""
    items = Family("weft_run_items", "gauge", "Items of the run's traffic.")
    items_done = Family("weft_run_done_items", "gauge", "Items of the run's traffic that have ended.")
    ranks = Family("weft_run_ranks", "gauge", "Ranks that take part in what runs now.")
    steps = Family("weft_run_steps", "gauge", "Steps, or ends of flows, of what runs now, of all ranks.")
    steps_done = Family("weft_run_done_steps", "gauge", "Steps, or ends of flows, of these that are done.")
    if fabric.item_count:
        items.add(fabric.item_count)
        items_done.add(fabric.items_done)
    # Items that run at the same time under one name share a series.
    totals: dict[str, tuple[int, int, int]] = {}
    for each in fabric.running():
        before = totals.get(each.name, (0, 0, 0))
        now = each.rank_count, each.step_count, each.steps_done
        totals[each.name] = (before[0] + now[0], before[1] + now[1], before[2] + now[2])
    for name, values in totals.items():
        for family, value in zip((ranks, steps, steps_done), values, strict=True):
            family.add(value, item=name)
    return [items, items_done, ranks, steps, steps_done]
