"""5.4 Multi-Tier Storage Transfer Characterization."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.bench.background import payload_share
from weft.bench.flow_groups import FlowGroups
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.quantities.readable import format_size
from weft.quantities.units import KIB, MIB, PS_PER_S, PS_PER_US
from weft.results.report_parts import Cell, ReportTable
from weft.trials import InvalidTrialError, Procedure, TrialRun

SIZES = (MIB, 16 * MIB, 256 * MIB)
_READ_BYTES, _BLOCK_BYTES = MIB, 128 * KIB
_DEVICE = "9550"
_RDMA, _OFFLOAD, _RELOAD, _NVME = (
    "GPU HBM to GPU HBM (RDMA WRITE)",
    "GPU HBM to remote CPU DRAM (RDMA WRITE)",
    "remote CPU DRAM to GPU HBM (RDMA READ)",
    "GPU HBM to NVMe (NVMe over Fabrics)",
)
_DRAM_LATENCY = "100ns"


@dataclass(frozen=True)
class _Tier:
    """Throughput and percentiles of the time of a transfer."""

    bytes_per_s: float
    median_us: float
    tail_us: float


class StorageTiers(BenchTest):
    """Caches written to and read from memories and devices of other hosts."""

    section = "5.4"
    name = "storage-tiers"
    title = "Multi-Tier Storage Transfer Characterization"
    objective = "KV cache transfer between accelerators, to and from remote memory, and to flash storage."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        sizes = setup.choose(smoke=SIZES[:1], standard=SIZES[:2], full=SIZES)
        blocks = setup.choose(smoke=8, standard=8, full=50)
        source, destination = setup.subject.remote_pair()
        found: dict[str, dict[int, _Tier]] = {}
        missing: list[str] = []
        groups = {size: _writes(setup, source, destination, size, blocks) for size in sizes}
        runs = yield [setup.trial(f"{format_size(size)}, RDMA WRITE", [groups[size].item(setup)]) for size in sizes]
        writes = {size: _of_writes(groups[size], run) for size, run in zip(sizes, runs, strict=True)}
        found[_RDMA] = found[_OFFLOAD] = writes
        for tier, item in ((_RELOAD, _reads), (_NVME, _commands)):
            try:
                runs = yield [
                    setup.trial(f"{format_size(size)}, {tier}", [item(source, destination, size)]) for size in sizes
                ]
            except InvalidTrialError as error:
                missing.append(f"{tier}: {error}")
                continue
            found[tier] = {
                size: _of_service(run, "remote_memory" if tier is _RELOAD else "storage")
                for size, run in zip(sizes, runs, strict=True)
            }
        largest = sizes[-1]
        return Measured(
            tables=[
                ReportTable(
                    "Transfers by tier",
                    [
                        "tiers",
                        *(
                            text
                            for size in sizes
                            for text in (
                                f"{format_size(size)}: GB/s",
                                "P50 (us)",
                                "P99 (us)",
                                "ratio to RDMA",
                            )
                        ),
                    ],
                    [_row(tier, tiers, found[_RDMA], sizes) for tier, tiers in found.items()],
                    "latencies of reads and of NVMe are those of one transfer of the size: P50 and P99 are the same",
                )
            ],
            kpis=[
                KpiValue("KV_xfer_bandwidth", tiers[largest].bytes_per_s / 1e9, f"{tier}, {format_size(largest)}")
                for tier, tiers in found.items()
            ],
            scaled=[
                "receivers' memories take no time to write, so a write to remote CPU DRAM is one to GPU memory: both "
                "rows are the same trial",
                f"READs are of {format_size(_READ_BYTES)}, 16 under way, of memory with a latency of {_DRAM_LATENCY}; "
                f"NVMe writes are commands of {format_size(_BLOCK_BYTES)}, 32 under way, to a device like Micron's "
                f"{_DEVICE}",
                "PCIe and copies between GPU and CPU memory are out of the draft's scope and take no time",
            ],
            anomalies=missing,
        )


def _writes(setup: Setup, source: int, destination: int, size: int, blocks: int) -> FlowGroups:
    apart_ps = round(1.5 * size * 8 * PS_PER_S / (setup.subject.rank_rate_bps * payload_share(setup))) + 20 * PS_PER_US
    found = FlowGroups()
    for number in range(blocks):
        found.add(setup.transfer(source, destination, size, number * apart_ps))
    return found


def _of_writes(groups: FlowGroups, run: TrialRun) -> _Tier:
    times = groups.times(run)
    median_us, tail_us = (float(each) / PS_PER_US for each in np.percentile(times.latency_ps, (50, 99)))
    return _Tier(float(times.size_bytes[0]) * 1e6 / median_us, median_us, tail_us)


def _reads(source: int, destination: int, size: int) -> Mapping[str, Any]:
    return {
        "remote_memory": [destination],
        "clients": [source],
        "size": min(size, _READ_BYTES),
        "reads": max(1, size // _READ_BYTES),
        "outstanding": 16,
        "access_latency": _DRAM_LATENCY,
    }


def _commands(source: int, destination: int, size: int) -> Mapping[str, Any]:
    return {
        "storage": [destination],
        "clients": [source],
        "device": _DEVICE,
        "block": _BLOCK_BYTES,
        "queue_depth": 32,
        "access": {"blocks": size // _BLOCK_BYTES, "order": "sequential", "reads": 0},
    }


def _of_service(run: TrialRun, key: str) -> _Tier:
    (result,) = run.results_of(key)
    taken_us = result.time_ps / PS_PER_US
    return _Tier(result.bytes_per_s, taken_us, taken_us)


def _row(tier: str, tiers: Mapping[int, _Tier], rdma: Mapping[int, _Tier], sizes: tuple[int, ...]) -> list[Cell]:
    cells: list[Cell] = [tier]
    for size in sizes:
        each = tiers[size]
        cells += [
            round(each.bytes_per_s / 1e9, 3),
            round(each.median_us, 2),
            round(each.tail_us, 2),
            round(each.bytes_per_s / rdma[size].bytes_per_s, 3),
        ]
    return cells
