"""The plan of training with a parameter server: everything that determines its job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weft.jobs.compute_variation import ComputeVariation
from weft.jobs.training_plan import PlanError
from weft.quantities.units import PS_PER_S
from weft.traffic.data_types import DataType

Mode = Literal["synchronous", "asynchronous", "all-reduce"]
MAX_TRANSFERS = 400_000
"""Most gradients sent to servers: they make two million operations, which take seconds to build."""
DDR5_GB_PER_S = 307.2
"""Eight channels of DDR5-4800, as in a socket of fourth-generation Intel Xeon Scalable: 8 · 4.8 GT/s · 8 B."""
PARAMETER_BYTES = DataType.FLOAT32.element_bytes
"""Bytes of a parameter and of its gradient."""
_PASSES = 3


@dataclass(frozen=True)
class ParameterServerPlan:
    """Steps of data-parallel training with a parameter server. The job's first ranks are the workers.

    Attributes:
        servers: number of servers, which hold the parameters in even contiguous shards.
        workers: number of workers; each computes a gradient in every step.
        parameter_bytes: bytes of the float32 parameters, and so of a gradient.
        steps: steps of each worker.
        compute_ps: how long a worker computes in a step.
        mode: `synchronous`: weights change by the mean of all workers' gradients of a step. `asynchronous`: by each
            gradient as it arrives. `all-reduce`: without servers, workers add up their gradients, as a baseline.
        staleness: how many steps an asynchronous worker may be ahead of the slowest; None for any number.
        colocated: whether servers run on the first workers' ranks instead of on separate ranks behind them.
        memory_bandwidth_gb_per_s: memory bandwidth of the ranks that update weights: servers, or workers in an
            all-reduce.
        algorithm: algorithm of the all-reduces.
        stragglers: by worker, the factor that lengthens all its computations.
        jitter: standard deviation of the logarithm of each computation's random factor, which has median 1.
        seed: random seed of the jitter.

    Raises PlanError for values that do not fit together.
    """

    servers: int
    workers: int
    parameter_bytes: int
    steps: int = 1
    compute_ps: int = 1
    mode: Mode = "synchronous"
    staleness: int | None = None
    colocated: bool = False
    memory_bandwidth_gb_per_s: float = DDR5_GB_PER_S
    algorithm: str = "ring"
    stragglers: Mapping[int, float] = field(default_factory=dict)
    jitter: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Check values against each other."""
        if self.parameter_bytes % PARAMETER_BYTES:
            raise PlanError("parameters", f"{self.parameter_bytes} B", valid=f"a multiple of {PARAMETER_BYTES}")
        if not 1 <= self.servers <= self.parameter_bytes // PARAMETER_BYTES:
            raise PlanError(
                "parameter_server",
                f"{self.servers} servers share {self.parameter_bytes} B",
                valid="1 to one for each parameter",
            )
        if self.mode == "all-reduce" and self.workers < 2:
            raise PlanError("workers", f"{self.workers} for an all-reduce", valid="2 or more")
        if self.staleness is not None and self.mode != "asynchronous":
            raise PlanError("staleness", f"{self.staleness} of mode {self.mode}", valid="none, or mode asynchronous")
        for worker in self.stragglers:
            if not 0 <= worker < self.workers:
                raise PlanError("stragglers", f"worker {worker}", valid=f"0 to {self.workers - 1}")
        transfers = self.steps * self.workers * (self.servers if self.has_servers else 1)
        if transfers > MAX_TRANSFERS:
            most = MAX_TRANSFERS * self.steps // transfers
            advice = f"up to {most}" if most else "fewer workers or servers"
            raise PlanError("steps", f"{self.steps}, which send {transfers} gradients", valid=advice)

    @property
    def has_servers(self) -> bool:
        """Whether the mode uses servers."""
        return self.mode != "all-reduce"

    @property
    def rank_count(self) -> int:
        """Ranks of the job."""
        if not self.has_servers:
            return self.workers
        return max(self.workers, self.servers) if self.colocated else self.workers + self.servers

    @property
    def traffic_kinds(self) -> tuple[str, ...]:
        """Categories of the job's traffic."""
        return ("push", "pull") if self.has_servers else ("all-reduce",)

    @property
    def computing_ps(self) -> int:
        """Upper bound on the time of computation: the slowest worker's in each step, summed."""
        slowest = np.zeros(self.steps, np.int64)
        for worker in range(self.workers):
            slowest = np.maximum(slowest, self.compute_times_ps(worker))
        return sum(slowest.tolist())

    @property
    def title(self) -> str:
        """Name of the mode in texts."""
        if self.mode == "all-reduce":
            return f"all-reduce ({self.algorithm})"
        return self.mode if self.staleness is None else f"staleness {self.staleness}"

    def server_rank(self, server: int) -> int:
        """Return a server's rank in the job."""
        return server if self.colocated else self.workers + server

    @property
    def shard_ends(self) -> NDArray[np.int64]:
        """Boundaries of the shards, in parameters: servers + 1 values from 0."""
        count = self.parameter_bytes // PARAMETER_BYTES
        each, larger = divmod(count, self.servers)
        return np.cumsum([0] + [each + 1] * larger + [each] * (self.servers - larger))

    @property
    def shard_bytes(self) -> list[int]:
        """Size of each server's shard."""
        sizes: list[int] = (np.diff(self.shard_ends) * PARAMETER_BYTES).tolist()
        return sizes

    def update_ps(self, size_bytes: int) -> int:
        """Return the time to add one vector of `size_bytes` to another, which memory bandwidth bounds.

        One vector is read, the other read and written.
        """
        return round(_PASSES * size_bytes / (self.memory_bandwidth_gb_per_s * 1e9) * PS_PER_S)

    def compute_times_ps(self, worker: int) -> NDArray[np.int64]:
        """Return how long a worker computes in each step, at least 1 ps."""
        durations = np.full(self.steps, round(self.compute_ps * self.stragglers.get(worker, 1.0)), np.int64)
        varied = ComputeVariation(jitter=self.jitter, seed=self.seed).with_jitter(worker, durations)
        return np.maximum(varied, 1)
