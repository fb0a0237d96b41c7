"""Serves a command's lab while it is up: metrics for Prometheus, the page, or both from the same samples."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

from weft.clocks.lab import Lab
from weft.live.place import Place
from weft.live.server import LivePageServer
from weft.live.view import LiveView
from weft.metrics import MetricsServer, rendered
from weft.metrics.of_lab import LabMetrics, require_real_clock
from weft.metrics.recent import Recent
from weft.run.fabric import Fabric

Say = Callable[[str], object]


@dataclass(frozen=True)
class Shown:
    """Settings of `--metrics` and `--web`; None disables each."""

    metrics_port: int | None = None
    page: Place | None = None
    title: str = "lab"

    @property
    def any(self) -> bool:
        """Whether anything is to be served."""
        return self.metrics_port is not None or self.page is not None

    def require_clock(self, clock: str | None) -> None:
        """Raise EnvironmentLacksError if something is to be served under the virtual clock."""
        for option, asked in (("--metrics", self.metrics_port), ("--web", self.page)):
            if asked is not None:
                require_real_clock(clock, option)

    @contextlib.contextmanager
    def served(self, lab: Lab, say: Say, fabric: Fabric | None = None) -> Iterator[None]:
        """Serve metrics and page while inside, and announce their addresses; with a `fabric`, also its run's metrics.

        Raises:
            EnvironmentLacksError: a port is taken.
        """
        if not self.any:
            yield
            return
        families = Recent(LabMetrics(lab, fabric).families)
        with contextlib.ExitStack() as stack:
            if self.metrics_port is not None:
                metrics = MetricsServer(self.metrics_port, lambda: rendered(families.value()))
                say(f"metrics at {stack.enter_context(metrics).url}")
            if self.page is not None:
                view = stack.enter_context(LiveView(lab, families.value))
                server = stack.enter_context(LivePageServer(self.page, view, self.title))
                say(f"live page at {server.url}")
                if not self.page.is_loopback:
                    say("… which others on its network can reach, too; page and token cross it unencrypted")
            yield


class AttachedShown:
    """Serves a run's lab from before its traffic until its end. Use as a context manager around the run."""

    def __init__(self, shown: Shown, say: Say) -> None:
        self._shown = shown
        self._say = say
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def begin(self, fabric: Fabric) -> None:
        """See `weft.run.attached.Attached`."""
        self._shown.require_clock(fabric.options.clock)
        self._exit.enter_context(self._shown.served(fabric.lab, self._say, fabric))

    def end(self, fabric: Fabric) -> None:
        """See `weft.run.attached.Attached`."""
        self._exit.close()
