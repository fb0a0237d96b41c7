"""Section of a scenario: jobs that arrive over time, and how they are placed on a cluster (`weft schedule`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from weft.quantities.definitions import Duration, MessageSize, PositiveDuration, number, whole
from weft.quantities.example import Example
from weft.scenario.values import Section, SectionKeyError

if TYPE_CHECKING:
    from weft.scenario.model import Scenario

MOST_JOBS = 100_000
MOST_ACCELERATORS = 1 << 20
_HOUR_S = 3600.0
Order = Literal["fifo", "easy", "best-effort"]
PolicyName = Literal["backfill", "first-fit", "kueue", "random", "slurm-tree"]
"""Names of the policies of `weft.scheduling.policies`, which checks that they are the same."""


class RunTimeSection(Section):
    """How long jobs run where their accelerators lie as close together as the cluster allows: log-normal."""

    mean: Annotated[PositiveDuration, Example("2h")] = 2 * _HOUR_S
    """Mean."""
    median: Annotated[PositiveDuration | None, Example("5min")] = None
    """Median, at most the mean; by default the mean: all run equally long."""

    @model_validator(mode="after")
    def _check_median(self) -> RunTimeSection:
        if self.median is not None and self.median > self.mean:
            raise SectionKeyError("median", "is above the mean", valid="up to the mean")
        return self


class JobSizeSection(Section):
    """Jobs of one size."""

    accelerators: Annotated[int, whole(1, MOST_ACCELERATORS, example="8")]
    """Accelerators of each job."""
    share: Annotated[float, number(0, 1e6, above=True, example="0.3")] = 1.0
    """Share of jobs that have this size, relative to the other sizes' shares."""
    run_time: RunTimeSection | None = None
    """Run time of jobs of this size; by default the section's."""


class SpreadSection(Section):
    """How much longer the communication of a job takes that is spread so far, in place of packet-level runs."""

    leaves: Annotated[int, whole(1, MOST_ACCELERATORS, example="2")]
    """Switches with hosts, or domains of the lowest level, that the job spans, or more."""
    factor: Annotated[float, number(1, 1000, example="1.4")]
    """Time of its communication over a packed job's."""


class SlowdownSection(Section):
    """Loss of a job that is spread over more switches than it needs."""

    communication: Annotated[float, number(0, 1, example="0.3")] = 0.3
    """Share of a packed job's time in which it waits for the network."""
    spread: Annotated[list[SpreadSection] | None, Field(min_length=1), Example("[{leaves: 2, factor: 1.4}]")] = None
    """Factors by spread; by default they are measured by packets on the scenario's fabric."""
    collective: Literal["allreduce", "alltoall"] = "alltoall"
    """Collective that measures them."""
    size: MessageSize = 1 << 20
    """Its size."""
    ranks: Annotated[int, whole(2, 4096, example="32")] = 16
    """Ranks of the largest job that is measured; a larger one counts as one with as many hosts on each leaf."""

    @model_validator(mode="after")
    def _check_spread(self) -> SlowdownSection:
        leaves = [each.leaves for each in self.spread or ()]
        for number_, own in enumerate(leaves):
            if own in leaves[:number_]:
                raise SectionKeyError("spread", f"has two factors for {own} leaves", valid="one for each number")
        return self


class PreemptionSection(Section):
    """Urgent jobs take the accelerators of others, the last to start first."""

    cost: Annotated[Duration, Example("3min", ("schedule.urgent=0.1",))] = 300.0
    """Time that a preempted job needs in addition, to save a checkpoint and to start again from it."""


class MigrationSection(Section):
    """Running jobs move where they are less spread, once accelerators become free."""

    cost: Annotated[Duration, Example("3min")] = 300.0
    """Time that a move takes; a job moves if it gains more."""


class ScheduleSection(Section):
    """Jobs that arrive over time on a shared cluster, for `weft schedule` (docs/scheduling.md).

    `weft run` does not use it.
    """

    topology: Annotated[Path | None, Example("examples/scheduling/topology.conf")] = None
    """File that describes the cluster in place of the scenario's fabric: Slurm's topology.conf (topology/tree or
    topology/block), or a Topology of Kueue (YAML), which needs `nodes`."""
    nodes: Annotated[
        Path | None,
        Example("examples/scheduling/nodes.yaml", (".topology=examples/scheduling/kueue-topology.yaml",)),
    ] = None
    """Kubernetes' nodes with their labels, as `kubectl get nodes -o yaml` prints them."""
    accelerators_per_host: Annotated[Annotated[int, whole(1, 1024)] | None, Example("8")] = None
    """By default as many as a host of the fabric has ranks; for nodes of Kubernetes, their allocatable GPUs."""
    trace: Annotated[Path | None, Example("examples/scheduling/jobs.csv")] = None
    """Jobs as a CSV file with the columns arrival_s, accelerators, run_time_s and, optionally, urgent (0 or 1). It
    takes the place of `jobs`, `load`, `sizes`, `run_time` and `urgent`."""
    jobs: Annotated[int, whole(1, MOST_JOBS)] = 1000
    """Jobs that arrive, at random times (Poisson)."""
    load: Annotated[float, number(0, 10, above=True, example="0.8")] = 0.8
    """Accelerators times run time of the jobs that arrive in a while, as a share of what the cluster has."""
    sizes: Annotated[list[JobSizeSection], Example("[{accelerators: 1}]")] = Field(default=[])
    """Sizes of jobs."""
    run_time: RunTimeSection = RunTimeSection()
    urgent: Annotated[float, number(0, 1, example="0.1")] = 0.0
    """Share of jobs that are urgent: they go before all others."""
    consolidated: bool = True
    """Whether a job that fits in a host has all of its accelerators there, and a larger one takes whole hosts, but for
    the last. Otherwise any accelerators will do."""
    policies: Annotated[list[PolicyName] | None, Field(min_length=1), Example("[first-fit, slurm-tree]")] = None
    """Policies that are compared; by default all."""
    order: Annotated[Order | None, Example("easy")] = None
    """Order of all policies, in place of their own. `fifo`: no job starts before an earlier one. `easy`: later jobs
    start if they do not delay the first that waits. `best-effort`: whichever fits starts."""
    depth: Annotated[int, whole(1, 10_000)] = 100
    """Waiting jobs that `easy` and `best-effort` look at."""
    limit: Annotated[float, number(1, 1000)] = 1.0
    """Run time that users ask for, over the run time of a packed job; `easy` counts with it."""
    level: Annotated[str | None, Example("leaf")] = None
    """Level of the cluster in which policies that know it keep a job: `leaf`, `group`, `switch-1` …, or a label of
    nodes. By default the lowest."""
    required: bool = False
    """Whether a job waits until it fits in one domain of `level` (Kueue's required topology) if any could hold it."""
    patience: Annotated[Duration, Example("10min")] = 0.0
    """How long a job waits for as few leaves as it needs, before it takes more (Slurm's `--switches`)."""
    slowdown: SlowdownSection | None = None
    """By default jobs run equally fast wherever they lie."""
    preemption: PreemptionSection | None = None
    """By default no job is preempted."""
    migration: MigrationSection | None = None
    """By default no job moves."""

    @model_validator(mode="after")
    def _check_together(self) -> ScheduleSection:
        if self.nodes is not None and self.topology is None:
            raise SectionKeyError("nodes", "means nothing without `topology`, a Topology of Kueue")
        if self.trace is not None:
            drawn = [key for key in ("jobs", "load", "sizes", "run_time", "urgent") if key in self.model_fields_set]
            if drawn:
                raise SectionKeyError(drawn[0], "means nothing with `trace`, which has the jobs")
        if self.preemption is not None and self.trace is None and not self.urgent:
            raise SectionKeyError("preemption", "means nothing without urgent jobs", valid="`urgent` above 0")
        return self


def schedule_section(scenario: Scenario) -> ScheduleSection | None:
    """Return a scenario's section; None if the file lacks it."""
    section = scenario.schedule
    return section if isinstance(section, ScheduleSection) else None
