"""Metrics of a lab under the real clock."""

from __future__ import annotations

from weft.clocks.lab import Lab
from weft.error_translation import raised_as_weft_errors
from weft.errors import EnvironmentLacksError
from weft.metrics.exposition import Family
from weft.metrics.families import families_of
from weft.metrics.hosts import HostFamilies
from weft.metrics.progress import progress_families
from weft.run.fabric import Fabric


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
            has_latencies=lab.options.target
            != "bmv2",  # BMv2's time stamps count from each switch's own start
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
