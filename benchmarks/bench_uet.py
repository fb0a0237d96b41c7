"""Ultra Ethernet in Weft and in the Ultra Ethernet Consortium's simulator: when the last of the same flows ends.

    .venv/bin/python benchmarks/bench_uet.py [--cases NAME…] [--quick] [--json]

The simulator is htsim_uec, as in bench_peers.py, which describes the fat trees and says where it is looked up. Both run
the same flows, all from time 0, over the same links, in packets of 4,096 bytes of data, with NSCC; both trim what finds
no room in a queue. Queues and marks in Weft are those that the simulator has chosen and printed: queues of one
bandwidth-delay product, marks from a fifth of it on, and on all packets from four fifths on. A packet of Weft's has all
headers of Ultra Ethernet over UDP and IPv4, 98 bytes besides preamble and gap, and one of the simulator has 64.

The goal is that both times differ by at most 5 %: `ratio` is the later end to the earlier one. Then the processor times
of both commands.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench_peers import QUICK_BYTES, QUICK_PORTS, SIMULATOR, Case
from figures import Figure, argument_parser, report
from peers import MissingPeerError, Peer, run_weft

from weft.quantities.units import PS_PER_US

MOST = 1.05
CASES = {
    "single flow": Case("single flow", 8, 2_000_000, MOST),
    "16-to-1": Case("incast", 8, 2_000_000, MOST, senders=16),
    "permutation": Case("permutation", 16, 2_000_000, MOST),
    "all-to-all": Case("all-to-all", 8, 65_536, MOST),
    "large permutation": Case("permutation", 32, 1_000_000, MOST),
}
_UET: Mapping[str, object] = {"transport": {"protocol": "uet"}, "trimming": {"classes": [3]}}
_QUEUE = re.compile(r"^Tier 0 QueueSize Down (\d+) bytes", re.MULTILINE)
_MARKS = re.compile(r"^Setting ECN to parameters low (\d+) high (\d+)", re.MULTILINE)


def hosts(printed: str) -> tuple[dict[str, object], str]:
    """Return the scenario's sections on hosts and packets, and a queue's size, as the simulator has printed its own."""
    queue, marks = _QUEUE.search(printed), _MARKS.search(printed)
    if queue is None or marks is None:
        raise RuntimeError(f"the simulator has not printed its queues and marks:\n{printed[:2000]}")
    ecn = {"kmin": f"{marks[1]}B", "kmax": f"{marks[2]}B", "pmax": 1}
    return {**_UET, "ecn": ecn}, f"{queue[1]}B"


def compare(simulator: Peer, case: Case, folder: Path) -> list[Figure]:
    """Return when the last flow ended in each."""
    theirs = simulator.run(case.work(_UET), folder)
    ours = run_weft(case.work(*hosts(theirs.printed)), folder)
    ours_us, theirs_us = (each.end_ps / PS_PER_US for each in (ours, theirs))
    ours_s, theirs_s = (each.spent.processor_s for each in (ours, theirs))
    apart = max(ours_us, theirs_us) / min(ours_us, theirs_us)
    return [
        Figure(case.title, ours_us, "us", "simulator", apart, MOST, at_most=True),
        Figure("  the simulator", theirs_us, "us"),
        Figure("  processor time", ours_s, "s", "simulator", ours_s / theirs_s, 1, True),
        Figure("  processor time of the simulator", theirs_s, "s"),
    ]


def main() -> int:
    """Print the table; the exit status."""
    parser = argument_parser(__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="NAME", help="of all")
    parser.add_argument("--quick", action="store_true", help="fewer hosts and 20 kB a flow, runs of seconds")
    options = parser.parse_args()
    try:
        SIMULATOR.program()
    except MissingPeerError as error:
        print(f"bench_uet: {error}", file=sys.stderr)
        return 3
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        for case in (CASES[each] for each in options.cases):
            if options.quick:
                ports = max(QUICK_PORTS, case.ports // 4)
                case = Case(case.pattern, ports, QUICK_BYTES, case.goal, senders=case.senders)
            figures += compare(SIMULATOR, case, Path(name))
    report("Ultra Ethernet in Weft and in htsim_uec", figures, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
