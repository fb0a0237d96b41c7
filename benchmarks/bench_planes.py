"""A plane that is lost in the middle of an all-reduce, and given back, in virtual time.

    .venv/bin/python benchmarks/bench_planes.py [--planes N] [--leaves N] [--hosts-per-leaf N] [--mib N]
        [--picture FILE.svg] [--json]

Eight planes of four leaves and four spines, 32 hosts with a NIC of 100 Gb/s in each, links of 1 µs, fabric.p4 at every
switch. Every host all-reduces int32 by rings, verified against NumPy, four times: with all planes; while all links of
one plane fail, halfway; without that plane; and when it is back. Switches see a failure after 1 µs, and a request of
the controller's and its answer take 5 µs. Swift, selective repeat, packets sprayed over the paths of a plane.

Bandwidth is what the hosts' ports send, sampled every 10 µs: its mean from the time that the runner knows of the loss,
and a round trip more, to where the all-reduce has done nine tenths, over that of the same all-reduce undisturbed.
Times are emulated, so the machine does not matter.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from line_chart import line_chart
from rich.console import Console
from rich.table import Table

from weft import Fabric
from weft.results.run_result import RunResult
from weft.run.collectives import CollectiveRequest
from weft.scenario import ControlSection, EventSection, ObserveSection, TransportSection
from weft.topologies import FabricSpec, leaf_spine

US = 10**6
SAMPLE_PS = 10 * US
RATE_BPS = 100e9
LOST_PLANE = 1
RUNS = ("all planes", "one lost halfway", "without it", "given back")
ROUND_TRIP_PS = 20 * US


@dataclass(frozen=True)
class Row:
    """One of the all-reduces."""

    all_reduce: str
    time_us: float
    busbw_gbps: float
    wrong: int
    over_undisturbed: float


@dataclass(frozen=True)
class Outcome:
    """What was found."""

    planes: int
    hosts: int
    rows: list[Row]
    known_after_us: float
    bandwidth_after: float
    beyond_ideal_us: float
    packets_lost: int
    lost_us: float
    times_us: list[float]
    gbps: list[float]


def topology(options: argparse.Namespace) -> FabricSpec:
    """The fabric."""
    return leaf_spine(
        planes=options.planes,
        leaves=options.leaves,
        spines=options.leaves,
        hosts_per_leaf=options.hosts_per_leaf,
        host_rate_bps=RATE_BPS,
        queue_capacity_bytes=4 << 20,
    )


def run(options: argparse.Namespace, events: list[EventSection], runs: int) -> tuple[RunResult, int]:
    """All-reduce so often; returns the results, and the time from which events count."""
    fabric_spec = topology(options)
    generator = np.random.default_rng(1)
    elements = options.mib * 2**20 // 4
    inputs = [generator.integers(-1000, 1000, elements).astype(np.int32) for _ in fabric_spec.hosts]
    with Fabric(
        fabric_spec,
        clock="virtual",
        seed=1,
        mtu_bytes=4096,
        int_telemetry=False,
        control=ControlSection(latency=5 * US, detection=US),
        events=events,
        observe=ObserveSection(
            queues=[f"{host.name}:{nic.number}" for host in fabric_spec.hosts for nic in host.nics],
            interval=SAMPLE_PS,
        ),
        transport=TransportSection(
            congestion_control="swift", retransmission="selective-repeat", path="spray", ack_interval=4
        ),
    ) as fabric:
        up_ps = fabric.hosts.now_ps()
        for _ in range(runs):
            fabric.run(CollectiveRequest("allreduce", inputs, "ring"))
        return fabric.summary(), up_ps


def throughput(result: RunResult) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return times in picoseconds, and what all hosts' ports have sent in the sample before, in bits per second."""
    table = result.observations.tables["queues"]
    sampled_ps = np.asarray(table["time_ps"])
    classes = np.asarray(table["priority_class"])
    queues = np.asarray([f"{port} {number}" for port, number in zip(table["port"].texts(), classes, strict=True)])
    sent_bytes = np.asarray(table["transmitted_bytes"])
    times = np.unique(sampled_ps)
    total = np.zeros(len(times))
    for queue in np.unique(queues):
        own = queues == queue
        # A queue that sends nothing has no sample.
        latest = np.searchsorted(sampled_ps[own], times, side="right") - 1
        total += np.where(latest >= 0, sent_bytes[own][latest], 0)
    return times, np.diff(total, prepend=0.0) * 8 / (SAMPLE_PS / 1e12)


def mean_rate(result: RunResult, begin_ps: float, end_ps: float) -> float:
    """Return the mean throughput between two times."""
    times, rates = throughput(result)
    return float(rates[(times > begin_ps) & (times <= end_ps)].mean())


def measure(options: argparse.Namespace) -> Outcome:
    """Run all and compare."""
    whole, up_ps = run(options, [], 2)
    _, undisturbed = whole.phases
    half_ps = (undisturbed.end_ps - undisturbed.start_ps) // 2
    # The second all-reduce begins as it did here.
    down = EventSection(plane=LOST_PLANE, state="down", at=undisturbed.start_ps + half_ps - up_ps)
    third = run(options, [down], 3)[0].phases[2]
    # In the fourth, so that the fifth begins with all planes.
    up = EventSection(plane=LOST_PLANE, state="up", at=third.end_ps + half_ps - up_ps)
    return outcome(options, whole, *run(options, [down, up], 5))


def outcome(options: argparse.Namespace, whole: RunResult, result: RunResult, up_ps: int) -> Outcome:
    """Return what is found in two fabrics' all-reduces, of which one was undisturbed; the other was up at `up_ps`."""
    undisturbed, disturbed = whole.phases[1], result.phases[1]
    assert undisturbed.start_ps == disturbed.start_ps
    rows = [
        Row(
            name,
            found.time_ps / 1e6,
            found.busbw_bytes_per_s * 8 / 1e9,
            found.wrong,
            found.time_ps / whole.collectives[1].time_ps,
        )
        for name, found in zip(RUNS, [*result.collectives[:3], result.collectives[4]], strict=True)
    ]
    failures = [event for event in result.link_events if event.state == "down"]
    began_ps = min(event.happened_ps for event in failures if event.happened_ps is not None)
    (known_ps,) = [event.time_ps + up_ps for event in result.controller_events if event.kind == "plane lost"]
    left_ps = (undisturbed.end_ps - began_ps) * options.planes / (options.planes - 1)
    nine_tenths_ps = disturbed.start_ps + 0.9 * (disturbed.end_ps - disturbed.start_ps)
    before = mean_rate(whole, undisturbed.start_ps + ROUND_TRIP_PS, began_ps)
    times, rates = throughput(result)
    near = (times > disturbed.start_ps - 50 * US) & (times <= disturbed.end_ps + 50 * US)
    return Outcome(
        options.planes,
        options.leaves * options.hosts_per_leaf,
        rows,
        (known_ps - began_ps) / 1e6,
        mean_rate(result, known_ps + ROUND_TRIP_PS, nine_tenths_ps) / before,
        (disturbed.end_ps - began_ps - left_ps) / 1e6,
        sum(
            lost.packets
            for event in failures
            for lost in (event.in_flight, event.queued, event.refused)
            if lost is not None
        ),
        (began_ps - disturbed.start_ps) / 1e6,
        [float(time - disturbed.start_ps) / 1e6 for time in times[near]],
        [float(rate) / 1e9 for rate in rates[near]],
    )


def picture(found: Outcome) -> str:
    """Draw the throughput of the all-reduce that lost a plane."""
    return line_chart(
        f"{found.hosts} hosts, {found.planes} planes: what all NICs send, Tb/s",
        "µs since the all-reduce began",
        found.times_us,
        [rate / 1000 for rate in found.gbps],
        {"a plane is lost": found.lost_us, "known": found.lost_us + found.known_after_us},
    )


def show(found: Outcome) -> None:
    """Print the tables."""
    table = Table(title=f"{found.hosts} hosts, {found.planes} planes", title_justify="left")
    for name in asdict(found.rows[0]):
        table.add_column(name.replace("_", " "), justify="left" if name == "all_reduce" else "right")
    for row in found.rows:
        table.add_row(
            row.all_reduce,
            f"{row.time_us:,.1f}",
            f"{row.busbw_gbps:,.0f}",
            str(row.wrong),
            f"{row.over_undisturbed:.3f}",
        )
    console = Console(width=100)
    console.print(table)
    console.print(f"the loss was known after {found.known_after_us:.1f} µs; {found.packets_lost} packets were lost")
    console.print(f"bandwidth afterwards: {found.bandwidth_after:.3f} of that before")
    console.print(f"the all-reduce took {found.beyond_ideal_us:.1f} µs longer than with so much from the moment on")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planes", type=int, default=8)
    parser.add_argument("--leaves", type=int, default=4, help="and spines, of a plane")
    parser.add_argument("--hosts-per-leaf", type=int, default=8)
    parser.add_argument("--mib", type=int, default=32, help="of every host")
    parser.add_argument("--picture", type=Path, help="draw the throughput into an SVG file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    found = measure(options)
    if options.picture is not None:
        options.picture.write_text(picture(found))
    if options.json:
        print(json.dumps(asdict(found), indent=1))
    else:
        show(found)


if __name__ == "__main__":
    main()
