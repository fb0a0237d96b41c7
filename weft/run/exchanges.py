"""What is made ready before a run on a fabric, and written down after it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.clocks.lab import Lab, NotRunningError, Progress
from weft.clocks.watching import Sample, Watcher, watched
from weft.controller.errors import ControllerError
from weft.errors import CheckFailedError
from weft.results.counters import HostTotals, longest_int_path, more_telling
from weft.results.model import IntPath, Phase
from weft.run.aggregation_job import AggregationJob
from weft.run.spare_hosts import replace_hosts
from weft.traffic.control import EndpointGroup, RankBuffer
from weft.traffic.host_stats import HostStats
from weft.traffic.patterns import Flow
from weft.traffic.prepared_runs import RunError, RunOutcome


class Exchanges:
    """Runs of a lab's hosts, one after the other; `watcher` is shown how far they are, `progress` called with words.

    `phases` are the runs so far, `int_path` the most telling path that INT has shown.
    """

    def __init__(self, lab: Lab, job: AggregationJob, watcher: Watcher | None, progress: Progress) -> None:
        self.phases: list[Phase] = []
        self.int_path: IntPath | None = None
        self._lab = lab
        self._job = job
        self._watcher = watcher
        self._progress = progress
        self._began = (0, False)
        self._hosts: EndpointGroup | None = None

    @property
    def hosts(self) -> EndpointGroup:
        """All hosts' endpoints. Raises NotRunningError before `start` and after `stop`."""
        if self._hosts is None:
            raise NotRunningError("the fabric was left, or not entered yet: use it within its 'with'")
        return self._hosts

    def start(self, hosts: EndpointGroup) -> None:
        """Begin with hosts whose endpoints have been started."""
        self._hosts = hosts

    def stop(self) -> None:
        """Let go of the hosts."""
        self._hosts = None

    def begin(self, draw: int = 0, in_network: bool = False) -> HostTotals:
        """Make ready for a run, and return what the hosts have counted so far.

        Unless connections are kept, hosts forget theirs, and the virtual clock has the fabric as it was before the
        first run, so that a run gives the same figures whatever ran before. `draw` numbers what is drawn. Spares take
        the ranks of hosts that are out of use.
        """
        self._began = draw, in_network
        self._replace_hosts()
        if self._lab.options.transport.connections == "fresh":
            is_quiet = self._lab.settle(draw)
            self.hosts.disconnect(draw if is_quiet else None)
        if in_network:
            self._job.join(self.hosts)
        return self._totals(self.hosts.stats(), in_network)

    def _replace_hosts(self) -> bool:
        """Give the ranks of hosts that are out of use to spares; return whether any went."""
        replaced = replace_hosts(self._lab.fabric, self._lab.operations, self.hosts)
        if replaced:
            self._job.leave()
        return replaced

    def end(self, name: str, outcome: RunOutcome, in_network: bool = False) -> HostTotals:
        """Write a run down, and return what the hosts have counted so far."""
        self.phases.append(Phase(name, min(outcome.started_ps), max(outcome.finished_ps), outcome.run))
        self._lab.link_events.results_now()
        stats = self.hosts.stats()
        path = longest_int_path(self._lab.fabric, stats, coarse=self._lab.options.target == "bmv2")
        self.int_path = more_telling(self.int_path, path)
        return self._totals(stats, in_network)

    def _totals(self, endpoint_stats: Sequence[HostStats], in_network: bool) -> HostTotals:
        aggregated = 0
        if in_network:
            counters = self._lab.controller.read_counters()
            aggregated = sum(each.aggregated_packets for each in counters.values())
        return HostTotals.of(endpoint_stats, aggregated)

    def watched(self, run: int, flows: Sequence[Flow] = ()) -> contextlib.AbstractContextManager[None]:
        """Return a context in which the fabric's watcher is shown how far a run, of these flows if any, is."""
        if self._watcher is None:
            return contextlib.nullcontext()
        began = self._lab.run_sample(self.hosts, run)
        overhead_bytes = self._lab.frame_bytes - self._lab.options.mtu_bytes
        expected_bytes = sum(
            flow.size_bytes + -(-flow.size_bytes // self._lab.options.mtu_bytes) * overhead_bytes
            for flow in flows
        )

        def take() -> Sample:
            now = self._lab.run_sample(self.hosts, run)
            return replace(
                now,
                emulated_ps=now.emulated_ps - began.emulated_ps,
                packets=None if now.packets is None else now.packets - (began.packets or 0),
                delivered_bytes=now.delivered_bytes - began.delivered_bytes,
                expected_bytes=expected_bytes,
            )

        return watched(self._watcher, take)

    def exchange(
        self,
        prepare: Callable[[Sequence[RankBuffer], list[Path]], int],
        inputs: list[NDArray[Any]] | None,
        timeout_s: float,
    ) -> tuple[RunOutcome, list[NDArray[Any]]]:
        """Run what is prepared over copies of the inputs, and return every rank's data afterwards.

        `prepare` is given the ranks' buffers and the files of their results, none where hosts work on arrays of this
        process, and returns the run. If it fails because a host is lost whose rank a spare can take, it runs again,
        from the inputs.
        """
        while True:
            try:
                return self._exchange_once(prepare, inputs, timeout_s)
            except (RunError, CheckFailedError) as error:
                if not self._replace_hosts():
                    raise
                self._progress(f"running again with a spare host: {error}")
                self.begin(*self._began)

    def _exchange_once(
        self,
        prepare: Callable[[Sequence[RankBuffer], list[Path]], int],
        inputs: list[NDArray[Any]] | None,
        timeout_s: float,
    ) -> tuple[RunOutcome, list[NDArray[Any]]]:
        if self._lab.shares_memory:
            outputs = [array.copy() for array in inputs or ()]
            return self._run_prepared(prepare(outputs, []), timeout_s), outputs
        with tempfile.TemporaryDirectory(dir=self._lab.directory) as directory:
            files = [Path(directory, f"rank{rank}.bin") for rank in range(len(inputs or ()))]
            results = [file.with_suffix(".result") for file in files]
            for file, array in zip(files, inputs or (), strict=True):
                array.tofile(file)
            outcome = self._run_prepared(prepare(files, results), timeout_s)
            outputs = [
                np.fromfile(result, array.dtype) for result, array in zip(results, inputs or (), strict=True)
            ]
            return outcome, outputs

    def _run_prepared(self, run: int, timeout_s: float) -> RunOutcome:
        """Run what the hosts have prepared to its end."""
        try:
            with self.watched(run):
                return self.hosts.run(run, timeout_s)
        except BaseException as error:
            hit = False
            # The job's slots hold half a reduction: the next one starts in a new epoch. Should the switches be
            # gone, too, the error to raise is the first.
            with contextlib.suppress(ControllerError):
                hit = self._job.has_moved()
                self._job.leave()
            if hit and isinstance(error, RunError):
                raise CheckFailedError(
                    f"{error}; a link of the job's aggregation tree has failed meanwhile, and with it the "
                    "reduction (the next one has other trees)"
                ) from error
            raise
