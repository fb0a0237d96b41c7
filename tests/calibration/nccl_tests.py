"""Writes tables as nccl-tests prints them, of times that a scenario takes with known values of its keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.calibration import MeasuredTable, Measurement
from weft.paths import ROOT
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario, read_mapping
from weft.scenario.dotted import plain, set_at

EXAMPLE = ROOT / "examples" / "calibration"
POD = EXAMPLE / "pod.yaml"
TRUTH = {
    "nic.per_message_overhead": "2400ns",
    "nic.per_packet_overhead": "390ns",
    "fabric.scale_up.rate": "350Gb/s",
    "fabric.scale_up.latency": "1700ns",
}
"""Values with which the logs of the example were made."""
SIZES = [2**power for power in range(12, 23)]
SCATTER = (1.012, 0.991, 1.004, 0.985, 1.018, 0.996, 1.009, 0.988, 1.001, 1.015, 0.993)
"""Factors on the times, as repeated measurements scatter."""


def tree_of(path: Path = POD) -> dict[str, Any]:
    tree: dict[str, Any] = plain(read_mapping(path, "a scenario"))
    return tree


def times_ps(tree: Mapping[str, Any], values: Mapping[str, str], sizes: Sequence[int] = SIZES) -> list[list[int]]:
    """Return the times of each item of the traffic at these sizes, with values of keys."""
    changed = plain(tree)
    for key, value in values.items():
        set_at(changed, key, value)
    changed["clock"] = "virtual"
    changed["traffic"] = [item | {"sizes": list(sizes), "data": "lengths"} for item in changed["traffic"]]
    found = iter(run_scenario(parse_scenario(changed, units_required=True)).collectives)
    return [[next(found).time_ps for _ in sizes] for _ in changed["traffic"]]


def measured(
    collective: str, ranks: int, sizes: Sequence[int], times: Sequence[float], *, path: str = "x.log", nodes: int = 1
) -> MeasuredTable:
    rows = tuple(Measurement(size, float(time), 1) for size, time in zip(sizes, times, strict=True))
    return MeasuredTable(path, collective, ranks, nodes, rows)


def log_text(program: str, nodes: Sequence[str], sizes: Sequence[int], times: Sequence[float]) -> str:
    """Return a log of nccl-tests 2.17: `nodes` are the hosts of the ranks, times are in ps."""
    lines = [
        f"# Collective test starting: {program}",
        f"# nThread 1 nGpus 1 minBytes {min(sizes)} maxBytes {max(sizes)} step: 2(factor) warmup iters: 5 iters: 20 "
        "agg iters: 1 validation: 1 graph: 0",
        "#",
        "# Using devices",
        *(
            f"#  Rank {rank:2} Group  0 Pid {4000 + rank:6} on {node:>10} device {rank % 4:2} [0000:{rank:02x}:00] GPU"
            for rank, node in enumerate(nodes)
        ),
        "#",
        f"#{'out-of-place':>74}{'in-place':>31}",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
        "#wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
    ]
    share = 2 * (len(nodes) - 1) / len(nodes) if program == "all_reduce_perf" else (len(nodes) - 1) / len(nodes)
    for size, time in zip(sizes, times, strict=True):
        cells = "".join(_cells(size, time * factor, share) for factor in (1.0, 0.98))
        lines.append(f"{size:12}{size // 4:14}{'float':>10}{'sum':>8}{-1:8}{cells}")
    lines += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 1", "#"]
    return "\n".join(lines) + "\n"


def _cells(size: int, time_ps: float, share: float) -> str:
    time_us = time_ps / 1e6
    digits = 0 if time_us >= 10_000 else 1 if time_us >= 100 else 2
    bandwidth = size / time_us / 1e3
    return f"{time_us:9.{digits}f}  {bandwidth:6.2f}  {bandwidth * share:6.2f}{0:7}"


def example_logs() -> dict[str, str]:
    """Return the logs of the example by file name."""
    both, one = times_ps(tree_of(), TRUTH)
    hosts = ["host-0"] * 4 + ["host-1"] * 4
    return {
        "two_hosts.log": log_text("all_reduce_perf", hosts, SIZES, _scattered(both)),
        "one_host.log": log_text("all_reduce_perf", hosts[:4], SIZES, _scattered(one)),
    }


def _scattered(times: Sequence[int]) -> list[float]:
    return [time * factor for time, factor in zip(times, SCATTER, strict=True)]


if __name__ == "__main__":
    for name, text in example_logs().items():
        (EXAMPLE / name).write_text(text)
