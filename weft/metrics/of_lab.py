"""Metrics of a lab under the real clock."""

from __future__ import annotations

from weft.clocks.lab import Lab
from weft.error_translation import raised_as_weft_errors
from weft.errors import EnvironmentLacksError
from weft.metrics.exposition import Family
from weft.metrics.families import families_of
from weft.metrics.hosts import HostFamilies
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


def require_real_clock(clock: str | None, option: str = "--metrics") -> None:
    """Raise EnvironmentLacksError for the virtual clock: its runs are over before anyone can look at them."""
    if clock == "virtual":
        raise EnvironmentLacksError(
            f"{option} is for the real clock (--clock real); a virtual run records by `observe` and weft report"
        )


class LabMetrics:
    """Reads a lab's metrics repeatedly; with a `fabric`, also the metrics of its run."""

    def __init__(self, lab: Lab, fabric: Fabric | None = None) -> None:
        self._lab = lab
        self._fabric = fabric
        self._hosts = HostFamilies(
            lab.fabric,
            lab.options.dilation,
            lab.controller.planned_paths,
            has_latencies=lab.options.target != "bmv2",  # BMv2's time stamps count from each switch's own start
        )

    def families(self) -> list[Family]:
        """Return the metrics. Raises WeftError."""
        lab = self._lab
        with raised_as_weft_errors():
            # If users' controllers manage the switches, only they can read the program's counters.
            counters = lab.controller.read_counters() if lab.controller_stays else {}
            families = families_of(lab.fabric, lab.options.dilation, lab.switch_stats(), counters)
            families += self._hosts.families(lab.host_metrics())
            families += progress_families(self._fabric) if self._fabric is not None else []
        return families
