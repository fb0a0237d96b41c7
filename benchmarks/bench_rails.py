"""Rails against a plain Clos: all-reduce, all-to-all and dispatch to experts on GPUs of 8 a host, in virtual time.

    .venv/bin/python benchmarks/bench_rails.py [--gpus 256] [--fabrics NAME…] [--patterns NAME…] [--path NAME]
        [--picture FILE.svg] [--json]

Leaves of 32 GPUs at 100 Gb/s and 16 uplinks of 200 Gb/s, links of 1 µs, fabric.p4 at every switch; inside a host
3.6 Tb/s a GPU. The same leaves and spines are wired in two ways, and a third fabric has none:

- clos: the eight GPUs of a host are on one leaf, which has four hosts.
- rail-optimised: GPU i of each of 32 hosts is on leaf i of their block; all leaves meet at the spines.
- rail-only: a switch for each rail, with a port for every host, and no spines. GPUs of different rails meet inside
  hosts alone: `direct` messages between them are sent on by a GPU of the sender's host (`scale_up: {relay: …}`).

Lengths in place of data, 4,096 bytes a packet, Swift, selective repeat; `--path spray` (the default) spreads packets
over all uplinks, so that no choice of paths favours a fabric, `--path flow` leaves each queue pair to ECMP's hash.
Times are emulated, so the machine does not matter. Bytes through the spines are what their ports have sent, with
headers and acknowledgements.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from bar_chart import Bar, bar_chart
from rich.console import Console
from rich.table import Table

from weft import Fabric
from weft.recording.observations import ports_table
from weft.run.collectives import CollectiveRequest
from weft.scenario import TransportSection
from weft.topologies import FabricSpec, leaf_spine
from weft.topologies.kinds.rail_only import rail_only
from weft.topologies.metrics import fabric_metrics
from weft.topologies.scale_up import with_scale_up

GPUS_PER_HOST = 8
GPUS_PER_LEAF = 32
SPINES = 16
RATE_BPS = 100e9
QUEUE_CAPACITY_BYTES = 4 << 20
PATIENCE_S = 10.0
"""Of emulated time."""
FABRICS: dict[str, Callable[[int], FabricSpec]] = {}


@dataclass(frozen=True)
class Pattern:
    """A collective, its size for each number of GPUs, and the algorithms that are compared."""

    name: str
    collective: str
    size_bytes: int
    algorithms: tuple[str, ...]


PATTERNS = (
    Pattern("all-reduce", "allreduce", 8 << 20, ("ring", "hierarchical", "hierarchical-in-network")),
    Pattern("all-to-all", "alltoall", 1 << 20, ("direct", "hierarchical")),
    Pattern("MoE dispatch", "moe_dispatch", 16 * 32 * 7168, ("direct", "hierarchical")),
)


@dataclass(frozen=True)
class Cost:
    """What a fabric is made of, as `weft topology show` counts it."""

    fabric: str
    gpus: int
    switches: int
    ports: int
    cables_to_hosts: int
    cables_between_switches: int


@dataclass(frozen=True)
class Outcome:
    """A collective on a fabric."""

    pattern: str
    algorithm: str
    fabric: str
    gpus: int
    time_us: float
    bytes_through_spines: int
    packets_sent_again: int


def _fabric(name: str) -> Callable[[Callable[[int], FabricSpec]], Callable[[int], FabricSpec]]:
    def enter(build: Callable[[int], FabricSpec]) -> Callable[[int], FabricSpec]:
        FABRICS[name] = build
        return build

    return enter


def _two_tiers(gpus: int) -> FabricSpec:
    return leaf_spine(
        planes=1,
        leaves=gpus // GPUS_PER_LEAF,
        spines=SPINES,
        hosts_per_leaf=GPUS_PER_LEAF,
        host_rate_bps=RATE_BPS,
        oversubscription=1.0,
        queue_capacity_bytes=QUEUE_CAPACITY_BYTES,
    )


@_fabric("clos")
def clos(gpus: int) -> FabricSpec:
    """Hosts side by side on leaves."""
    return with_scale_up(_two_tiers(gpus), GPUS_PER_HOST)


@_fabric("rail-optimised")
def rail_optimised(gpus: int) -> FabricSpec:
    """The GPUs of a host on eight leaves."""
    return with_scale_up(_two_tiers(gpus), GPUS_PER_HOST, rail_optimised=True)


@_fabric("rail-only")
def rails_alone(gpus: int) -> FabricSpec:
    """A switch a rail."""
    rails = rail_only(
        rails=GPUS_PER_HOST,
        hosts_per_leaf=gpus // GPUS_PER_HOST,
        host_rate_bps=RATE_BPS,
        queue_capacity_bytes=QUEUE_CAPACITY_BYTES,
    )
    return with_scale_up(rails, GPUS_PER_HOST, rail_optimised=True)


def cost(name: str, gpus: int) -> Cost:
    """Count switches, ports and cables."""
    metrics = fabric_metrics(FABRICS[name](gpus))
    (plane,) = metrics.planes
    return Cost(name, gpus, metrics.switches, plane.ports, plane.host_cables, plane.switch_cables)


def bytes_through_spines(fabric: Fabric) -> int:
    """What the spines have sent so far."""
    ports = ports_table(fabric.topology, fabric.lab.switch_stats(), fabric.hosts.stats())
    spines = tuple(f"{switch.name}:" for switch in fabric.topology.switches if switch.role == "spine")
    names = ports["port"].texts()
    rows = [row for row, name in enumerate(names) if name.startswith(spines)] if spines else []
    return int(ports["transmitted_bytes"][rows].sum())


def run(name: str, gpus: int, pattern: Pattern, algorithm: str, path: Literal["spray", "flow"] = "spray") -> Outcome:
    """One collective on a fabric of its own."""
    with Fabric(
        FABRICS[name](gpus),
        clock="virtual",
        seed=1,
        mtu_bytes=4096,
        int_telemetry=False,
        transport=TransportSection(
            congestion_control="swift", retransmission="selective-repeat", path=path, ack_interval=4
        ),
    ) as fabric:
        found = fabric.run(
            CollectiveRequest(pattern.collective, pattern.size_bytes, algorithm), timeout_s=PATIENCE_S
        ).result
        return Outcome(
            pattern.name,
            algorithm,
            name,
            gpus,
            found.time_ps / 1e6,
            bytes_through_spines(fabric),
            found.retransmissions,
        )


def outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    """All rows."""
    for pattern in PATTERNS:
        if pattern.collective not in options.patterns:
            continue
        for algorithm in pattern.algorithms:
            for name in options.fabrics:
                yield run(name, options.gpus, pattern, algorithm, options.path)


def show(costs: list[Cost], found: list[Outcome]) -> None:
    """Print both tables."""
    for title, rows in (("What it is made of", costs), ("What it does", found)):
        table = Table(title=title, title_justify="left")
        for name, value in asdict(rows[0]).items():
            table.add_column(name.replace("_", " "), justify="left" if isinstance(value, str) else "right")
        for row in rows:
            table.add_row(
                *(f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
                  for value in asdict(row).values())
            )  # fmt: skip
        Console(width=120).print(table)


def picture(found: list[Outcome]) -> str:
    """Draw the times, a group of bars for each pattern and algorithm."""
    return bar_chart(
        f"Completion time on {found[0].gpus:,} GPUs, µs",
        [Bar(f"{each.pattern}, {each.algorithm}", each.fabric, each.time_us) for each in found],
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=256, help="a multiple of 256")
    parser.add_argument("--fabrics", nargs="+", choices=FABRICS, default=list(FABRICS))
    names = [pattern.collective for pattern in PATTERNS]
    parser.add_argument("--patterns", nargs="+", choices=names, default=names)
    parser.add_argument("--path", choices=["spray", "flow"], default="spray")
    parser.add_argument("--picture", type=Path, help="draw the times into an SVG file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if options.gpus < 256 or options.gpus % 256:
        parser.error(f"--gpus {options.gpus} (valid: multiples of 256, a block of 32 hosts)")
    costs = [cost(name, options.gpus) for name in options.fabrics]
    found = []
    for outcome in outcomes(options):
        found.append(outcome)
        print(f"{outcome}", file=sys.stderr, flush=True)
    if options.picture is not None:
        options.picture.write_text(picture(found))
    if options.json:
        rows = {"costs": [asdict(each) for each in costs], "outcomes": [asdict(each) for each in found]}
        print(json.dumps(rows, indent=1))
        return
    show(costs, found)


if __name__ == "__main__":
    main()
