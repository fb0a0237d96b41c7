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
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from figures import Figure, argument_parser, report
from peers import PEERS, MissingPeerError, Peer, Work, run_weft
from peers.adapters.htsim_uec import PATHS
from scheduling import realtime_this_process

from weft.quantities.units import PS_PER_US
from weft.traffic.patterns import Flow

RATE_GBPS = 100
DELAY_NS = 1000
DATA_BYTES = 4096
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

Pairs = Sequence[tuple[int, int]]


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

    def work(self, hosts: Mapping[str, object] = SWIFT, queue: str = QUEUE) -> Work:
        """Return the flows on the fabric; `hosts` are the scenario's sections on hosts and their packets.

        Weft runs an all-to-all as a collective, other patterns as lists of flows.
        """
        fabric = {
            "k": self.ports,
            "planes": 1,
            "host_rate": f"{RATE_GBPS}Gb/s",
            "delay": f"{DELAY_NS}ns",
            "queue_capacity": queue,
        }
        scenario = {"seed": 1, "int": False, "mtu": DATA_BYTES, "fabric": fabric, **hosts}
        flows = tuple(Flow(source, destination, self.size_bytes) for source, destination in self.pairs())
        traffic = None
        if self.pattern == "all-to-all":
            sizes = [self.size_bytes * self.hosts]
            traffic = {"collective": "alltoall", "algorithms": ["direct"], "sizes": sizes, "data": "lengths"}
        return Work(self.title, scenario, flows, traffic)


CASES = {
    "permutation": Case("permutation", 16, 2_000_000, 3),
    "all-to-all": Case("all-to-all", 8, 65_536, 3),
    "large permutation": Case("permutation", 32, 1_000_000, 3, most_turns=1),
    "incast": Case("incast", 8, 2_000_000, 2),
}
QUICK_PORTS, QUICK_BYTES = 4, 20_000
"""Ports of a switch at least, and bytes of a flow, of `--quick`."""


SIMULATOR = PEERS["htsim-uec"]


def compare(simulator: Peer, case: Case, turns: int, folder: Path) -> list[Figure]:
    """The best turn of each; the ratio is the simulator's time to Weft's."""
    work = case.work()
    ours, theirs = zip(*((run_weft(work, folder), simulator.run(work, folder)) for _ in range(turns)), strict=True)
    weft_s, simulator_s = (min(each.spent.processor_s for each in runs) for runs in (ours, theirs))
    return [
        Figure(case.title, weft_s, "s"),
        Figure("  the simulator", simulator_s, "s", "Weft", simulator_s / weft_s, case.goal),
        Figure("  emulated time in Weft", ours[0].end_ps / PS_PER_US, "us"),
        Figure("  emulated time in the simulator", theirs[0].end_ps / PS_PER_US, "us"),
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
        SIMULATOR.program()
    except MissingPeerError as error:
        print(f"bench_peers: {error}", file=sys.stderr)
        return 3
    if options.realtime:
        realtime_this_process()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_weft(
            Case("permutation", QUICK_PORTS, QUICK_BYTES, 0).work(), folder
        )  # leaves bytecode and the program's code
        for case in (CASES[each] for each in options.cases):
            if options.quick:
                case = Case(case.pattern, max(QUICK_PORTS, case.ports // 4), QUICK_BYTES, case.goal)
            figures += compare(SIMULATOR, case, min(options.turns, case.most_turns), folder)
    report("Weft and htsim_uec, processor time of the whole command", figures, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
