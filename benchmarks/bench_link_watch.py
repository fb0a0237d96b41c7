"""Whether `controller.link_watch` leaves healthy links alone and finds lossy ones, in virtual time.

    .venv/bin/python benchmarks/bench_link_watch.py [--healthy N] [--lossy N] [--seed N] [--json]

Healthy runs: small fabrics of many kinds, each with a kind of traffic and settings that are drawn for it. The watch has
the strictest limits that there are, a single packet lost, and reads counters every 10 µs: whatever it calls lossy with
other limits, it would with these. Combinations that Weft refuses (segments with PFC, for example) are drawn again, and
counted.

Lossy runs: 16 hosts, four leaves and four spines with links of 400 Gb/s and 5 µs, FB_Hadoop's flows at half the rate,
sprayed; one direction of one link loses a packet in a hundred. The watch has its defaults.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from weft.errors import BadInputError
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

US = 10**6
STRICTEST = {"link_watch": {"loss": 1e-9, "least_packets": 1}, "interval": "10us"}
SPRAYED = {"retransmission": "selective-repeat", "path": "spray"}
FABRICS: dict[str, dict[str, Any]] = {
    "leaf/spine, 400 Gb/s, 5 µs": {
        "fabric": {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "400Gb/s", "delay": "5us"}
    },
    "leaf/spine, two planes": {
        "fabric": {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "100Gb/s", "delay": "1us"}
    },
    "leaf/spine, 10 Gb/s": {
        "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 3, "host_rate": "10Gb/s"}
    },
    "fat tree": {"fabric": {"k": 4, "planes": 1, "host_rate": "100Gb/s", "delay": "1us"}},
    "torus": {
        "fabric": {"shape": [2, 3], "planes": 1, "hosts_per_leaf": 1, "host_rate": "100Gb/s"},
        "routing": {"kind": "dimension_order"},
    },
    "dragonfly": {
        "fabric": {
            "groups": 3, "routers": 2, "global_links": 1, "planes": 1, "hosts_per_leaf": 1, "host_rate": "100Gb/s",
            "global_delay": "5us",
        },
        "routing": {"kind": "dragonfly_minimal"},
    },
}  # fmt: skip
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "sprayed": {"transport": SPRAYED},
    "DCQCN": {"transport": {"congestion_control": "dcqcn"}},
    "HPCC": {"transport": {"congestion_control": "hpcc"}},
    "Swift": {"transport": {"congestion_control": "swift"}},
    "acknowledgements of every 16th packet": {"transport": {"ack_interval": 16}},
    "IPv6, small packets": {"ip_version": 6, "mtu": 512},
    "PFC": {"pfc": {"classes": [3]}},
    "credits": {"credits": {"classes": [3]}},
    "cut-through": {"switching": {"mode": "cut-through", "latency": "300ns"}},
    "slow switches": {"switching": {"latency": "2us"}},
    "a controller far away": {"control": {"latency": "7us"}},
    "costs of NICs": {"nic": {"per_packet_overhead": "20ns", "dma_latency": "500ns"}},
    "segments": {"fidelity": {"segment": "16KiB"}},
}
TRAFFIC: dict[str, dict[str, Any]] = {
    "FB_Hadoop": {"workload": {"flow_sizes": "fb_hadoop", "load": 0.5, "duration": "60us"}},
    "web search": {"workload": {"flow_sizes": "websearch", "load": 0.3, "duration": "20us"}},
    "storage flows": {"workload": {"flow_sizes": "alibaba_storage", "load": 0.6, "duration": "60us"}},
    "permutation": {"permutation": "128KiB", "data": "lengths"},
    "incast": {"incast": "h0", "bytes_per_sender": "64KiB"},
    "ring all-reduce": {"collective": "allreduce", "algorithms": ["ring"], "sizes": ["64KiB"]},
    "tree all-reduce": {"collective": "allreduce", "algorithms": ["tree"], "sizes": ["32KiB"]},
    "all-reduce in the network": {"collective": "allreduce", "algorithms": ["in-network"], "sizes": ["64KiB"]},
    "broadcast in the network": {"collective": "broadcast", "algorithms": ["in-network"], "sizes": ["64KiB"]},
    "all-to-all": {"collective": "alltoall", "algorithms": ["direct"], "sizes": ["64KiB"]},
    "experts": {"collective": "moe_dispatch", "algorithms": ["direct"], "sizes": ["32KiB"]},
    "barrier": {"collective": "barrier"},
    "storage": {"storage": [0], "queue_depth": 4, "block": "4KiB", "access": {"blocks": 20, "order": "random"}},
    "remote memory": {"remote_memory": [0], "outstanding": 4, "reads": 20},
    "parameter server": {"parameter_server": 1, "workers": 2, "parameters": "64KiB", "steps": 2, "compute": "5us"},
    "training step": {
        "training_step": "data-parallel",
        "layers": [{"gradients": "64KiB", "forward": "5us", "backward": "10us", "count": 2}],
        "algorithms": ["ring"],
    },
    "TCP": {"tcp": [{"flow": "h0->h3", "size": "64KiB"}, {"flow": "h1->h3", "size": "64KiB"}]},
    "ping": {"ping": ["h0->h1", "h0->h3"], "count": 3, "interval": "20us"},
    "UDP": {"udp": ["h0->h3", "h1->h3"], "rate": "6Gb/s", "duration": "100us"},
    "two at once": {
        "together": [
            {"permutation": "64KiB", "data": "lengths"},
            {"collective": "allreduce", "algorithms": ["ring"], "sizes": ["32KiB"]},
        ]
    },
}  # fmt: skip


@dataclass
class Healthy:
    """Counts of healthy runs by kind, of refused ones, and the links found in each."""

    runs: int = 0
    refused: int = 0
    packets: int = 0
    of_traffic: Counter[str] = field(default_factory=Counter)
    of_settings: Counter[str] = field(default_factory=Counter)
    of_fabric: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Lossy:
    """A direction that lost packets: when it was found, and whatever else was."""

    direction: str
    seed: int
    found_us: float | None
    others: tuple[str, ...]


@dataclass(frozen=True)
class HealthyCase:
    """A run that is to be healthy: its scenario, and the names of what was drawn for it."""

    traffic: str
    settings: str
    fabric: str
    scenario: dict[str, Any]


def healthy_case(draws: random.Random) -> HealthyCase:
    """Draw a healthy run on which the watch is at its strictest."""
    fabric, settings, traffic = (draws.choice(sorted(each)) for each in (FABRICS, SETTINGS, TRAFFIC))
    scenario = {
        "clock": "virtual",
        "seed": draws.randrange(2**31),
        "controller": STRICTEST,
        **FABRICS[fabric],
        **SETTINGS[settings],
        "traffic": [TRAFFIC[traffic]],
    }
    return HealthyCase(traffic, settings, fabric, scenario)


def healthy_runs(
    count: int,
    seed: int,
    case_of: Callable[[random.Random], HealthyCase] = healthy_case,
    refusals: tuple[type[Exception], ...] = (BadInputError,),
    expected_events: Container[str] = (),
) -> Healthy:
    """Make so many runs of cases that are drawn, and return what was found: events of other kinds than expected."""
    draws, outcome = random.Random(seed), Healthy()
    while outcome.runs < count:
        case = case_of(draws)
        try:
            result = run_scenario(parse_scenario(case.scenario))
        except refusals:
            outcome.refused += 1
            continue
        outcome.runs += 1
        outcome.packets += packets_of(result)
        outcome.of_traffic[case.traffic] += 1
        outcome.of_settings[case.settings] += 1
        outcome.of_fabric[case.fabric] += 1
        outcome.found += [
            f"{case.traffic}, {case.settings}, {case.fabric}, seed {case.scenario['seed']}: "
            f"{event.kind} {event.element} {event.detail}"
            for event in result.controller_events
            if event.kind not in expected_events
        ]
    return outcome


def packets_of(result: RunResult) -> int:
    """Return how many packets ports have sent."""
    return int(np.asarray(result.observations.tables["ports"]["transmitted_packets"]).sum())


def lossy_run(direction: str, seed: int, leaves: int = 4, hosts_per_leaf: int = 4) -> Lossy:
    """Make a run in which a direction of a link loses a hundredth, and return what the watch found."""
    scenario = {
        "clock": "virtual",
        "seed": seed,
        "fabric": {
            "planes": 1, "leaves": leaves, "spines": leaves, "hosts_per_leaf": hosts_per_leaf,
            "host_rate": "400Gb/s", "delay": "5us",
        },
        "traffic": [{"workload": {"flow_sizes": "fb_hadoop", "load": 0.5, "duration": "1ms"}}],
        "transport": SPRAYED,
        "faults": {"links": [{"link": direction, "loss": 0.01}]},
        "controller": {"link_watch": {}},
    }  # fmt: skip
    events = run_scenario(parse_scenario(scenario)).controller_events
    lossy = [event for event in events if event.kind == "lossy"]
    here = [event for event in lossy if set(event.element.split("<->")) == set(direction.split("->"))]
    return Lossy(
        direction,
        seed,
        here[0].time_ps / US if here else None,
        tuple(event.element for event in lossy if event not in here),
    )


def lossy_runs(count: int, seed: int) -> list[Lossy]:
    """Make so many, of uplinks, downlinks, and links of hosts in either direction."""
    draws, found = random.Random(seed), []
    for number in range(count):
        leaf, spine, host = draws.randrange(4), draws.randrange(4), draws.randrange(16)
        directions = (
            f"p0l{leaf}->p0s{spine}", f"p0s{spine}->p0l{leaf}", f"h{host}->p0l{host // 4}", f"p0l{host // 4}->h{host}",
        )  # fmt: skip
        found.append(lossy_run(directions[number % 4], seed + number))
    return found


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--healthy", type=int, default=1000, help="runs without a fault")
    parser.add_argument("--lossy", type=int, default=16, help="runs with a lossy link")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    healthy, lossy = healthy_runs(options.healthy, options.seed), lossy_runs(options.lossy, options.seed)
    if options.json:
        print(json.dumps({"healthy": vars(healthy), "lossy": [asdict(each) for each in lossy]}, indent=1))
        return
    console = Console()
    table = Table(title=f"{healthy.runs:,} healthy runs, {healthy.packets:,} packets sent by ports")
    for column in ("traffic", "settings", "fabric"):
        table.add_column(column)
        table.add_column("runs", justify="right")
    columns = [sorted(each.items()) for each in (healthy.of_traffic, healthy.of_settings, healthy.of_fabric)]
    for row in range(max(map(len, columns))):
        cells = [column[row] if row < len(column) else ("", "") for column in columns]
        table.add_row(*(str(value) for cell in cells for value in cell))
    console.print(table)
    console.print(f"{healthy.refused:,} combinations refused; links called lossy: {len(healthy.found)}")
    for line in healthy.found:
        console.print(line)
    table = Table("direction", "seed", "found at (µs)", "other links", title="One packet in a hundred lost")
    for each in lossy:
        found = "never" if each.found_us is None else f"{each.found_us:,.0f}"
        table.add_row(each.direction, str(each.seed), found, ", ".join(each.others) or "none")
    console.print(table)


if __name__ == "__main__":
    main()
