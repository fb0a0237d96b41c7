"""All-reduces of OpenMPI over the kernel's TCP, beside Weft's ring and switches, in one lab of Mininet.

    sudo .venv/bin/python benchmarks/bench_mpi_over_tcp.py [--sizes 4KiB 64KiB 1MiB] [--repetitions 3] [--dilation 300]
        [--timeout 300] [--json]

Eight hosts at 10 Gb/s on two leaves and a spine, fabric.p4 at each switch: the lab and the programs of lab 22. Needs
openmpi-bin and python3-mpi4py. Times are emulated: what OpenMPI measures is real, and divided by the dilation.
docs/in-network.md says what the comparison means and what it does not.
"""

from __future__ import annotations

import argparse
import statistics
import sys

from figures import Figure, argument_parser, report

from weft import Fabric
from weft.errors import WeftError
from weft.paths import LABS_DIRECTORY
from weft.quantities.readable import format_size
from weft.quantities.units import parse_size_bytes

sys.path.insert(0, str(LABS_DIRECTORY / "22-communication-analysis"))
from real_programs import TOPOLOGY, Asked, Times, mpi_times, weft_times

ALGORITHMS = ("in-network", "ring")
MPI_PARAMETERS: dict[str, dict[str, str]] = {
    "OpenMPI": {},
    # coll_tuned's number of the ring: `ompi_info --param coll tuned --level 9`.
    "OpenMPI's ring": {"coll_tuned_use_dynamic_rules": "1", "coll_tuned_allreduce_algorithm": "4"},
}
"""Over TCP: what OpenMPI chooses by size, and the algorithm that Weft's hosts run."""


def measured_figures(options: argparse.Namespace) -> list[Figure]:
    """Bring the lab up and measure all sizes by all ways, each alone."""
    asked = Asked(options.sizes, options.repetitions, options.dilation, options.timeout)
    found: dict[str, Times] = {}
    with Fabric(TOPOLOGY, clock="real", dilation=options.dilation) as fabric:
        for name, parameters in MPI_PARAMETERS.items():
            found[name] = mpi_times(fabric, asked, parameters)
        for name in ALGORITHMS:
            found[name] = weft_times(fabric, asked, name)
        lateness = fabric.summary().lateness
    first = next(iter(MPI_PARAMETERS))
    medians_s = {name: {size: statistics.median(each) for size, each in times.items()} for name, times in found.items()}
    figures = [
        Figure(
            f"{format_size(size)}, {name}",
            took_s[size] * 1e6,
            "us",
            first,
            took_s[size] / medians_s[first][size],
        )
        for size in options.sizes
        for name, took_s in medians_s.items()
    ]
    if lateness is not None and not lateness.valid:
        print(
            f"the machine was too slow: set --dilation {lateness.sufficient_dilation:g} or more",
            file=sys.stderr,
        )
    return figures


def main() -> None:
    """Measure and print."""
    parser = argument_parser(__doc__)
    parser.add_argument("--sizes", type=parse_size_bytes, nargs="+", default=[4096, 65536, 1 << 20])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--dilation", type=float, default=300.0)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that mpirun has")
    options = parser.parse_args()
    try:
        figures = measured_figures(options)
    except WeftError as error:
        raise SystemExit(str(error)) from None
    report("all-reduce of 8 hosts in Mininet, emulated time", figures, as_json=options.json)


if __name__ == "__main__":
    main()
