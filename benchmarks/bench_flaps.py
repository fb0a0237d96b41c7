"""A link that flaps under an all-reduce, in virtual time, with and without flap damping.

    .venv/bin/python benchmarks/bench_flaps.py [--flaps N] [--period-us N] [--json]

Four leaves of two hosts and four spines, 10 Gb/s links of 1 µs, fabric.p4 at every switch. A ring all-reduce runs for
as long as the flaps take without a failure. Meanwhile p0l0's uplink that carries the most fails again and again, and
comes back after half a period. Switches see that after 1 µs, and a request of the controller's and its answer take
5 µs. Damping has its defaults. Two transports: flows on one path each with go-back-N, and packets sprayed over all
paths with selective repeat. None of the figures depends on the machine.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from weft import Fabric
from weft.results.run_result import RunResult
from weft.run.collectives import CollectiveRequest
from weft.scenario import (
    ControllerSection,
    ControlSection,
    EventSection,
    FlapDampingSection,
    TransportSection,
)
from weft.topologies import leaf_spine

US = 10**6
RATE_BPS = 10 * 10**9
HOSTS = 8
TRANSPORTS = {
    "go-back-N, one path": TransportSection(),
    "selective repeat, sprayed": TransportSection(retransmission="selective-repeat", path="spray"),
}


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    transport: str
    case: str
    failures: int
    plans_written: int
    entries_written: int
    packets_lost: int
    packets_sent_again: int
    all_reduce_ms: float


def run(transport: TransportSection, size_bytes: int, events: list[EventSection], damped: bool) -> RunResult:
    """Run the all-reduce and return all that was found."""
    topology = leaf_spine(planes=1, leaves=4, spines=4, hosts_per_leaf=2, host_rate_bps=RATE_BPS, delay_ps=US)
    with Fabric(
        topology,
        clock="virtual",
        transport=transport,
        control=ControlSection(latency=5 * US, detection=US),
        controller=ControllerSection(flap_damping=FlapDampingSection() if damped else None),
        events=events,
    ) as fabric:
        fabric.run(CollectiveRequest("allreduce", size_bytes, "ring"))
        return fabric.summary()


def outcome(transport: str, case: str, result: RunResult) -> Outcome:
    """Return the figures of a run."""
    happened = [event for event in result.link_events if event.happened_ps is not None]
    lost = [
        lost.packets
        for event in happened
        for lost in (event.in_flight, event.queued, event.refused)
        if lost is not None
    ]
    return Outcome(
        transport,
        case,
        sum(event.state == "down" for event in happened),
        sum(event.entries_written > 0 for event in happened)
        + sum(event.kind == "reused" for event in result.controller_events),
        sum(event.entries_written for event in happened)
        + sum(event.entries for event in result.controller_events if event.detail.endswith("damped no more")),
        sum(lost),
        result.retransmissions,
        result.collectives[0].time_ps / 1e9,
    )


def busiest_uplink(result: RunResult) -> str:
    """Return p0l0's link to a spine that has carried the most packets."""
    ports = result.observations.tables["ports"]
    names, peers = ports["port"].texts(), ports["peer"].texts()
    sent = ports["transmitted_packets"]
    rows = [row for row, name in enumerate(names) if name.startswith("p0l0:") and peers[row].startswith("p0s")]
    peer = peers[max(rows, key=lambda row: int(sent[row]))].partition(":")[0]
    return f"p0l0<->{peer}"


def measure(flaps: int, period_ps: int) -> list[Outcome]:
    """Return the figures of all runs."""
    # A ring moves 2 (n - 1) / n of the size over each host's link.
    size_bytes = int(flaps * period_ps / 1e12 * RATE_BPS / 8 * HOSTS / (2 * (HOSTS - 1)))
    found = []
    for name, transport in TRANSPORTS.items():
        whole = run(transport, size_bytes, [], damped=False)
        found.append(outcome(name, "no failure", whole))
        flapping = EventSection(
            link=busiest_uplink(whole), state="flapping", count=flaps, period=period_ps, at=period_ps
        )
        for case, damped in (("flapping", False), ("flapping, damped", True)):
            found.append(outcome(name, case, run(transport, size_bytes, [flapping], damped)))
    return found


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flaps", type=int, default=1000, help="failures of the link")
    parser.add_argument("--period-us", type=int, default=20, help="from one failure to the next")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    outcomes = measure(options.flaps, options.period_us * US)
    if options.json:
        print(json.dumps([asdict(each) for each in outcomes], indent=1))
        return
    table = Table(title=f"A link that flaps {options.flaps:,} times, every {options.period_us} µs")
    for number, column in enumerate(asdict(outcomes[0])):
        table.add_column(column.replace("_", " "), justify="left" if number < 2 else "right")
    for each in outcomes:
        table.add_row(*(f"{value:,.2f}" if isinstance(value, float) else str(value) for value in asdict(each).values()))
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
