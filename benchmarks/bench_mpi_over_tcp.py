"""All-reduces of OpenMPI over the kernel's TCP, beside Weft's ring and switches, in one lab of Mininet.

    sudo .venv/bin/python benchmarks/bench_mpi_over_tcp.py [--sizes 4KiB 64KiB 1MiB] [--repetitions 3] [--dilation 300]
        [--timeout 300] [--json]

Eight hosts at 10 Gb/s on two leaves and a spine, fabric.p4 at each switch. Needs openmpi-bin and python3-mpi4py.
Times are emulated: what OpenMPI measures is real, and divided by the dilation. docs/in-network.md says what the
comparison means and what it does not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from figures import Figure, argument_parser, report

from weft import Fabric, topologies
from weft.clocks.real.lab import MininetLab
from weft.errors import CheckFailedError, EnvironmentLacksError, WeftError
from weft.quantities.readable import format_size
from weft.quantities.units import parse_size_bytes

TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=4, host_rate_bps=10 * 10**9)
ALGORITHMS = ("in-network", "ring")
MPI_PARAMETERS: dict[str, dict[str, str]] = {
    "OpenMPI": {},
    # coll_tuned's number of the ring: `ompi_info --param coll tuned --level 9`.
    "OpenMPI's ring": {"coll_tuned_use_dynamic_rules": "1", "coll_tuned_allreduce_algorithm": "4"},
}
"""Over TCP: what OpenMPI chooses by size, and the algorithm that Weft's hosts run."""
PROGRAM = Path(__file__).with_name("mpi_all_reduce_times.py")
PLANE_NETWORK = "10.0.0.0/16"


def mpirun_command(
    names: Sequence[str], arguments: Sequence[str], further_parameters: Mapping[str, str]
) -> list[str]:
    """Return the command by which a lab's hosts run the program together, over the lab's links alone."""
    parameters = {
        "plm_rsh_agent": f"{sys.executable} -m weft exec",
        "btl": "self,tcp",
        "btl_tcp_if_include": PLANE_NETWORK,
        "oob_tcp_if_include": PLANE_NETWORK,
        # Processes that wait leave the cores to switches and to each other.
        "mpi_yield_when_idle": "1",
        **further_parameters,
    }
    words = ["mpirun", "--allow-run-as-root", "--host", ",".join(names)]
    for name, value in parameters.items():
        words += ["--mca", name, value]
    return [*words, sys.executable, str(PROGRAM), *arguments]


@contextlib.contextmanager
def running(fabric: Fabric, command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Start a command on host h0; whatever ends the block, its processes end with it, also those on other hosts.

    They have a space of process ids of their own, which goes with its first process (pid_namespaces(7)).
    """
    assert isinstance(fabric.lab, MininetLab)
    alone = ["unshare", "--pid", "--fork", "--kill-child=KILL"]
    process = fabric.lab.network.popen(
        "h0", [*alone, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def mpi_times_s(fabric: Fabric, options: argparse.Namespace, parameters: Mapping[str, str]) -> list[float]:
    """Return the emulated time of OpenMPI's all-reduce of each size: the median of its runs.

    Raises CheckFailedError if mpirun fails, does not end in time, or a result is not NumPy's.
    """
    sizes: list[int] = options.sizes
    arguments = [str(each) for size in sizes for each in (size, options.repetitions)]
    names = [host.name for host in TOPOLOGY.hosts]
    with running(fabric, mpirun_command(names, arguments, parameters)) as process:
        try:
            output, errors = process.communicate(timeout=options.timeout)
        except subprocess.TimeoutExpired:
            raise CheckFailedError(f"mpirun has not ended in {options.timeout:g} s") from None
    if process.returncode:
        raise CheckFailedError(f"mpirun: exit code {process.returncode}: {errors.strip()[-2000:]}")
    found = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if [each["size_bytes"] for each in found] != list(sizes):
        raise CheckFailedError(f"mpirun printed no figures of some sizes: {output[-2000:]}")
    for each in found:
        if each["wrong"] or each["ranks"] != len(names):
            raise CheckFailedError(
                f"{each['size_bytes']} B over {each['ranks']} ranks: {each['wrong']} elements are wrong"
            )
    return [statistics.median(each["times_s"]) / options.dilation for each in found]


def weft_time_s(fabric: Fabric, size_bytes: int, algorithm: str, repetitions: int) -> float:
    """Return the emulated time of an all-reduce by Weft's hosts: the median of its runs. Raises CheckFailedError."""
    elements = size_bytes // np.dtype(np.int32).itemsize
    inputs = [
        np.random.default_rng(rank).integers(-1000, 1000, elements, np.int32)
        for rank in range(TOPOLOGY.rank_count)
    ]
    result = fabric.collective("allreduce", inputs, algorithm, repetitions=repetitions, warmup=1).result
    if not result.ok:
        raise CheckFailedError(f"{size_bytes} B by {algorithm}: {result.wrong} elements are wrong")
    return statistics.median(result.times_ps) / 1e12


def measured_figures(options: argparse.Namespace) -> list[Figure]:
    """Bring the lab up and measure all sizes by all ways, each alone."""
    with Fabric(TOPOLOGY, clock="real", dilation=options.dilation) as fabric:
        found = {name: mpi_times_s(fabric, options, more) for name, more in MPI_PARAMETERS.items()}
        for name in ALGORITHMS:
            found[name] = [weft_time_s(fabric, size, name, options.repetitions) for size in options.sizes]
        lateness = fabric.summary().lateness
    first = next(iter(MPI_PARAMETERS))
    figures = [
        Figure(
            f"{format_size(size)}, {name}",
            took_s[place] * 1e6,
            "us",
            first,
            took_s[place] / found[first][place],
        )
        for place, size in enumerate(options.sizes)
        for name, took_s in found.items()
    ]
    if lateness is not None and not lateness.valid:
        print(
            f"the machine was too slow: set --dilation {lateness.sufficient_dilation:g} or more",
            file=sys.stderr,
        )
    return figures


def require_mpi() -> None:
    """Raise EnvironmentLacksError without OpenMPI or mpi4py."""
    if shutil.which("mpirun") is None:
        raise EnvironmentLacksError("mpirun is missing (the package openmpi-bin)")
    if find_spec("mpi4py") is None:
        raise EnvironmentLacksError("mpi4py is missing (the package python3-mpi4py)")


def main() -> None:
    """Measure and print."""
    parser = argument_parser(__doc__)
    parser.add_argument("--sizes", type=parse_size_bytes, nargs="+", default=[4096, 65536, 1 << 20])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--dilation", type=float, default=300.0)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that mpirun has")
    options = parser.parse_args()
    try:
        require_mpi()
        figures = measured_figures(options)
    except WeftError as error:
        raise SystemExit(str(error)) from None
    report("all-reduce of 8 hosts in Mininet, emulated time", figures, as_json=options.json)


if __name__ == "__main__":
    main()
