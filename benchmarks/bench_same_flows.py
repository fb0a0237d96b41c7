"""Weft and other simulators on the same flows, in turns: processor time, memory, slowdowns, and agreement by flow.

    .venv/bin/python benchmarks/bench_same_flows.py [--cases NAME…] [--peers NAME…] [--duration-us N]
        [--hash-seeds N…] [--one-per-pair] [--turns N] [--quick] [--json] [--realtime]

| case | simulator | flows |
|---|---|---|
| websearch-dcqcn, websearch-hpcc | ns3-hpcc | WebSearch at 30 % load on HPCC's 320 hosts |
| websearch-nscc, permutation-nscc | htsim-uec | WebSearch at 30 % load, a permutation of 2 MB on a 8-ary fat tree |
| one-each | astra-sim | one flow of each of 64 hosts on one switch, WebSearch's sizes |

WEFT_NS3_HPCC, WEFT_HTSIM and WEFT_ASTRA_SIM name the programs, which are not part of Weft. Without `--peers`, those
that are there run. Both sides of a case read one list of flows, and have the same topology, packets, marks, memory
and parameters of congestion control, written from one scenario (peers/); htsim_uec sets NSCC's parameters itself.

A slowdown is a flow's completion time over its time alone on the fabric, which is Weft's in both rows; a second table
has slowdowns by size. Correlations are Pearson's of the logarithms, and Spearman's; that of slowdowns leaves sizes and
distances out. The least processor time of all turns counts; the emulated times of turns are the same. With several
`--hash-seeds`, Weft runs with each of them and so with other paths: the further runs show by how much runs differ that
differ in nothing else. Flows between the same two hosts share a queue pair in Weft and have one each in the other
simulators; `--one-per-pair` runs the first of them alone. `weft run` finds its modules and fabric.p4 compiled, as from
its second run on.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
from bench_websearch import HPCC_FABRIC, LOAD
from figures import argument_parser, report_rows
from peers import PEERS, MissingPeerError, PeerRun, Work, agreement, run_weft, slowdowns
from scheduling import realtime_this_process

from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_NS, PS_PER_US
from weft.traffic.flow_sizes import flow_sizes
from weft.traffic.patterns import Flow, permutation
from weft.traffic.workload import poisson_flows

SEED = 1
HOST_BPS = 100_000_000_000
NSCC_TREE = {"k": 8, "planes": 1, "host_rate": "100Gb/s", "delay": "1us", "queue_capacity": "178880B"}
"""With the queues that htsim_uec chooses: a bandwidth-delay product, 43 packets of 4,160 bytes in its frames."""
NSCC_MARKS = {"kmin": "37440B", "kmax": "145600B", "pmax": 1}
"""9 and 35 packets, a fifth and four fifths of it."""
TREE_HOSTS, SWITCH_HOSTS = 128, 64
SIZE_RANGES = ((0, 10_000), (10_000, 100_000), (100_000, 1_000_000), (1_000_000, None))
"""From so many bytes to less than so many, for slowdowns by size."""
FLOW_BYTES, QUICK_BYTES = 2_000_000, 20_000
QUICK_US, QUICK_HOSTS = 20, 8
MIB = 1 << 20


@dataclass(frozen=True)
class Size:
    """How long flows start, how many bytes flows of a permutation have, how many hosts have one flow each."""

    duration_us: int
    flow_bytes: int
    hosts: int


def websearch_flows(hosts: int, duration_us: int, unit_ps: int) -> tuple[Flow, ...]:
    """Return WebSearch's flows; their starts are rounded down to the unit in which a peer reads them."""
    drawn = poisson_flows(hosts, [HOST_BPS], flow_sizes("websearch"), LOAD, duration_us * PS_PER_US, SEED)
    return tuple(replace(flow, start_ps=flow.start_ps // unit_ps * unit_ps) for flow in drawn)


def on_hpcc_fabric(congestion_control: str) -> Callable[[Size], Work]:
    """Return a case of ns-3's: switches of 32 MiB that pause when a port holds an eighth of the free memory."""

    def work(size: Size) -> Work:
        scenario = {
            "seed": SEED,
            "int": congestion_control == "hpcc",
            "fabric": HPCC_FABRIC,
            "buffer": {"capacity": "32MiB"},
            "pfc": {"classes": [3], "alpha": 0.125},
            "transport": {"congestion_control": congestion_control, "ack_interval": 1},
        }
        return Work(f"websearch-{congestion_control}", scenario, websearch_flows(320, size.duration_us, PS_PER_NS))

    return work


def on_nscc_tree(name: str, flows: Callable[[Size], Iterable[Flow]]) -> Callable[[Size], Work]:
    """Return a case of htsim_uec's: Ultra Ethernet's transport with NSCC, full queues trim packets."""

    def work(size: Size) -> Work:
        scenario = {
            "seed": SEED,
            "int": False,
            "mtu": 4096,
            "fabric": NSCC_TREE,
            "ecn": NSCC_MARKS,
            "trimming": {"classes": [3]},
            "transport": {"protocol": "uet"},
        }
        return Work(name, scenario, tuple(flows(size)))

    return work


def one_each(size: Size) -> Work:
    """Return a case of ASTRA-sim's: every host of a switch sends one flow to another, all at once."""
    draws, sizes = random.Random(SEED), flow_sizes("websearch")
    quantiles = np.array([draws.random() for _ in range(size.hosts)])
    flows = tuple(
        Flow(source, draws.choice([other for other in range(size.hosts) if other != source]), size_bytes)
        for source, size_bytes in enumerate(sizes.quantile_bytes(quantiles).tolist())
    )
    fabric = {"leaves": 1, "spines": 0, "planes": 1, "hosts_per_leaf": size.hosts, "host_rate": "100Gb/s"}
    return Work("one-each", {"seed": SEED, "int": False, "fabric": {**fabric, "delay": "1us"}}, flows)


@dataclass(frozen=True)
class Case:
    """Work for a simulator, named as in PEERS."""

    peer: str
    work: Callable[[Size], Work]


CASES: Mapping[str, Case] = {
    "websearch-dcqcn": Case("ns3-hpcc", on_hpcc_fabric("dcqcn")),
    "websearch-hpcc": Case("ns3-hpcc", on_hpcc_fabric("hpcc")),
    "websearch-nscc": Case(
        "htsim-uec",
        on_nscc_tree("websearch-nscc", lambda size: websearch_flows(TREE_HOSTS, size.duration_us, PS_PER_US)),
    ),
    "permutation-nscc": Case(
        "htsim-uec", on_nscc_tree("permutation-nscc", lambda size: permutation(TREE_HOSTS, size.flow_bytes, seed=SEED))
    ),
    "one-each": Case("astra-sim", one_each),
}


def one_per_pair(case: Case) -> Case:
    """Return the case with only the first flow from one host to another: in Weft later ones share its queue pair."""

    def work(size: Size) -> Work:
        whole = case.work(size)
        first: dict[tuple[int, int], Flow] = {}
        for flow in whole.flows:
            first.setdefault((flow.source, flow.destination), flow)
        return replace(whole, flows=tuple(first.values()))

    return replace(case, work=work)


@dataclass(frozen=True)
class Run:
    """One simulator in a case: processor time, peak memory, the last flow's end, slowdowns."""

    case: str
    simulator: str
    flows: int
    processor_s: float
    peak_mib: float
    end_us: float
    mean: float
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True)
class BySize:
    """Slowdowns of a simulator's flows of some sizes in a case."""

    case: str
    simulator: str
    sizes: str
    flows: int
    mean: float
    p50: float
    p95: float
    p99: float
    largest: float


@dataclass(frozen=True)
class Agreed:
    """How well another simulator agrees with Weft (peers.agreement); costs are Weft's over the other's."""

    case: str
    simulator: str
    pearson: float
    spearman: float
    of_slowdowns: float
    median_ratio: float
    within_tenth: float
    processor_ratio: float
    memory_ratio: float


@dataclass
class Tables:
    """The rows of all cases."""

    runs: list[Run] = field(default_factory=list)
    by_size: list[BySize] = field(default_factory=list)
    agreement: list[Agreed] = field(default_factory=list)

    def add(self, other: Tables) -> None:
        """Add the rows of another case."""
        self.runs += other.runs
        self.by_size += other.by_size
        self.agreement += other.agreement


def run_row(case: str, simulator: str, work: Work, runs: Sequence[PeerRun]) -> Run:
    """Return the row of a simulator after all its turns."""
    return Run(
        case,
        simulator,
        len(work.flows),
        min(run.spent.processor_s for run in runs),
        max(run.spent.peak_bytes for run in runs) / MIB,
        runs[0].end_ps / PS_PER_US,
        *slowdowns(completions(runs), work.ideal_ps),
    )


def completions(runs: Sequence[PeerRun]) -> Integers:
    """Return the flows' completion times, which are those of every turn."""
    found = runs[0].completion_ps
    assert found is not None, "all cases are lists of flows"
    return found


def size_rows(case: str, simulator: str, work: Work, runs: Sequence[PeerRun]) -> Iterator[BySize]:
    """Return the slowdowns of a simulator's flows by size; ranges without flows have no row."""
    took_ps, sizes = completions(runs), work.columns["size_bytes"]
    for least, end in SIZE_RANGES:
        chosen = (sizes >= least) & (sizes < (sizes.max() + 1 if end is None else end))
        if chosen.any():
            found = slowdowns(took_ps[chosen], work.ideal_ps[chosen])
            largest = float((took_ps[chosen] / work.ideal_ps[chosen]).max())
            named = f"from {least:,} B" if end is None else f"{least:,} to {end:,} B"
            yield BySize(case, simulator, named, int(chosen.sum()), *found, largest)


def agreed_row(case: str, simulator: str, work: Work, ours: Sequence[PeerRun], theirs: Sequence[PeerRun]) -> Agreed:
    """Return how well other runs agree with Weft's."""
    found = agreement(completions(ours), completions(theirs), work.ideal_ps)
    weft, other = (run_row(case, simulator, work, runs) for runs in (ours, theirs))
    return Agreed(
        case,
        simulator,
        found.pearson,
        found.spearman,
        found.pearson_of_slowdowns,
        found.median_ratio,
        found.within_tenth,
        weft.processor_s / other.processor_s,
        weft.peak_mib / other.peak_mib,
    )


def compare(case: Case, size: Size, turns: int, folder: Path, hash_seeds: Sequence[int] = (SEED,)) -> Tables:
    """Return the rows of Weft and the peer, and how well the peer agrees with Weft under the first hash seed.

    Further hash seeds have rows of their own. The peer stops after twice Weft's time. ns-3 would go on: timers of flows
    that were marked for the first time by their last acknowledgement never stop.
    """
    peer, work = PEERS[case.peer], case.work(size)
    by_seed = {seed: replace(work, scenario={**work.scenario, "hash_seed": seed}) for seed in hash_seeds}
    ours: dict[int, list[PeerRun]] = {seed: [] for seed in hash_seeds}
    theirs: list[PeerRun] = []
    for _ in range(turns):
        for seed, each in by_seed.items():
            ours[seed].append(run_weft(each, folder))
        end_ps = ours[hash_seeds[0]][0].end_ps
        theirs.append(peer.run(replace(work, stop_ps=2 * end_ps), folder))
    first, *further = hash_seeds
    others = {peer.title: theirs, **{f"Weft, hash seed {seed}": ours[seed] for seed in further}}
    runs = {"Weft": ours[first], **others}
    return Tables(
        [run_row(work.title, simulator, work, each) for simulator, each in runs.items()],
        [row for simulator, each in runs.items() for row in size_rows(work.title, simulator, work, each)],
        [agreed_row(work.title, simulator, work, ours[first], each) for simulator, each in others.items()],
    )


def show(tables: Tables, *, as_json: bool) -> None:
    """Print the tables."""
    if as_json:
        print(json.dumps(asdict(tables)))
        return
    report_rows("Weft and other simulators on the same flows: cost, and slowdowns", tables.runs, as_json=False)
    report_rows("Slowdowns by flows' sizes", tables.by_size, as_json=False)
    report_rows("Agreement flow by flow; costs are Weft's over the other's", tables.agreement, as_json=False)


def chosen_peers(named: list[str] | None) -> list[str]:
    """Return the peers to run: those named, otherwise those that are there. Raises MissingPeerError."""
    missing: dict[str, str] = {}
    for name in named or PEERS:
        try:
            PEERS[name].program()
        except MissingPeerError as error:
            missing[name] = str(error)
    if missing and (named or len(missing) == len(PEERS)):
        raise MissingPeerError("; ".join(missing.values()))
    for name, why in missing.items():
        print(f"bench_same_flows: without {name}: {why}", file=sys.stderr)
    return [name for name in named or PEERS if name not in missing]


def main() -> int:
    """Print the table; the exit status."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="NAME", help="of all")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), metavar="NAME", help="by default those there are")
    parser.add_argument("--duration-us", type=int, default=5000, help="time during which WebSearch's flows start")
    parser.add_argument(
        "--hash-seeds", type=int, nargs="+", default=[SEED], metavar="N", help="each draws other paths of Weft's flows"
    )
    parser.add_argument("--one-per-pair", action="store_true", help="the first flow between two hosts alone")
    parser.add_argument("--turns", type=int, default=1, help="of which the least processor time counts")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_US} us, small flows, runs of seconds")
    options = parser.parse_args()
    if options.turns < 1 or options.duration_us < 1:
        parser.error("--turns, --duration-us: 1 or more")
    try:
        peers = chosen_peers(options.peers)
    except MissingPeerError as error:
        print(f"bench_same_flows: {error}", file=sys.stderr)
        return 3
    if options.realtime:
        realtime_this_process()
    size = Size(options.duration_us, FLOW_BYTES, SWITCH_HOSTS)
    if options.quick:
        size = Size(QUICK_US, QUICK_BYTES, QUICK_HOSTS)
    tables = Tables()
    with tempfile.TemporaryDirectory() as name:
        run_weft(one_each(Size(QUICK_US, QUICK_BYTES, 2)), Path(name))  # leaves bytecode and the program's code
        for case in (CASES[each] for each in options.cases):
            if case.peer in peers:
                chosen = one_per_pair(case) if options.one_per_pair else case
                tables.add(compare(chosen, size, options.turns, Path(name), options.hash_seeds))
    if not tables.runs:
        parser.error("no case of --cases is for a simulator of --peers")
    show(tables, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
