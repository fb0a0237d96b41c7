"""The result of training with a parameter server, made from a run of its job."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from weft.jobs.parameter_server import AllReduceJob, ParameterServerJob, ServerTimes
from weft.jobs.parameter_server.convergence import TrainedModel, convergence
from weft.jobs.parameter_server.replay import replay
from weft.jobs.parameter_server.staleness import clock_lags, update_staleness
from weft.jobs.parameter_server.step_parts import step_parts
from weft.quantities.units import PS_PER_S
from weft.recording.operations import operations_table
from weft.results.critical_paths import critical_path_result
from weft.results.parameter_server_model import (
    ConvergenceResult,
    HistogramResult,
    ParameterServerResult,
)
from weft.run.jobs import JobRun
from weft.topologies import FabricSpec

_BITS = 8


class Training(Protocol):
    """Training parameters of a model."""

    @property
    def learning_rate(self) -> float:
        """Learning rate for the mean gradient of all workers."""

    @property
    def target_loss(self) -> float:
        """Loss for which results report the time to reach it."""


def parameter_server_result(
    made: ParameterServerJob | AllReduceJob,
    topology: FabricSpec,
    model: TrainedModel | None,
    training: Training | None,
    ran: JobRun,
) -> ParameterServerResult:
    """Return the result of a run; a model, if given, is trained in the order of the run's messages."""
    plan, times = made.plan, made.times(ran.times)
    parts = {name: values.sum(axis=1).tolist() for name, values in step_parts(times).items()}
    has_servers = isinstance(times, ServerTimes)
    found = None
    if model is not None and training is not None:
        samples = convergence(replay(times, plan, model, training.learning_rate), model, plan.steps)
        steps, time_ps = samples.first_within(training.target_loss) or (None, None)
        found = ConvergenceResult(
            **vars(samples), target_loss=training.target_loss, target_steps=steps, target_ps=time_ps
        )
    return ParameterServerResult(
        mode=plan.title,
        workers=plan.workers,
        servers=plan.servers if has_servers else 0,
        parameter_bytes=plan.parameter_bytes,
        steps=plan.steps,
        time_ps=ran.duration_ps,
        worker_ps=[sum(values) for values in zip(*parts.values(), strict=True)],
        parts_ps=parts,
        clock_lags=_histogram(clock_lags(times)) if isinstance(times, ServerTimes) else None,
        update_staleness=_histogram(update_staleness(times)) if isinstance(times, ServerTimes) else None,
        link_share=_link_shares(made, ran),
        convergence=found,
        retransmissions=ran.retransmissions,
        critical_path=critical_path_result(made.job, ran.times, ran.ranks, ran.places, topology),
        records=operations_table(made.job, ran.times),
        clear_to_send=ran.clear_to_send,
    )


def _histogram(found: Counter[int]) -> HistogramResult:
    values = sorted(found)
    counts = [found[value] for value in values]
    total = sum(value * count for value, count in found.items())
    return HistogramResult(values, counts, total / found.total(), values[-1])


def _link_shares(made: ParameterServerJob | AllReduceJob, ran: JobRun) -> list[float]:
    """Return for each server the bits of gradients from other hosts over the one-way capacity of its links."""
    plan, hosts = made.plan, [ran.places.hosts[rank] for rank in ran.ranks]
    capacity_bits = sum(ran.places.plane_rates_bps) * ran.duration_ps / PS_PER_S
    shares = []
    for server, size_bytes in enumerate(plan.shard_bytes if plan.has_servers else []):
        others = sum(host != hosts[plan.server_rank(server)] for host in hosts[: plan.workers])
        shares.append(_BITS * size_bytes * others * plan.steps / capacity_bits)
    return shares
