"""Scale-up domains as packet networks: all-reduces by their switches, contention, a lost link, bit errors.

    .venv/bin/python benchmarks/bench_scale_up.py [sizes] [contention] [lost-link] [bit-errors] [hosts]
        [--systems NAME…] [--sizes BYTES…] [--size BYTES] [--algorithms NAME…] [--accelerators N]
        [--hosts N…] [--host-algorithms NAME…] [--picture FILE.svg] [--json]

fabric.p4 at every switch, links of 100 ns, switches of 200 ns, packets of 1,024 bytes of data (256 lanes), credits of
64 KiB a port and link-level retry on all links, selective repeat. Sums of int32. Hosts' algorithms send lengths.

- sizes: all-reduces on each of the systems, with all its accelerators.
- contention: an all-to-all, and an incast of all others to one accelerator, in one plane.
- lost-link: all-reduces by the switches, one after the other; one link of an accelerator fails during the first.
- bit-errors: all-reduces by the switches over links with bit errors, with link-level retry and without.
- hosts: all-reduces on hosts of eight ranks, joined inside as a DGX H100, with a NIC of 400 Gb/s each, packets of
  4,096 bytes, and a leaf for each rail, of which all hosts have a port.

All but `sizes` and `hosts` have as many accelerators as `--accelerators` says, with the links of the NVL72. Times are
emulated, so the machine does not matter.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from curves import Panel, powers, svg_of
from rich.console import Console
from rich.table import Table

from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario.parsing import parse_scenario
from weft.topologies.scale_up_systems import SYSTEMS

SIZES = (1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20)
ALGORITHMS = ("nvls", "ring", "tree")
PARTS = ("sizes", "contention", "lost-link", "bit-errors", "hosts")
RANKS_PER_HOST = 8
HOSTS = (1, 2, 4, 16)
HOST_ALGORITHMS = ("nvls", "nvls-tree", "nvls-in-network", "hierarchical", "hierarchical-in-network", "ring", "tree")
OF_SEVERAL_HOSTS = ("nvls-tree", "nvls-in-network", "hierarchical-in-network")
LINKS = "nvl72"
"""The system with the links of all parts but `sizes`."""
LOST_LINK_AT_US = 2
BIT_ERROR_RATES = (0.0, 1e-8, 1e-7, 1e-6)
DOTS_KIB = (10, 26)
"""Exponents of 2 between which the picture's sizes lie."""


@dataclass(frozen=True)
class Row:
    """One measured collective or flow pattern."""

    part: str
    system: str
    accelerators: int
    name: str
    size_bytes: int
    time_us: float
    busbw_gbytes_per_s: float
    wrong: int
    note: str = ""


def tree(fabric: Mapping[str, Any], traffic: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return a scenario of a scale-up domain with the settings that all parts share."""
    return {
        "name": "scale-up",
        "clock": "virtual",
        "mtu": 1024,
        "int": False,
        "fabric": {"kind": "scale_up", **fabric},
        "switching": {"latency": "200ns"},
        "credits": {"classes": [3], "buffer": "64KiB"},
        "link_retry": {"links": ["*<->*"]},
        "transport": {"retransmission": "selective-repeat"},
        "traffic": traffic,
        **more,
    }


def run(scenario: Mapping[str, Any]) -> RunResult:
    """Run a scenario; RuntimeError if it lost a packet or gave a wrong result."""
    result = run_scenario(parse_scenario(dict(scenario)))
    if not result.ok:
        raise RuntimeError(f"{result.failures or result.drops}: the run failed")
    return result


def all_reduce(algorithm: str, size_bytes: int, **more: Any) -> dict[str, Any]:
    """Return the item of an all-reduce."""
    return {"collective": "allreduce", "algorithms": [algorithm], "dtype": "int32", "sizes": [size_bytes], **more}


def rows_of(part: str, system: str, accelerators: int, result: RunResult, note: str = "") -> Iterator[Row]:
    """Yield a row for each collective of a run."""
    for each in result.collectives:
        yield Row(
            part,
            system,
            accelerators,
            each.algorithm if each.collective == "allreduce" else each.collective,
            each.size_bytes,
            each.time_ps / 1e6,
            each.busbw_bytes_per_s / 1e9,
            each.wrong,
            note,
        )


def sizes(arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield all-reduces by size, algorithm and system."""
    for system in arguments.systems:
        items = [
            all_reduce(algorithm, size, **({} if algorithm == "nvls" else {"data": "lengths"}))
            for algorithm in arguments.algorithms
            for size in arguments.sizes
        ]
        yield from rows_of("sizes", system, SYSTEMS[system].accelerators, run(tree({"system": system}, items)))


def contention(arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield an all-to-all and an incast, with what waited for credits."""
    count = arguments.accelerators
    fabric = {"system": LINKS, "accelerators": count}
    everybody = {"collective": "alltoall", "algorithms": ["direct"], "sizes": [arguments.size], "data": "lengths"}
    to_one = {"incast": "h0", "bytes_per_sender": arguments.size // 8}
    for name, item in (("alltoall", everybody), ("incast", to_one)):
        result = run(tree(fabric, [item]))
        stalls = sum(each.stalls for each in result.credits)
        note = f"{stalls} stalls, {sum(each.stalled_ps for each in result.credits) / 1e6:.1f} µs in all; "
        note += f"{sum(result.drops.values())} drops"
        yield from rows_of("contention", LINKS, count, result, note)
        for each in result.flows:
            rate = each.bytes_delivered / each.time_ps * 1e3
            yield Row("contention", LINKS, count, name, each.bytes_delivered, each.time_ps / 1e6, rate, 0, note)


def lost_link(arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield repetitions of an all-reduce; the last link of h0 fails during the first."""
    count = arguments.accelerators
    plane = SYSTEMS[LINKS].switches - 1
    items = [all_reduce("nvls", arguments.size, repetitions=3)]
    events = [{"link": f"h0<->p{plane}l0", "state": "down", "at": f"{LOST_LINK_AT_US}us"}]
    fabric = {"system": LINKS, "accelerators": count}
    for note, more in (
        ("all links", {}),
        ("one link lost", {"events": events, "control": {"detection": "1us", "latency": "5us"}}),
    ):
        for each in run(tree(fabric, items, **more)).collectives:
            for number, time_ps in enumerate(each.times_ps):
                bandwidth = each.size_bytes / time_ps * 1e3 * 2 * (count - 1) / count
                row = ("lost-link", LINKS, count, each.algorithm, each.size_bytes, time_ps / 1e6, bandwidth, each.wrong)
                yield Row(*row, note=f"{note}, {number + 1}")


def bit_errors(arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield an all-reduce for each rate of bit errors, with link-level retry and without."""
    count = arguments.accelerators
    fabric = {"system": LINKS, "accelerators": count}
    for rate in arguments.rates:
        for retry in (True, False):
            if not rate and not retry:
                continue
            scenario = tree(fabric, [all_reduce("nvls", arguments.size)], faults={"bit_error_rate": rate})
            if not retry:
                del scenario["link_retry"]
            result = run(scenario)
            lost = sum(each.lost_packets for each in result.link_retries)
            note = f"rate {rate:g}, " + (f"retry: {lost} frames lost on links" if retry else "no retry")
            note += f", {result.retransmissions} repeated by accelerators"
            yield from rows_of("bit-errors", LINKS, count, result, note)


def hosts(arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield all-reduces by number of hosts, algorithm and size."""
    for count in arguments.hosts:
        fabric = {
            "planes": 1,
            "leaves": RANKS_PER_HOST,
            "spines": 1,
            "hosts_per_leaf": count,
            "host_rate": "400Gb/s",
            "ranks_per_host": RANKS_PER_HOST,
            "rail_optimised": True,
            "scale_up": {"system": "dgx-h100"},
        }
        for name in arguments.host_algorithms:
            if count == 1 and name in OF_SEVERAL_HOSTS:
                continue
            items = [
                {"collective": "allreduce", "algorithms": [name], "sizes": [size], "dtype": "int32", "data": "lengths"}
                for size in arguments.sizes
            ]
            result = run(
                {
                    "name": "hosts",
                    "clock": "virtual",
                    "mtu": 4096,
                    "int": False,
                    "fabric": fabric,
                    "aggregation": {"lanes": 1024},
                    "traffic": items,
                }
            )
            yield from rows_of("hosts", f"{count} hosts", count * RANKS_PER_HOST, result)


_PART_OF = {
    "sizes": sizes,
    "contention": contention,
    "lost-link": lost_link,
    "bit-errors": bit_errors,
    "hosts": hosts,
}


def picture(rows: list[Row]) -> str:
    """Return bus bandwidths by size, a panel for each system."""
    panels = []
    for system in dict.fromkeys(row.system for row in rows if row.part == "sizes"):
        own = [row for row in rows if row.part == "sizes" and row.system == system]
        curves = {
            name: [(float(row.size_bytes), row.busbw_gbytes_per_s) for row in own if row.name == name]
            for name in dict.fromkeys(row.name for row in own)
        }
        most = max(row.busbw_gbytes_per_s for row in own)
        title = f"{system}: {own[0].accelerators} accelerators"
        panels.append(Panel(title, "size (B)", "bus bandwidth (GB/s)", powers(*DOTS_KIB, 2), most * 1.1, curves))
    return svg_of(panels)


def table(rows: list[Row]) -> Table:
    """Return the rows as a table."""
    found = Table("part", "system", "accelerators", "what", "size (B)", "time (µs)", "busbw (GB/s)", "#wrong", "note")
    for row in rows:
        found.add_row(
            row.part,
            row.system,
            str(row.accelerators),
            row.name,
            f"{row.size_bytes:,}",
            f"{row.time_us:.2f}",
            f"{row.busbw_gbytes_per_s:.1f}",
            str(row.wrong),
            row.note,
        )
    return found


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    found.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=["dgx-h100", "nvl72"])
    found.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="of part sizes, in bytes")
    found.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS))
    found.add_argument("--size", type=int, default=4 << 20, help="of the other parts, in bytes")
    found.add_argument("--accelerators", type=int, default=8)
    found.add_argument("--hosts", nargs="+", type=int, default=list(HOSTS))
    found.add_argument("--host-algorithms", nargs="+", choices=HOST_ALGORITHMS, default=list(HOST_ALGORITHMS))
    found.add_argument("--rates", nargs="+", type=float, default=list(BIT_ERROR_RATES), help="of bit errors")
    found.add_argument("--picture", type=Path)
    found.add_argument("--json", action="store_true")
    return found


def main() -> int:
    """Run the parts that the command line names, all by default."""
    arguments = parser().parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser().error(f"no part {min(unknown)}; valid: {', '.join(PARTS)}")
    rows = [row for part in arguments.parts or PARTS for row in _PART_OF[part](arguments)]
    if arguments.picture:
        arguments.picture.write_text(picture(rows), encoding="utf-8")
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        Console(width=180).print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
