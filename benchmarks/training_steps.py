"""Steps of training on rails, at a fraction of their size: what the shapes of bench_training_shapes.py are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft import Fabric
from weft.jobs.accelerators import ACCELERATORS
from weft.jobs.models import Transformer
from weft.papers.training import tflops
from weft.results.training_jobs import TrainingJobResult
from weft.run.traffic_kinds.model import TrainingJobTraffic
from weft.scenario import TransportSection
from weft.topologies import FabricSpec, leaf_spine
from weft.topologies.scale_up import with_scale_up

RANKS_PER_HOST = 8
SPINES = 4
PATIENCE_S = 60.0
"""Of emulated time."""


@dataclass(frozen=True)
class Cluster:
    """Hosts of eight accelerators: the network of each, the links between them, and how they compute."""

    accelerator: str
    nic_bps: float
    scale_up_bps: float
    """Of an accelerator's links to the others of its host, in each direction."""

    def fabric(self, ranks: int, scale: int = 1) -> FabricSpec:
        """Return a leaf for each rail, and spines; latency inside hosts is divided by `scale`."""
        rails = leaf_spine(
            planes=1,
            leaves=RANKS_PER_HOST,
            spines=SPINES,
            hosts_per_leaf=ranks // RANKS_PER_HOST,
            host_rate_bps=self.nic_bps,
            oversubscription=1.0,
        )
        return with_scale_up(rails, RANKS_PER_HOST, self.scale_up_bps, latency_ps=500_000 // scale, rail_optimised=True)


DGX_A100 = Cluster("A100", 200e9, 2.4e12)
"""Narayanan et al. 2021, section 5: a 200 Gb/s HCA for each accelerator, NVLink of 600 GB/s."""
H800_HOSTS = Cluster("H800", 400e9, 1.28e12)
"""DeepSeek-V3, section 3.2.2: InfiniBand of 50 GB/s, NVLink of 160 GB/s that are reached."""


@dataclass(frozen=True)
class Step:
    """What a step found."""

    result: TrainingJobResult
    host_bytes: int
    """Payload between hosts, of all ranks."""

    @property
    def ms(self) -> float:
        """What it took."""
        return self.result.step_ps / 1e9

    def exposed_ms(self, category: str) -> float:
        """Communication of a category that no computation hid, on average over the ranks."""
        return self.result.exposed_ps.get(category, 0) / 1e9

    @property
    def tflops(self) -> float:
        """See `weft.papers.training.tflops`."""
        return tflops(self.result)


def run_step(cluster: Cluster, model: Transformer, parallel: Mapping[str, Any], scale: int = 1, **item: Any) -> Step:
    """Run one step. With `scale`, of a model that is `shorter`, the optimizer is as many times faster."""
    preset = ACCELERATORS[cluster.accelerator]
    step = TrainingJobTraffic.model_validate(
        {
            "model": model,
            "parallel": dict(parallel),
            "accelerator": preset.model_copy(
                update={"memory_bandwidth_gb_per_s": preset.memory_bandwidth_gb_per_s * scale}
            ),
            **item,
        }
    )
    ranks = step.plan(RANKS_PER_HOST).parallel.rank_count
    with Fabric(
        cluster.fabric(ranks, scale),
        clock="virtual",
        seed=1,
        mtu_bytes=4096,
        int_telemetry=False,
        transport=TransportSection(
            congestion_control="swift", retransmission="selective-repeat", path="spray", ack_interval=4
        ),
    ) as fabric:
        (result,) = fabric.run_together([step.prepare_task(ranks, 1)(fabric)], PATIENCE_S)
        sent = sum(each["totals"]["data_bytes_sent"] for each in fabric.hosts.stats())
    return Step(result, sent)
