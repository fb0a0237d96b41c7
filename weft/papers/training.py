"""Scenarios of training steps on hosts of eight accelerators, a rail for each, as studies of training run them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.jobs.accelerators import ACCELERATORS
from weft.jobs.models import Transformer
from weft.papers.trees import SPRAYED_SWIFT, virtual
from weft.quantities.units import PS_PER_US
from weft.recording.tables import integers_of, names_of
from weft.results.training_jobs import TrainingJobResult
from weft.trials import TrialFailedError, TrialRun

RANKS_PER_HOST = 8
_SPINES = 4


@dataclass(frozen=True)
class Cluster:
    """Hosts of eight accelerators: the rate of each one's NIC, and of its links to the others of its host."""

    accelerator: str
    nic_rate: str
    scale_up_rate: str

    def fabric(self, ranks: int, scale: int = 1) -> dict[str, Any]:
        """Return a leaf for each rail, and spines; latency inside hosts is divided by `scale`."""
        return {
            "planes": 1,
            "leaves": RANKS_PER_HOST,
            "spines": _SPINES,
            "hosts_per_leaf": ranks // RANKS_PER_HOST,
            "host_rate": self.nic_rate,
            "oversubscription": 1,
            "ranks_per_host": RANKS_PER_HOST,
            "rail_optimised": True,
            "scale_up": {"rate": self.scale_up_rate, "latency": f"{500_000 // scale}ps"},
        }


DGX_A100 = Cluster("A100", "200Gb/s", "2400Gb/s")
"""Narayanan et al. 2021, section 5: a 200 Gb/s HCA for each accelerator, NVLink of 600 GB/s."""
H800_HOSTS = Cluster("H800", "400Gb/s", "1280Gb/s")
"""DeepSeek-V3, section 3.2.2: InfiniBand of 50 GB/s, NVLink of 160 GB/s that are reached."""


def shorter(model: Transformer, scale: int) -> Transformer:
    """Return the model with sequence and vocabulary divided.

    Computation, activations and what they send shrink alike; so does the output. Weights stay as they are.
    """
    return model.model_copy(update={"sequence": model.sequence // scale, "vocabulary": model.vocabulary // scale})


def step_tree(
    name: str, cluster: Cluster, model: Transformer, parallel: Mapping[str, Any], scale: int = 1, **item: Any
) -> dict[str, Any]:
    """Return the scenario of one step. With `scale`, of a model that is `shorter`, the optimizer is as much faster."""
    degrees = ("tensor", "context", "pipeline", "data")
    ranks = 1
    for degree in degrees:
        ranks *= parallel.get(degree, 1)
    bandwidth = ACCELERATORS[cluster.accelerator].memory_bandwidth_gb_per_s * scale
    return virtual(
        name,
        mtu=4096,
        fabric=cluster.fabric(ranks, scale),
        transport=SPRAYED_SWIFT,
        traffic=[
            {
                "model": model.model_dump(exclude_none=True),
                "parallel": dict(parallel),
                "accelerator": {"preset": cluster.accelerator, "memory_bandwidth_gb_per_s": bandwidth},
                **item,
            }
        ],
    )


def step_of(run: TrialRun) -> TrainingJobResult:
    """Return the step that a run has trained; TrialFailedError: there is none."""
    for _, found in run.run.traffic:
        for each in found:
            if isinstance(each, TrainingJobResult):
                return each
    raise TrialFailedError(f"{run.trial.label}: its results have no step of training")


def forward_hops_us(step: TrainingJobResult, category: str, hops: int) -> Sequence[float]:
    """Return the first operations of a category of each rank, in their order: the mean time of each over the ranks."""
    categories = names_of(step.records, "category").texts()
    rows = np.flatnonzero(categories == category)
    start_ps, end_ps, ranks = (integers_of(step.records, name)[rows] for name in ("start_ps", "end_ps", "rank"))
    times_us = (end_ps - start_ps) / PS_PER_US
    of_ranks = [times_us[ranks == rank][:hops] for rank in np.unique(ranks)]
    return [float(each) for each in np.mean(of_ranks, axis=0)]


def tflops(step: TrainingJobResult) -> float:
    """Return 10^12 operations per second of a rank, as Narayanan et al. 2021 count them (equation 3).

    Recomputation of whole layers is included, and all of attention's scores, while a step computes their causal half.
    """
    return step.plan.all_scores_flops * 4 / 3 / step.plan.ranks / step.step_ps
