"""Fabrics of up to 16,384 endpoints in virtual time: what building, programming and running them takes.

    .venv/bin/python benchmarks/bench_scale.py [--sizes NAME…] [--fabric YAML [--routing KIND]] [--workers N]
        [--bytes N] [--setup-only] [--json] [--realtime]

Each size is a process of its own, so that its peak of memory is its own. The fabric is built and programmed by the
controller over P4Runtime as `weft run` does it, fabric.p4 at each switch, ECN and INT on; then every NIC writes to
another host's on its plane (1 MiB, MTU 4,096 B, a window of one bandwidth-delay product, payloads as lengths). Times
are of the wall clock, and of the processor where it says so; a packet-hop is one packet through one switch.
`--sizes 1024` has three tiers: 16 pods of 8 leaves and 8 spines, 64 cores. `--fabric '{k: 32}'` is any fabric that a
scenario can have, in place of `--sizes`. `--setup-only` leaves the traffic out.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass

import yaml
from figures import Figure, argument_parser, report
from scheduling import measured_apart

from weft import topologies
from weft.run.fabric import Fabric
from weft.scenario import RoutingSection
from weft.topologies.kinds import kind_of_section

RATE_BPS = 400e9
DELAY_PS = 500_000
MTU_BYTES = 4096
QUEUE_CAPACITY_BYTES = 4 << 20
GIB = 1 << 30
DEFAULTS = {
    "planes": 1,
    "host_rate": int(RATE_BPS),
    "delay": DELAY_PS,
    "queue_capacity": QUEUE_CAPACITY_BYTES,
}
"""Of `--fabric`."""


@dataclass(frozen=True)
class Size:
    """A fabric: every leaf has as many hosts as spines."""

    planes: int
    leaves: int
    spines: int

    @property
    def endpoints(self) -> int:
        """NICs of all hosts."""
        return self.planes * self.leaves * self.spines

    @property
    def switches(self) -> int:
        """Leaves and spines of all planes."""
        return self.planes * (self.leaves + self.spines)

    def build(self) -> topologies.FabricSpec:
        """Return the fabric."""
        return topologies.leaf_spine(
            planes=self.planes,
            leaves=self.leaves,
            spines=self.spines,
            hosts_per_leaf=self.spines,
            host_rate_bps=RATE_BPS,
            delay_ps=DELAY_PS,
            queue_capacity_bytes=QUEUE_CAPACITY_BYTES,
        )


@dataclass(frozen=True)
class ThreeTiers:
    """A three-tier fabric: `half` leaves and spines a pod, hosts a leaf and cores a spine."""

    pods: int
    half: int

    @property
    def endpoints(self) -> int:
        """NICs of all hosts."""
        return self.pods * self.half**2

    @property
    def switches(self) -> int:
        """Leaves, spines and cores."""
        return self.pods * 2 * self.half + self.half**2

    def build(self) -> topologies.FabricSpec:
        """Return the fabric."""
        return topologies.fat_tree(
            pods=self.pods,
            leaves_per_pod=self.half,
            spines_per_pod=self.half,
            cores_per_spine=self.half,
            hosts_per_leaf=self.half,
            host_rate_bps=RATE_BPS,
            delay_ps=DELAY_PS,
            queue_capacity_bytes=QUEUE_CAPACITY_BYTES,
        )


@dataclass(frozen=True)
class Described:
    """A fabric as a scenario describes it: the text of its section `fabric`, and its kind of routing."""

    text: str
    routing: str

    @property
    def endpoints(self) -> int:
        """NICs of all hosts."""
        fabric = self._network()
        return len(fabric.hosts) * fabric.nics_per_host

    @property
    def switches(self) -> int:
        """All of them."""
        return len(self._network().switches)

    def build(self) -> topologies.FabricSpec:
        """Return the fabric."""
        return self._network()

    def _network(self) -> topologies.FabricSpec:
        keys = {**DEFAULTS, **yaml.safe_load(self.text)}
        return kind_of_section(keys).section.model_validate(keys).build()


AnySize = Size | ThreeTiers | Described
SIZES: dict[str, AnySize] = {
    "128": Size(1, 16, 8),
    "512": Size(1, 32, 16),
    "1024": ThreeTiers(16, 8),
    "2048": Size(1, 64, 32),
    "16384": Size(8, 64, 32),
}
GOALS = {
    "1024": {"built and programmed": 3.0},
    "16384": {"built and programmed": 20.0, "permutation": 90.0, "peak memory": 8.0},
}
GOALS_OF_DESCRIBED = {"built and programmed": 25.0, "peak memory": 8.0}


def measure(size: AnySize, workers: int, size_bytes: int) -> dict[str, float]:
    """Seconds of each phase, bytes at most resident, packet-hops."""
    began, began_cpu = time.monotonic(), time.process_time()
    phases: dict[str, float] = {}
    last = began

    def lap(name: str) -> None:
        nonlocal last
        now = time.monotonic()
        phases[name] = phases.get(name, 0.0) + now - last
        last = now

    topology = size.build()
    lap("topology")
    # The phases, in order; each ends when the fabric reports the next one.
    steps = iter(
        (
            "preparing",
            "compiling",
            "building switches",
            "programming",
            "starting hosts",
            "connecting",
            "running",
        )
    )
    current = next(steps)

    def progress(_text: str) -> None:
        nonlocal current
        lap(current)
        current = next(steps, "reading counters")

    routing = RoutingSection(kind=size.routing) if isinstance(size, Described) else RoutingSection()
    with Fabric(
        topology, clock="virtual", mtu_bytes=MTU_BYTES, routing=routing, workers=workers, progress=progress
    ) as fabric:
        lap("starting hosts")
        up = time.monotonic()
        set_up = {
            **{f"phase {name}": seconds for name, seconds in phases.items()},
            "built and programmed": up - began,
            "built and programmed, processor time": time.process_time() - began_cpu,
        }
        if not size_bytes:
            return {
                **set_up,
                "peak memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB,
            }
        flows = fabric.permutation(size_bytes, data="lengths")
        done = time.monotonic()
        summary = fabric.summary()
        summed = time.monotonic()
        switches = fabric.lab.switch_stats()
        assert switches is not None
        hops = sum(switch["received_packets"] for switch in switches["switches"].values())
    if flows.bytes_delivered != size.endpoints * size_bytes:
        raise RuntimeError(f"{flows.bytes_delivered} bytes of {size.endpoints * size_bytes} arrived")
    return {
        **set_up,
        "permutation": done - up,
        "summary": summed - done,
        "hops": hops,
        "emulated_us": flows.time_ps / 1e6,
        "retransmissions": summary.retransmissions,
        "peak memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB,
    }


def figures_of(name: str, size: AnySize, found: dict[str, float]) -> list[Figure]:
    """The figures of one size; the largest has goals."""
    goals = GOALS_OF_DESCRIBED if isinstance(size, Described) else GOALS.get(name, {})

    def figure(key: str, unit: str) -> Figure:
        return Figure(f"  {key}", found[key], unit, goal=goals.get(key), at_most=True)

    set_up = [
        Figure(f"{size.endpoints} endpoints, {size.switches} switches", size.endpoints, "endpoints"),
        *(Figure(f"    {key[6:]}", value, "s") for key, value in found.items() if key.startswith("phase ")),
        figure("built and programmed", "s"),
        figure("built and programmed, processor time", "s"),
    ]
    if "permutation" not in found:
        return [*set_up, figure("peak memory", "GiB")]
    return [
        *set_up,
        figure("permutation", "s"),
        Figure("    in emulated time", found["emulated_us"], "us"),
        Figure("    packets sent again", found["retransmissions"], "packets"),
        Figure("    packet-hops", found["hops"], "hops"),
        Figure("    rate, set-up of connections included", found["hops"] / found["permutation"], "hops/s"),
        Figure("  all counters read", found["summary"], "s"),
        figure("peak memory", "GiB"),
    ]


def main() -> None:
    """Print the figures."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES), help="endpoints")
    parser.add_argument("--fabric", help="a scenario's section in place of --sizes")
    parser.add_argument("--routing", default="shortest_paths", help="of --fabric")
    parser.add_argument("--workers", type=int, default=2, help="threads that serve the fabric")
    parser.add_argument("--bytes", type=int, default=1 << 20, help="of each flow")
    parser.add_argument("--setup-only", action="store_true", help="no traffic")
    options = parser.parse_args()
    figures: list[Figure] = []
    sizes = {name: SIZES[name] for name in options.sizes}
    if options.fabric:
        sizes = {options.fabric: Described(options.fabric, options.routing)}
    size_bytes = 0 if options.setup_only else options.bytes
    for name, size in sizes.items():
        found = measured_apart(measure, size, options.workers, size_bytes, realtime=options.realtime)
        figures += figures_of(name, size, found)
    report("fabrics in virtual time, by size", figures, as_json=options.json)


if __name__ == "__main__":
    main()
