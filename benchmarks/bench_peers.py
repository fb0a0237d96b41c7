"""Weft and the Ultra Ethernet Consortium's simulator run the same traffic in turns: processor time of both commands.

    .venv/bin/python benchmarks/bench_peers.py [--cases NAME…] [--turns N] [--quick] [--json] [--realtime]

The simulator is htsim_uec of https://github.com/ultraethernet/uet-htsim, built with its CMakeLists.txt (-O3).
WEFT_HTSIM names the executable; by default it is looked up on PATH. Processor time covers the whole command: start,
set-up, the run, results. `weft run` finds its modules and fabric.p4 compiled, as from its second run on. Emulated time
ends with the last flow.

Both run the same flows, all from time 0, over the same k-ary fat tree (100 Gb/s and 1 µs a link), in packets of 4,096
bytes of data, each acknowledged, sprayed over 64 paths, under a congestion control at senders. They differ in what
they model. Weft's switches run fabric.p4, and its hosts run RoCEv2 with Swift, which follows delays; queues hold 4 MiB
and drop what exceeds it, and hosts retransmit selectively. The simulator's switches are C++, and its hosts run UEC's
transport with NSCC, which follows delays and marks; queues hold one bandwidth-delay product and trim what exceeds it to
headers, which receivers report. The simulator has no control plane, and packets without contents.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from figures import Figure, argument_parser, report
from scheduling import realtime_this_process

from weft.paths import ROOT

VARIABLE, EXECUTABLE = "WEFT_HTSIM", "htsim_uec"
RATE_GBPS = 100
DELAY_NS = 1000
DATA_BYTES, HEADER_BYTES = 4096, 64
"""Parts of a packet in the simulator; its option -mtu takes their sum."""
PATHS = 64
END_US = 10_000_000
"""When the simulator stops at the latest; no case takes as long."""
SWIFT: Mapping[str, object] = {
    "transport": {
        "congestion_control": "swift",
        "retransmission": "selective-repeat",
        "path": "spray",
        "spray_paths": PATHS,
        "ack_interval": 1,
    }
}
QUEUE = "4MiB"
_FINISHED = re.compile(r"^Flow .* finished at ([\d.]+) ", re.MULTILINE)

Pairs = Sequence[tuple[int, int]]


class NoSimulatorError(Exception):
    """The simulator is not there."""


@dataclass(frozen=True)
class Case:
    """Traffic on a k-ary fat tree; every flow has as many bytes. `goal`: Weft is to be ahead by this factor.

    `most_turns`: so that a case of minutes does not take a quarter of an hour; long runs vary less. `senders` of an
    incast; None: all other hosts.
    """

    pattern: str
    ports: int
    size_bytes: int
    goal: float
    most_turns: int = 10
    senders: int | None = None

    @property
    def hosts(self) -> int:
        """All hosts of the fat tree."""
        return self.ports**3 // 4

    @property
    def title(self) -> str:
        """Pattern, hosts and bytes of a flow."""
        return f"{self.pattern}, {self.hosts:,} hosts, {self.size_bytes:,} B a flow"

    def pairs(self) -> Pairs:
        """Source and destination of each flow."""
        everyone = range(self.hosts)
        if self.pattern == "single flow":
            return [(self.hosts - 1, 0)]
        if self.pattern == "incast":
            return [(source, 0) for source in everyone[1:][: self.senders]]
        if self.pattern == "all-to-all":
            return [(source, (source + step) % self.hosts) for source in everyone for step in everyone[1:]]
        # Each host sends to its successor in a random order, so that none sends to itself.
        order = random.Random(1).sample(everyone, self.hosts)
        return list(zip(order, [*order[1:], order[0]], strict=True))


CASES = {
    "permutation": Case("permutation", 16, 2_000_000, 3),
    "all-to-all": Case("all-to-all", 8, 65_536, 3),
    "large permutation": Case("permutation", 32, 1_000_000, 3, most_turns=1),
    "incast": Case("incast", 8, 2_000_000, 2),
}
QUICK_PORTS, QUICK_BYTES = 4, 20_000
"""Ports of a switch at least, and bytes of a flow, of `--quick`."""


@dataclass(frozen=True)
class Spent:
    """Processor time of a command, and when its last flow ended."""

    processor_s: float
    emulated_us: float


def simulator() -> Path:
    """Return the simulator's executable. Raises NoSimulatorError."""
    named = os.environ.get(VARIABLE)
    found = shutil.which(named or EXECUTABLE)
    if found is None:
        where = f"{VARIABLE}={named} is no executable" if named else f"{EXECUTABLE} is not on PATH, nor in {VARIABLE}"
        raise NoSimulatorError(f"{where} (github.com/ultraethernet/uet-htsim, htsim/sim/CMakeLists.txt builds it)")
    return Path(found).resolve()


def processor_time_s(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[float, str]:
    """Run a command; its processor time, processes that it waited for included, and its output. RuntimeError."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        said = done.stdout[-2000:] + done.stderr[-2000:]
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{said}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def scenario(case: Case, flows: Path, hosts: Mapping[str, object], queue: str) -> str:
    """Weft's scenario of a case. An all-to-all is a collective, other patterns are lists of flows."""
    traffic: dict[str, object] = {"flow_list": str(flows), "data": "lengths"}
    if case.pattern == "all-to-all":
        sizes = [case.size_bytes * case.hosts]
        traffic = {"collective": "alltoall", "algorithms": ["direct"], "sizes": sizes, "data": "lengths"}
    return yaml.safe_dump(
        {
            "name": "peers",
            "clock": "virtual",
            "seed": 1,
            "int": False,
            "mtu": DATA_BYTES,
            "fabric": {
                "k": case.ports,
                "planes": 1,
                "host_rate": f"{RATE_GBPS}Gb/s",
                "delay": f"{DELAY_NS}ns",
                "queue_capacity": queue,
            },
            "traffic": [traffic],
            **hosts,
        }
    )


def flow_csv(case: Case) -> str:
    """The flows as Weft reads them."""
    rows = [f"{source},{destination},{case.size_bytes}" for source, destination in case.pairs()]
    return "\n".join(["source,destination,size", *rows, ""])


def connection_matrix(case: Case) -> str:
    """The flows as the simulator reads them."""
    pairs = case.pairs()
    rows = [
        f"{source}->{destination} id {number} start 0 size {case.size_bytes}"
        for number, (source, destination) in enumerate(pairs, start=1)
    ]
    return "\n".join([f"Nodes {case.hosts}", f"Connections {len(pairs)}", *rows, ""])


def topology(case: Case) -> str:
    """The fat tree as the simulator reads it."""
    half = case.ports // 2
    down = f"Downlink_speed_Gbps {RATE_GBPS}\nDownlink_Latency_ns {DELAY_NS}\nSwitch_Latency_ns 0"
    tiers = [
        f"Tier 0\nOversubscribed 1\nRadix_Down {half}\nRadix_Up {half}\n{down}",
        f"Tier 1\nOversubscribed 1\nRadix_Down {half}\nRadix_Up {half}\n{down}\nBundle 1",
        f"Tier 2\nRadix_Down {case.ports}\n{down}\nBundle 1",
    ]
    return "\n\n".join([f"Nodes {case.hosts}\nTiers 3\nPodsize {half * half}", *tiers]) + "\n"


def run_weft(case: Case, folder: Path, hosts: Mapping[str, object] = SWIFT, queue: str = QUEUE) -> Spent:
    """`weft run`, its bytecode kept in the folder; `hosts` are the scenario's sections on them and their packets."""
    flows, file, results = folder / "flows.csv", folder / "peers.yaml", folder / "results"
    flows.write_text(flow_csv(case), encoding="utf-8")
    file.write_text(scenario(case, flows, hosts, queue), encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
    }
    command = [sys.executable, "-m", "weft", "run", str(file), "--out", str(results)]
    spent_s, _ = processor_time_s(command, folder, environment)
    found = json.loads((results / "results.json").read_text(encoding="utf-8"))
    if not found["ok"]:
        raise RuntimeError(f"{case.title}: {results} has a failed check")
    return Spent(spent_s, max(phase["end_ps"] for phase in found["phases"]) / 1e6)


def run_simulator(executable: Path, case: Case, folder: Path) -> tuple[Spent, str]:
    """htsim_uec, and what it printed; RuntimeError unless every flow has ended."""
    matrix, tree = folder / "flows.cm", folder / "tree.topo"
    matrix.write_text(connection_matrix(case), encoding="utf-8")
    tree.write_text(topology(case), encoding="utf-8")
    options = {
        "-tm": matrix,
        "-topo": tree,
        "-mtu": DATA_BYTES + HEADER_BYTES,
        "-linkspeed": RATE_GBPS * 1000,
        "-paths": PATHS,
        "-sender_cc_algo": "nscc",
        "-sack_threshold": 1,  # unacknowledged bytes at which a receiver answers: each packet
        "-seed": 1,
        "-end": END_US,
        "-o": folder / "log.dat",
    }
    command = [str(executable), *(str(word) for option in options.items() for word in option)]
    spent_s, printed = processor_time_s(command, folder, os.environ)
    ends_us = [float(end) for end in _FINISHED.findall(printed)]
    if len(ends_us) != len(case.pairs()):
        raise RuntimeError(f"{case.title}: {len(ends_us)} of {len(case.pairs())} flows of the simulator ended")
    return Spent(spent_s, max(ends_us)), printed


def compare(executable: Path, case: Case, turns: int, folder: Path) -> list[Figure]:
    """The best turn of each; the ratio is the simulator's time to Weft's."""
    ours, theirs = zip(
        *((run_weft(case, folder), run_simulator(executable, case, folder)[0]) for _ in range(turns)), strict=True
    )
    weft_s, simulator_s = (min(each.processor_s for each in runs) for runs in (ours, theirs))
    return [
        Figure(case.title, weft_s, "s"),
        Figure("  the simulator", simulator_s, "s", "Weft", simulator_s / weft_s, case.goal),
        Figure("  emulated time in Weft", ours[0].emulated_us, "us"),
        Figure("  emulated time in the simulator", theirs[0].emulated_us, "us"),
    ]


def main() -> int:
    """Print the table; the exit status."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="NAME", help="of all")
    parser.add_argument("--turns", type=int, default=2, help="of which the best counts; the large permutation has one")
    parser.add_argument("--quick", action="store_true", help="fewer hosts and 20 kB a flow, runs of seconds")
    options = parser.parse_args()
    if options.turns < 1:
        parser.error(f"--turns: {options.turns} (valid: 1 or more)")
    try:
        executable = simulator()
    except NoSimulatorError as error:
        print(f"bench_peers: {error}", file=sys.stderr)
        return 3
    if options.realtime:
        realtime_this_process()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_weft(Case("permutation", QUICK_PORTS, QUICK_BYTES, 0), folder)  # leaves bytecode and the program's code
        for case in (CASES[each] for each in options.cases):
            if options.quick:
                case = Case(case.pattern, max(QUICK_PORTS, case.ports // 4), QUICK_BYTES, case.goal)
            figures += compare(executable, case, min(options.turns, case.most_turns), folder)
    report("Weft and htsim_uec, processor time of the whole command", figures, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
