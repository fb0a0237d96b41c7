"""Metrics of a lab of the real clock, for `weft lab` and, attached to a run, `weft run`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Self

from weft.clocks.lab import Lab
from weft.error_translation import raised_as_weft_errors
from weft.errors import EnvironmentLacksError
from weft.metrics.exposition import rendered
from weft.metrics.families import families_of
from weft.metrics.hosts import HostFamilies
from weft.metrics.progress import progress_families
from weft.metrics.server import MetricsServer
from weft.run.fabric import Fabric

DEFAULT_PORT = 9464


def require_real_clock(clock: str | None) -> None:
    """Raise EnvironmentLacksError for another clock than the real one, whose runs are over before they are scraped."""
    if clock == "virtual":
        raise EnvironmentLacksError(
            "--metrics is for the real clock (--clock real); a virtual run records by `observe` and weft report"
        )


class LabMetrics:
    """Reads a lab's metrics again and again; with a `fabric`, those of its run, too."""

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

    def text(self) -> str:
        """Return the metrics as text. Raises WeftError."""
        lab = self._lab
        with raised_as_weft_errors():
            # Where it leaves the switches to others' controllers, only they can read the program's counters.
            counters = lab.controller.read_counters() if lab.controller_stays else {}
            families = families_of(lab.fabric, lab.options.dilation, lab.switch_stats(), counters)
            families += self._hosts.families(lab.host_metrics())
            families += progress_families(self._fabric) if self._fabric is not None else []
        return rendered(families)


def metrics_text(lab: Lab) -> str:
    """Return a lab's metrics as text. Raises WeftError."""
    return LabMetrics(lab).text()


def metrics_server(lab: Lab, port: int, fabric: Fabric | None = None) -> MetricsServer:
    """Return a server of a lab's metrics, to be entered while the lab is up; with a `fabric`, of its run, too."""
    return MetricsServer(port, LabMetrics(lab, fabric).text)


class AttachedMetrics:
    """Serves a run's metrics from before its traffic until the end. Use as a context manager around the run."""

    def __init__(self, port: int, say: Callable[[str], object]) -> None:
        self._port = port
        self._say = say
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def begin(self, fabric: Fabric) -> None:
        """See `weft.run.attached.Attached`."""
        require_real_clock(fabric.options.clock)
        server = self._exit.enter_context(metrics_server(fabric.lab, self._port, fabric))
        self._say(f"metrics at {server.url}")

    def end(self, fabric: Fabric) -> None:
        """See `weft.run.attached.Attached`."""
        self._exit.close()
