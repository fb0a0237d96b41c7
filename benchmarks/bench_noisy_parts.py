"""Whether `health` leaves healthy fabrics alone, and finds mild faults, in virtual time.

    .venv/bin/python benchmarks/bench_noisy_parts.py [--healthy N] [--planted N] [--seed N] [--json]

Healthy runs: a quarter are the examples of all kinds of traffic (examples/traffic), the others have traffic of
`bench_link_watch.py` on small fabrics; each with settings and a seed that are drawn. Counters are read every 20 µs, so
parts are tested more often than by default. Combinations that Weft refuses are drawn again, and counted.

Planted faults: in turn a lossy link between switches, a lossy link of a host, a slow link between switches, a slow link
of a host, a flapping link, a NIC that pauses, a slow host. What is faulty, and how much, is drawn.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import bench_link_watch as link_watch
from bench_link_watch import Healthy, HealthyCase
from rich.console import Console
from rich.table import Table

from weft.controller.noise.evidence import NoisyPart
from weft.errors import BadInputError, EnvironmentLacksError
from weft.quantities.yaml_files import read_mapping
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.scenario.parsing import anchor_paths

US = link_watch.US
OF_EXAMPLES = 0.25
"""Share of healthy runs that are examples: these take longer."""
HEALTH = {"interval": "20us"}
EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "traffic"
FABRICS: dict[str, dict[str, Any]] = link_watch.FABRICS | {
    "leaf/spine, eight planes, spares": {
        "fabric": {
            "planes": 8, "leaves": 2, "spines": 2, "hosts_per_leaf": 3, "host_rate": "25Gb/s", "spares": 1,
        }
    },
    "leaf/spine, oversubscribed": {
        "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 4, "host_rate": "100Gb/s"}
    },
}  # fmt: skip
SETTINGS: dict[str, dict[str, Any]] = link_watch.SETTINGS | {
    "trimming": {"transport": link_watch.SPRAYED, "trimming": {"classes": [3]}},
    "NSCC": {"transport": {"congestion_control": "nscc", **link_watch.SPRAYED}},
    "MRC": {"transport": {"protocol": "mrc"}, "int": False},
    "UET": {"transport": {"protocol": "uet"}, "int": False},
    "PFC, shared memory": {"pfc": {"classes": [3]}, "transport": {"congestion_control": "dcqcn"}},
    "all links lose 1 in 2,000": {
        "faults": {"loss": 0.0005},
        "transport": {"retransmission": "selective-repeat"},
    },
    "all links have wrong bits": {
        "faults": {"bit_error_rate": 1e-7},
        "transport": {"retransmission": "selective-repeat"},
    },
    "jittered delays": {
        "faults": {"delay_probability": 0.01, "extra_delay": "2us"},
        "transport": {"retransmission": "selective-repeat", "reordering_window": "20us"},
    },
}
FABRIC: dict[str, Any] = {
    "planes": 1, "leaves": 4, "spines": 4, "hosts_per_leaf": 4, "host_rate": "100Gb/s", "spares": 1,
}  # fmt: skip
MODEL: dict[str, Any] = {
    "model": {
        "layers": 4, "hidden": 256, "heads": 8, "feed_forward": 704, "vocabulary": 1024, "sequence": 256,
    },
    "parallel": {"data": 8},
    "micro_batches": 2,
    "jitter": 0.05,
}  # fmt: skip


@dataclass(frozen=True)
class Planted:
    """A fault, and what was found."""

    what: str
    part: str
    fault: str
    seed: int
    found_us: float | None
    evidence: str
    done: str
    others: tuple[str, ...]


@cache
def examples() -> dict[str, dict[str, Any]]:
    """Return the scenarios of all kinds of traffic, by name, without the slow ranks that some of them have."""
    found = {}
    for path in sorted(EXAMPLES.glob("*.yaml")):
        tree = read_mapping(path, "a scenario")
        anchor_paths(tree, path.parent)
        for item in tree["traffic"]:
            item.pop("stragglers", None)
        found[f"example {path.stem}"] = tree
    return found


def healthy_case(draws: random.Random, keys: dict[str, Any]) -> HealthyCase:
    """Draw a healthy run; `keys` are added to its scenario."""
    settings = draws.choice(sorted(SETTINGS))
    if draws.random() < OF_EXAMPLES:
        fabric = traffic = draws.choice(sorted(examples()))
        tree = examples()[traffic]
    else:
        traffic = draws.choice(sorted(link_watch.TRAFFIC))
        fabric = draws.choice(sorted(FABRICS))
        tree = FABRICS[fabric] | {"traffic": [link_watch.TRAFFIC[traffic]]}
    scenario = tree | SETTINGS[settings] | {"clock": "virtual", "seed": draws.randrange(2**31)} | keys
    return HealthyCase(traffic, settings, fabric, scenario)


def healthy_runs(count: int, seed: int, asked: dict[str, Any] | None = None) -> Healthy:
    """Make so many runs, and return what was found. `asked`: keys in place of `health`."""
    keys: dict[str, Any] = {"health": HEALTH} if asked is None else asked
    return link_watch.healthy_runs(
        count,
        seed,
        lambda draws: healthy_case(draws, keys),
        refusals=(BadInputError, EnvironmentLacksError),
        expected_events=("link down", "link up", "programmed", "circuits"),
    )


def _between(draws: random.Random) -> tuple[str, str]:
    return f"p0l{draws.randrange(4)}", f"p0s{draws.randrange(4)}"


def _of_host(draws: random.Random) -> tuple[str, str]:
    host = draws.randrange(12)
    return f"h{host}", f"p0l{host // 4}"


def lossy_link(draws: random.Random) -> tuple[str, str, dict[str, Any]]:
    """Draw a link between switches that loses 0.1 to 1 % in one direction."""
    leaf, spine = _between(draws)
    loss = 10 ** draws.uniform(-3, -2)
    link = draws.choice((f"{leaf}->{spine}", f"{spine}->{leaf}"))
    return f"{leaf}<->{spine}", "lossy", {"faults": {"links": [{"link": link, "loss": loss}]}}


def lossy_host(draws: random.Random) -> tuple[str, str, dict[str, Any]]:
    """Draw a host's link that loses 0.1 to 1 % in one direction."""
    host, leaf = _of_host(draws)
    loss = 10 ** draws.uniform(-3, -2)
    link = draws.choice((f"{host}->{leaf}", f"{leaf}->{host}"))
    return f"{host}<->{leaf}", "lossy", {"faults": {"links": [{"link": link, "loss": loss}]}}


def slow_link(draws: random.Random) -> tuple[str, str, dict[str, Any]]:
    """Draw a link between switches at 50 to 80 % of its rate."""
    leaf, spine = _between(draws)
    rate = f"{draws.randrange(50, 81)}Gb/s"
    name = f"{leaf}<->{spine}"
    return name, "slow", {"events": [{"link": name, "state": "slow", "rate": rate}]}


def slow_host_link(draws: random.Random) -> tuple[str, str, dict[str, Any]]:
    """Draw a host's link at 50 to 80 % of its rate."""
    host, leaf = _of_host(draws)
    rate = f"{draws.randrange(50, 81)}Gb/s"
    name = f"{host}<->{leaf}"
    return name, "slow", {"events": [{"link": name, "state": "slow", "rate": rate}]}


def flapping_link(draws: random.Random) -> tuple[str, str, dict[str, Any]]:
    """Draw a link between switches that fails for 20 to 50 µs, six times."""
    leaf, spine = _between(draws)
    name = f"{leaf}<->{spine}"
    period = f"{draws.randrange(20, 51)}us"
    return (
        name,
        "flapping",
        {"events": [{"link": name, "state": "flapping", "count": 6, "period": period, "at": "20us"}]},
    )


def pausing_nic(draws: random.Random) -> tuple[str, str, dict[str, Any]]:
    """Draw a NIC that asks for pauses for 5 µs in each millisecond; the longest pause lasts 336 µs at 100 Gb/s."""
    host, leaf = _of_host(draws)
    first = draws.randrange(20, 60)
    storms = [
        {"host": host, "state": "storming", "at": f"{start}us", "until": f"{start + 5}us"}
        for start in range(first, first + 3000, 1000)
    ]
    return f"{host}<->{leaf}", "pausing", {"pfc": {"classes": [3]}, "events": storms}


def slow_host(draws: random.Random) -> tuple[str, str, dict[str, Any]]:
    """Draw a host that computes 15 to 30 % longer."""
    host = f"h{draws.randrange(8)}"
    compute = round(draws.uniform(1.15, 1.3), 2)
    return host, "straggling", {"faults": {"hosts": [{"host": host, "compute": compute}]}, "traffic": [MODEL]}


FAULTS: dict[str, Callable[[random.Random], tuple[str, str, dict[str, Any]]]] = {
    "lossy link": lossy_link,
    "lossy link of a host": lossy_host,
    "slow link": slow_link,
    "slow link of a host": slow_host_link,
    "flapping link": flapping_link,
    "pausing NIC": pausing_nic,
    "slow host": slow_host,
}


def planted_run(what: str, seed: int) -> Planted:
    """Make a run with a fault of a kind, and return what was found."""
    draws = random.Random(seed)
    part, fault, keys = FAULTS[what](draws)
    scenario = {
        "clock": "virtual",
        "seed": seed,
        "fabric": FABRIC,
        "transport": {"congestion_control": "dcqcn", **link_watch.SPRAYED},
        "traffic": [{"permutation": "8MiB", "data": "lengths"}, {"permutation": "8MiB", "data": "lengths"}],
        "health": {},
        **keys,
    }
    parts = run_scenario(parse_scenario(scenario)).noisy_parts
    here = [each for each in parts if each.part == part and each.fault == fault]
    return Planted(
        what,
        part,
        fault,
        seed,
        here[0].time_ps / US if here else None,
        here[0].evidence if here else "",
        done(here[0]) if here else "",
        tuple(f"{each.fault} {each.part}" for each in parts if each not in here),
    )


def done(part: NoisyPart) -> str:
    """Return what was done about a part."""
    return f"{part.element} out of use" if part.element else f"reported: {part.reason}"


def planted_runs(count: int, seed: int) -> list[Planted]:
    """Make so many, of all kinds in turn."""
    kinds = list(FAULTS)
    return [planted_run(kinds[number % len(kinds)], seed + number) for number in range(count)]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--healthy", type=int, default=1000, help="runs without a fault")
    parser.add_argument("--planted", type=int, default=21, help="runs with a fault")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    healthy, planted = healthy_runs(options.healthy, options.seed), planted_runs(options.planted, options.seed)
    if options.json:
        print(json.dumps({"healthy": vars(healthy), "planted": [asdict(each) for each in planted]}, indent=1))
        return
    console = Console()
    table = Table(title=f"{healthy.runs:,} healthy runs, {healthy.packets:,} packets sent by ports")
    for column in ("traffic", "settings"):
        table.add_column(column)
        table.add_column("runs", justify="right")
    columns = [sorted(each.items()) for each in (healthy.of_traffic, healthy.of_settings)]
    for row in range(max(map(len, columns))):
        cells = [column[row] if row < len(column) else ("", "") for column in columns]
        table.add_row(*(str(value) for cell in cells for value in cell))
    console.print(table)
    console.print(f"{healthy.refused:,} combinations refused; parts called noisy: {len(healthy.found)}")
    for line in healthy.found:
        console.print(line)
    table = Table("fault", "part", "seed", "found at (µs)", "evidence", "what was done", "other parts")
    for each in planted:
        found = "never" if each.found_us is None else f"{each.found_us:,.0f}"
        table.add_row(
            each.what, each.part, str(each.seed), found, each.evidence, each.done, ", ".join(each.others) or "none"
        )
    console.print(table)


if __name__ == "__main__":
    main()
