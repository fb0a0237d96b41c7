"""Trace: a job that another tool has recorded or generated."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from weft.clocks.lab import Progress
from weft.errors import BadInputError
from weft.hints import did_you_mean
from weft.jobs.accelerators import ACCELERATORS, Accelerator, Precision
from weft.jobs.traces import TRACE_FORMATS, ReadOptions, read_trace, roofline_of
from weft.jobs.traces.definition import DEFAULT_EAGER_BYTES
from weft.quantities.definitions import Size, Time, whole
from weft.quantities.readable import counted
from weft.quantities.units import shown
from weft.recording.operations import operations_table
from weft.results.critical_paths import critical_path_result
from weft.results.job_traces import JOB_TRACES, JobTraceResult, job_trace_result
from weft.results.kinds import ResultKind
from weft.run.jobs import JobRun
from weft.run.traffic_kinds.base import JobItem, check_ranks
from weft.scenario.places import KeyProblem
from weft.scenario.presets import Presets
from weft.scenario.values import Name
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection
from weft.traffic.jobs import Job, Kind
from weft.traffic.jobs.breakdown import breakdowns
from weft.traffic.jobs.classes import JobClasses
from weft.traffic.jobs.operations import bytes_by_category

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


def _formats() -> tuple[str, ...]:
    return tuple(name for name, each in TRACE_FORMATS.items() if not each.holds_flows)


class TraceTraffic(JobItem):
    """A job from a trace: Chakra, GOAL, or NCCL's calls. Packets carry lengths in place of data."""

    kind = "trace"
    results: ClassVar[ResultKind[Any] | None] = JOB_TRACES
    files: ClassVar[tuple[str, ...]] = ("trace", "groups")

    trace: Path
    """The file, or what the format has in place of one; relative to the scenario's file."""
    format: Annotated[str, Name("format", _formats)] | None = None
    """By default what the trace looks like."""
    groups: Path | None = None
    """Process groups of a Chakra trace; by default the file beside it, if there is one."""
    accelerator: Annotated[Accelerator, Presets("accelerator", lambda: ACCELERATORS)] | None = None
    """Computes what a Chakra trace gives as operations and bytes; otherwise the recorded durations count."""
    precision: Precision = "bf16"
    """Of the accelerator's operations."""
    send_overhead: Time = 0
    """Time of a GOAL rank's processor for each message, before it is sent and after it is received: o of LogGP."""
    eager: Size = DEFAULT_EAGER_BYTES
    """GOAL messages of up to this size are not waited for by their sender: S of LogGOPS."""
    ranks: list[Annotated[int, whole(0, 1 << 20)]] | None = Field(None, min_length=1)
    """The fabric's rank of each of the job's; by default the first ones, host by host."""
    timeout: Annotated[int, whole(1, 10**6)] = 3600
    """Seconds after which the run fails: real ones, or of the virtual clock."""

    @cached_property
    def _job(self) -> Job:
        roofline = None if self.accelerator is None else roofline_of(self.accelerator, self.precision)
        options = ReadOptions(roofline, self.groups, self.send_overhead, self.eager)
        job = read_trace(self.trace, self.format or "", options).job
        if job is None:
            raise BadInputError(f"{self.trace} has flows (valid: a job; flow_list runs flows)")
        return self.with_classes(job)

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that there is a job, and that the fabric has its ranks."""
        if self.format is not None and self.format not in _formats():
            raise KeyProblem(
                f"{key}.format",
                f"no format {shown(self.format)} of jobs; {did_you_mean(self.format, _formats())}",
            )
        if self.accelerator is None and "precision" in self.model_fields_set:
            raise KeyProblem(f"{key}.precision", f"{self.precision}: means nothing without an accelerator")
        if self.accelerator is not None and self.precision not in self.accelerator.peak_tflops:
            valid = ", ".join(self.accelerator.peak_tflops)
            raise KeyProblem(f"{key}.precision", f"{self.precision} (valid for this accelerator: {valid})")
        try:
            count = len(self._job.parts)
        except BadInputError as error:
            raise KeyProblem(f"{key}.trace", str(error)) from None
        names = JobClasses(self._job).names
        for name in self.classes:
            if name not in names:
                raise KeyProblem(
                    f"{key}.classes",
                    f"{shown(name)} is no category, group or collective of the trace; "
                    f"{did_you_mean(name, sorted(names))}",
                )
        if count > fabric.rank_count:
            raise KeyProblem(
                f"{key}.trace", f"{count} ranks (valid on this fabric: up to {fabric.rank_count})"
            )
        if self.ranks is not None:
            check_ranks(self.ranks, count, fabric, f"{key}.ranks")

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run the job."""
        progress(
            f"{self.trace.name}: {counted(self._job.operation_count, 'operation')} of "
            f"{counted(len(self._job.parts), 'rank')}"
        )
        fabric.run_together([self._task(fabric)], self.time_limit_s(fabric))

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return `timeout`."""
        return float(self.timeout)

    def as_job(self, topology: FabricSpec, seed: int) -> Job | None:
        """Return the job."""
        return self._job

    def prepare_task(self, ranks: int, seed: int) -> Callable[[Fabric], Task[Any]]:
        """There are no data to make."""
        return self._task

    def _task(self, fabric: Fabric) -> Task[JobTraceResult]:
        return fabric.tasks.job(self._job, self.ranks).noted(
            JOB_TRACES, partial(self._result, fabric.topology)
        )

    def _result(self, topology: FabricSpec, ran: JobRun) -> JobTraceResult:
        sent_bytes = sum(bytes_by_category(part.operations, Kind.SEND).total() for part in ran.job.parts)
        return job_trace_result(
            self._job.name or self.trace.name,
            ran.job.operation_count,
            sent_bytes,
            ran.duration_ps,
            breakdowns(ran.job, ran.times),
            ran.retransmissions,
            critical_path_result(ran.job, ran.times, ran.ranks, ran.places, topology),
            operations_table(ran.job, ran.times),
        )
