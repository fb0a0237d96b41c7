"""All-reduces of Open MPI and of PyTorch's Gloo over the kernel's TCP, beside Weft's ring, in one lab of Mininet.

    sudo .venv/bin/python labs/22-communication-analysis/real_programs.py [--sizes 1KiB 16KiB 256KiB 1MiB]
        [--repetitions 5] [--dilation 300] [--timeout 300] [--out table.csv]

Eight hosts at 10 Gb/s on two leaves and a spine; Weft's P4 program at each switch. What is missing (Open MPI, mpi4py,
PyTorch) is said and left out. Times are emulated: those of programs are real, and divided by the dilation.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from weft import Fabric, topologies
from weft.clocks.real.lab import MininetLab
from weft.clocks.real.parallel_programs import open_mpi_command, outputs_of
from weft.errors import CheckFailedError, EnvironmentLacksError, WeftError
from weft.quantities.readable import format_size
from weft.quantities.units import parse_size_bytes
from weft.run.collectives import CollectiveRequest

TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=4, host_rate_bps=10 * 10**9)
HOSTS = [host.name for host in TOPOLOGY.hosts]
PLANE_NETWORK = "10.0.0.0/16"
PROGRAM = Path(__file__).with_name("all_reduce_rank.py")
GLOO_PORT = 29500


@dataclass(frozen=True)
class Asked:
    """What to measure."""

    sizes: Sequence[int]
    repetitions: int
    dilation: float
    timeout_s: float

    def rank_command(self, kind: str) -> list[str]:
        """Return the command of a rank."""
        pairs = [str(each) for size in self.sizes for each in (size, self.repetitions)]
        return [sys.executable, str(PROGRAM), kind, *pairs]


Times = dict[int, list[float]]
"""Emulated seconds of each run, by size."""


def mpi_times(fabric: Fabric, asked: Asked, parameters: Mapping[str, str] | None = None) -> Times:
    """Measure Open MPI's all-reduce, with further parameters of it. Raises EnvironmentLacksError, CheckFailedError."""
    if shutil.which("mpirun") is None:
        raise EnvironmentLacksError("mpirun is missing (the package openmpi-bin)")
    if find_spec("mpi4py") is None:
        raise EnvironmentLacksError("mpi4py is missing (the package python3-mpi4py)")
    command = open_mpi_command(HOSTS, asked.rank_command("mpi"), PLANE_NETWORK, parameters or {})
    return read_times(outputs_of(lab_of(fabric), {HOSTS[0]: command}, asked.timeout_s), asked)


def gloo_times(fabric: Fabric, asked: Asked) -> Times:
    """Measure the all-reduce of PyTorch's Gloo. Raises EnvironmentLacksError, CheckFailedError."""
    if find_spec("torch") is None:
        raise EnvironmentLacksError("PyTorch is missing (docs/torch.md)")
    common = [
        f"MASTER_ADDR={TOPOLOGY.hosts[0].nics[0].ipv4.ip}",
        f"MASTER_PORT={GLOO_PORT}",
        f"WORLD_SIZE={len(HOSTS)}",
        # Each process has a core at most, and threads of its own only get into the others' way.
        "OMP_NUM_THREADS=1",
        # Weft's own backend would be loaded, too, and is not asked for.
        "TORCH_DEVICE_BACKEND_AUTOLOAD=0",
    ]
    commands = {
        host.name: [
            "env",
            *common,
            f"RANK={rank}",
            f"GLOO_SOCKET_IFNAME={host.nics[0].interface}",
            *asked.rank_command("gloo"),
        ]
        for rank, host in enumerate(TOPOLOGY.hosts)
    }
    return read_times(outputs_of(lab_of(fabric), commands, asked.timeout_s), asked)


def weft_times(fabric: Fabric, asked: Asked, algorithm: str = "ring") -> Times:
    """Measure an all-reduce by Weft's hosts over RoCEv2. Raises CheckFailedError."""
    found: Times = {}
    for size in asked.sizes:
        inputs = [
            np.random.default_rng(rank).integers(-1000, 1000, size // 4, np.int32)
            for rank in range(TOPOLOGY.rank_count)
        ]
        result = fabric.run(
            CollectiveRequest("allreduce", inputs, algorithm, repetitions=asked.repetitions, warmup=1)
        ).result
        if not result.ok:
            raise CheckFailedError(f"{size} B by {algorithm}: {result.wrong} elements are wrong")
        found[size] = [time_ps / 1e12 for time_ps in result.times_ps]
    return found


def lab_of(fabric: Fabric) -> MininetLab:
    """Return the fabric's lab."""
    assert isinstance(fabric.lab, MininetLab)
    return fabric.lab


def read_times(outputs: Mapping[str, str], asked: Asked) -> Times:
    """Return what rank 0 printed. Raises CheckFailedError if a size is missing, or a result is not NumPy's."""
    output = outputs[HOSTS[0]]
    found = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if [each["size_bytes"] for each in found] != list(asked.sizes):
        raise CheckFailedError(f"no figures of some sizes: {output[-2000:]}")
    for each in found:
        if each["wrong"] or each["ranks"] != len(HOSTS):
            raise CheckFailedError(
                f"{each['size_bytes']} B over {each['ranks']} ranks: {each['wrong']} elements are wrong"
            )
    return {each["size_bytes"]: [real_s / asked.dilation for real_s in each["times_s"]] for each in found}


WAYS: dict[str, Callable[[Fabric, Asked], Times]] = {
    "Open MPI": mpi_times,
    "Gloo": gloo_times,
    "Weft's ring": weft_times,
}


def measured(asked: Asked) -> dict[str, Times]:
    """Bring the lab up and measure each way by itself; what is missing is said and left out."""
    found: dict[str, Times] = {}
    with Fabric(TOPOLOGY, clock="real", dilation=asked.dilation) as fabric:
        for name, way in WAYS.items():
            try:
                found[name] = way(fabric, asked)
            except EnvironmentLacksError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
        lateness = fabric.summary().lateness
    if lateness is not None and not lateness.valid:
        needed = f"{lateness.sufficient_dilation:g}"
        print(f"the machine was too slow for its switches: set --dilation {needed} or more", file=sys.stderr)
    return found


def print_table(found: Mapping[str, Times]) -> None:
    """Print the median time of each size, and how far runs lie apart."""
    print("all-reduce of int32 over 8 hosts, emulated µs: median (least to largest)")
    print(f"{'size':>8}" + "".join(f"{name:>34}" for name in found))
    for size in next(iter(found.values())):
        cells = []
        for times in found.values():
            each_us = [each * 1e6 for each in times[size]]
            cells.append(f"{statistics.median(each_us):,.1f} ({min(each_us):,.1f} to {max(each_us):,.1f})")
        print(f"{format_size(size):>8}" + "".join(f"{cell:>34}" for cell in cells))


def write_table(found: Mapping[str, Times], path: Path) -> None:
    """Write the medians in the columns of a sweep's table, which labs/07-sweep/plot.py draws."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["state", "algorithm", "ranks", "size_bytes", "time_ps"])
        for name, times in found.items():
            for size, each in times.items():
                time_ps = round(statistics.median(each) * 1e12)
                writer.writerow(["finished", name, len(HOSTS), size, time_ps])


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=parse_size_bytes, nargs="+", default=[1024, 16384, 262144, 1 << 20])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--dilation", type=float, default=300.0)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that each program has")
    parser.add_argument("--out", type=Path, help="write a table for labs/07-sweep/plot.py")
    options = parser.parse_args()
    try:
        found = measured(Asked(options.sizes, options.repetitions, options.dilation, options.timeout))
    except WeftError as error:
        raise SystemExit(str(error)) from None
    print_table(found)
    if options.out is not None:
        write_table(found, options.out)


if __name__ == "__main__":
    main()
