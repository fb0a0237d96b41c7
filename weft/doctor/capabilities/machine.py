"""Processors and memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from weft.doctor.capability import Capability, Finding
from weft.quantities.units import GIB


@dataclass(frozen=True)
class FabricSize:
    """Memory with which a fabric of so many endpoints runs a permutation of 1 MiB in virtual time."""

    endpoints: int
    gib: int


FABRICS = (FabricSize(1_024, 1), FabricSize(16_384, 3))
"""Measured (docs/performance.md, "Set-up and 16,384 endpoints"), with room for the system."""


def memory_bytes(proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the memory of the machine, or of the container if that has less."""
    lines = (proc / "meminfo").read_text(encoding="utf-8").splitlines()
    total = int(next(line for line in lines if line.startswith("MemTotal:")).split()[1]) * 1024
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        limit = cgroup / name
        if limit.is_file() and (text := limit.read_text(encoding="ascii").strip()).isdigit():
            return min(total, int(text))
    return total


def _memory() -> Finding:
    return memory_finding(memory_bytes())


def memory_finding(size_bytes: int) -> Finding:
    """Return which fabrics fit in a memory; it is present if all listed sizes do."""
    fitting = [each for each in FABRICS if each.gib * GIB <= size_bytes]
    size = f"{size_bytes / GIB:.1f} GiB"
    if not fitting:
        return Finding(False, f"{size}: fabrics of {FABRICS[0].endpoints:,} endpoints need {FABRICS[0].gib} GiB")
    detail = f"{size}: fabrics of {fitting[-1].endpoints:,} endpoints"
    return Finding(len(fitting) == len(FABRICS), detail)


def _cores() -> Finding:
    count = len(os.sched_getaffinity(0))
    return Finding(count > 1, f"{count} usable" if count > 1 else "one")


def _huge_pages(setting: Path = Path("/sys/kernel/mm/transparent_hugepage/enabled")) -> Finding:
    if not setting.exists():
        return Finding(False, "the kernel has none")
    chosen = setting.read_text(encoding="ascii").partition("[")[2].partition("]")[0]
    return Finding(chosen in ("always", "madvise"), f"{setting}: {chosen}")


CAPABILITIES = [
    Capability(
        name="cores",
        purpose="--workers, mpirun, sweeps; labs in Mininet on time",
        look=_cores,
        cost="no parallel runs; labs in Mininet need a higher dilation",
        install="give the machine or the container two or more",
    ),
    Capability(
        name="memory",
        purpose="large fabrics",
        look=_memory,
        cost=f"fabrics of {FABRICS[-1].endpoints:,} endpoints may not fit",
        install=f"{FABRICS[-1].gib} GiB",
    ),
    Capability(
        name="huge pages",
        purpose="packets and tables close together",
        look=_huge_pages,
        cost="the engine is somewhat slower",
        install="echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    ),
]
