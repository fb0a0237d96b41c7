"""The result of training with a parameter server: what steps took, how old weights were, how the loss fell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.recording import tables
from weft.results.clearances import ClearedResult
from weft.results.critical_paths import CriticalPathResult


@dataclass(frozen=True)
class ConvergenceResult:
    """How the loss of what was trained fell."""

    steps: list[int]
    """After how many steps' gradients of all workers the loss was taken."""
    times_ps: list[int]
    """When the servers had applied them, since the start."""
    losses: list[float]
    """Mean loss of all images."""
    diverged: bool
    """Whether the loss ceased to be a number after the last of these."""
    accuracy: float
    """Share of all images that are recognised in the end."""
    target_loss: float
    """The loss to reach."""
    target_steps: int | None
    """The first step at which the loss was no larger; null if none was."""
    target_ps: int | None
    """The time of that."""


@dataclass(frozen=True)
class HistogramResult:
    """How often whole numbers were found."""

    values: list[int]
    """Those that were found, in order."""
    counts: list[int]
    """How often, of each."""
    mean: float
    """Mean of all."""
    largest: int
    """Largest of all."""


@dataclass(frozen=True)
class ParameterServerResult(ClearedResult):
    """Training with a parameter server, from its start to the end of its last operation.

    Each worker's steps are divided into parts that follow each other and add up to them
    ([definitions](parameter-server.md#what-a-step-consists-of)). `records` has a row per operation; it is written
    to a separate table, not to the results file.
    """

    derived: ClassVar[Mapping[str, str]] = {
        "step_ps": "step_ps",
        "gradients_per_s": "gradients_per_s",
        "gradients_per_s_at_work": "gradients_per_s_at_work",
    }

    mode: str
    """`synchronous`, `staleness S`, `asynchronous` or `all-reduce (ALGORITHM)`."""
    workers: int
    """How many there are."""
    servers: int
    """How many there are; 0 of an all-reduce."""
    parameter_bytes: int
    """Size of the parameters, and so of a gradient."""
    steps: int
    """Steps of each worker."""
    time_ps: int
    """Duration of all steps, up to the last acknowledgement."""
    worker_ps: list[int]
    """End of each worker's last step, since the start."""
    parts_ps: dict[str, list[int]]
    """Parts of each worker's steps, summed over steps; together they are `worker_ps`."""
    clock_lags: HistogramResult | None
    """How many steps of the slowest worker weights lacked that a server sent; null of an all-reduce."""
    update_staleness: HistogramResult | None
    """How many other updates a server made between sending weights and using their gradient; null of an all-reduce."""
    link_share: list[float]
    """Utilisation of each server: bytes of gradients from other hosts, over its links' capacity one way in the time. As
    many bytes of weights go the other way."""
    convergence: ConvergenceResult | None
    """How the loss fell; null where nothing was trained."""
    retransmissions: int
    """Packets sent again by all hosts meanwhile."""
    critical_path: CriticalPathResult
    """Parts of the duration."""
    records: tables.Table = field(default_factory=dict, compare=False, repr=False)

    @property
    def cleared_ps(self) -> int:
        """`time_ps`."""
        return self.time_ps

    @property
    def step_ps(self) -> float:
        """Return what a step took on average over workers."""
        return sum(self.worker_ps) / (self.workers * self.steps)

    @property
    def gradients_per_s(self) -> float:
        """Return all workers' gradients over the time, per second."""
        return self.workers * self.steps / (self.time_ps / PS_PER_S)

    @property
    def gradients_per_s_at_work(self) -> float:
        """Return the sum of workers' rates, each up to the end of its own last step: the rate while all are at work."""
        return sum(self.steps / (each / PS_PER_S) for each in self.worker_ps)

    def part_us(self, name: str) -> float:
        """Return the mean of a part over workers and steps, in µs."""
        return sum(self.parts_ps.get(name, ())) / (self.workers * self.steps) / PS_PER_US


def part_names(results: Sequence[ParameterServerResult]) -> list[str]:
    """Return the names of the parts of all results' steps, in their order."""
    found = {name for each in results for name in each.parts_ps}
    return [name for name in ("compute", "push", "wait", "all-reduce", "update", "pull") if name in found]


def problems_of(result: ParameterServerResult) -> Iterator[tuple[str, str]]:
    """Yield what the types of a result that was read back do not say: a key, and what is wrong."""
    if result.workers < 1 or result.steps < 1:
        yield "workers", f"{result.workers} with {result.steps} steps (valid: 1 and more)"
    if result.time_ps < 1:
        yield "time_ps", f"{result.time_ps} (valid: 1 and more)"
    if len(result.worker_ps) != result.workers or not all(result.worker_ps):
        yield (
            "worker_ps",
            f"{len(result.worker_ps)} times of {result.workers} workers (valid: one each, above 0)",
        )
    for name, values in result.parts_ps.items():
        if len(values) != result.workers:
            yield f"parts_ps.{name}", f"{len(values)} times of {result.workers} workers (valid: one each)"
    for key in ("clock_lags", "update_staleness"):
        histogram: HistogramResult | None = getattr(result, key)
        if (histogram is None) == bool(result.servers):
            yield key, f"is {'null' if histogram is None else 'there'} with {result.servers} servers"
        elif histogram is not None and not len(histogram.values) == len(histogram.counts) > 0:
            yield key, "values and counts differ in number, or there are none"
        elif histogram is not None and not all(histogram.counts):
            yield f"{key}.counts", "has a 0 (valid: 1 and more)"
    if len(result.link_share) != result.servers:
        yield "link_share", f"{len(result.link_share)} shares of {result.servers} servers (valid: one each)"
    found = result.convergence
    if found is not None and not len(found.steps) == len(found.times_ps) == len(found.losses) > 0:
        yield "convergence", "steps, times_ps and losses differ in length, or are empty"
