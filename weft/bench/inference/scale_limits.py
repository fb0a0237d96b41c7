"""12.1 Fabric Scale Limits for Inference Clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.bench.expert_dispatch import CANONICAL, Dispatches, crossing_bytes, even_sizes, spaced
from weft.bench.figures import curve
from weft.bench.flow_groups import FlowGroups
from weft.bench.link_failures import control_of
from weft.bench.measures import busiest_uplink_share
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import Served, Serving, demand_of, serving_of
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.readable import counted, format_size
from weft.quantities.units import MIB, PS_PER_MS, PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure, Trial, TrialRun

_ALLOWED = 0.1
_LOAD = 0.6


@dataclass(frozen=True)
class _Point:
    """Figures of a cluster. Rates are by rank or host, so that a fabric that scales keeps them."""

    ranks: int
    kv_bytes_per_s: float
    kv_tail_us: float
    dispatch_tail_us: float
    dispatch_bytes_per_s: float
    first_token_ms: float
    tokens_per_s: float
    busiest: float

    def degradations(self, base: _Point) -> dict[str, float]:
        """Return by how much each figure is worse than a base's, as a share of it."""
        return {
            "KV_xfer_bandwidth": 1 - self.kv_bytes_per_s / base.kv_bytes_per_s,
            "KV_xfer_latency": self.kv_tail_us / base.kv_tail_us - 1,
            "EP_alltoall_bandwidth": 1 - self.dispatch_bytes_per_s / base.dispatch_bytes_per_s,
            "TTFT": self.first_token_ms / base.first_token_ms - 1,
            "TPS_output": 1 - self.tokens_per_s / base.tokens_per_s,
        }


class ScaleLimits(BenchTest):
    """Clusters on more and more of the fabric's hosts."""

    section = "12.1"
    name = "scale-limits"
    title = "Fabric Scale Limits for Inference Clusters"
    objective = "Up to which size a cluster keeps the performance of a small one."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        available = len(setup.subject.servers)
        if available < 4:
            raise NotApplicableError(f"several sizes of clusters take 4 hosts; the fabric has {available}")
        possible = [2**power for power in range(1, available.bit_length()) if 2**power < available] + [available]
        sizes = setup.choose(smoke=(possible[0], possible[-1]), standard=tuple(possible), full=tuple(possible))
        trials, makers = [], []
        for size in sizes:
            maker = _Cluster(setup, size)
            makers.append(maker)
            trials += maker.trials()
        convergence = _convergence(setup)
        runs = yield [*trials, *convergence]
        points = [maker.point(*runs[3 * number : 3 * number + 3]) for number, maker in enumerate(makers)]
        base = points[0]
        degraded = {
            size: [name for name, by in point.degradations(base).items() if by > _ALLOWED]
            for size, point in zip(sizes, points, strict=True)
        }
        limit = next((size for size in sizes if degraded[size]), None)
        event = runs[-1].results.link_events[0] if convergence and runs[-1].results.link_events else None
        return Measured(
            tables=[
                ReportTable(
                    "Figures by size of the cluster",
                    [
                        "hosts",
                        "ranks",
                        "KV GB/s a pair",
                        "KV P99 (us)",
                        "dispatch P99 (us)",
                        "dispatch GB/s a rank",
                        "TTFT P99 (ms)",
                        "TPS_output a host",
                        "busiest link (%)",
                        "worse by more than 10 %",
                    ],
                    [_row(size, point, degraded[size]) for size, point in zip(sizes, points, strict=True)],
                    f"compared with {counted(sizes[0], 'host')}; "
                    + (f"the limit is below {counted(limit, 'host')}" if limit else "no size is worse by more"),
                ),
                *(
                    [
                        ReportTable(
                            "Control plane of the whole fabric",
                            ["link that fails", "convergence (ms)", "switches written", "entries written"],
                            [
                                [
                                    event.link,
                                    round((event.recovery_ps or 0) / PS_PER_MS, 4),
                                    event.switches_written,
                                    event.entries_written,
                                ]
                            ],
                            "from the failure until all tables followed; entries written stand for the tables' size",
                        )
                    ]
                    if event is not None
                    else []
                ),
            ],
            curves=[
                CurveFigure(
                    "KV cache throughput of a pair by size",
                    Axis("hosts"),
                    Axis("throughput (GB/s)", "GB/s"),
                    [curve("KV caches", sizes, [point.kv_bytes_per_s / 1e9 for point in points])],
                ),
                CurveFigure(
                    "Latency of a dispatch by size",
                    Axis("hosts"),
                    Axis("P99 (us)", "us"),
                    [curve("dispatch", sizes, [point.dispatch_tail_us for point in points])],
                ),
            ],
            kpis=[KpiValue("Link_utilization", 100 * points[-1].busiest, f"{counted(sizes[-1], 'host')}, KV caches")],
            scaled=[
                f"clusters of up to {counted(sizes[-1], 'host')} on one fabric, spread evenly over it, in place of up "
                "to 1024 nodes",
                makers[-1].serving.described(),
                "every prefill worker gets the same requests at the same times, whatever the cluster's size",
                "of dispatches the rate by rank is compared: in a larger group a rank sends more tokens to others",
                control_of(setup),
            ],
            anomalies=[
                f"{counted(size, 'host')}: {', '.join(names)} over 10 % worse than with {counted(sizes[0], 'host')}"
                for size, names in degraded.items()
                if names
            ],
        )


class _Cluster:
    """A cluster on some hosts, spread evenly over the fabric."""

    def __init__(self, setup: Setup, hosts: int) -> None:
        self._setup, self._hosts = setup, hosts
        servers = setup.subject.servers
        chosen = [servers[number * len(servers) // hosts] for number in range(hosts)]
        self._ranks = [rank for ranks in chosen for rank in ranks]
        places = tuple(number * len(servers) // hosts for number in range(hosts))
        prefill = hosts // 2
        whole = serving_of(setup)
        self.serving = Serving(setup.subject, whole.layers, whole.tensor, places[:prefill], places[prefill:])
        # As many bytes of every rank, whatever their number.
        self._dispatches = self._spaced()
        self._blocks = self._pairs()

    def _spaced(self) -> Dispatches:
        count = self._setup.choose(smoke=2, standard=5, full=50)
        sizes = even_sizes(CANONICAL["M1"], self._setup.choose(smoke=16, standard=64, full=128), len(self._ranks))
        return spaced(self._setup, self._ranks, sizes, count)

    def _pairs(self) -> FlowGroups:
        found, size = FlowGroups(), self._setup.choose(smoke=MIB, standard=4 * MIB, full=16 * MIB)
        half = len(self._ranks) // 2
        for source, destination in zip(self._ranks[:half], self._ranks[half:], strict=False):
            for _ in range(self._setup.choose(smoke=4, standard=8, full=100)):
                found.add(self._setup.transfer(source, destination, size))
        return found

    def trials(self) -> list[Trial]:
        """Return the trials of KV caches, of dispatches and of requests."""
        title = counted(self._hosts, "host")
        workers = len(self.serving.prefill) * self.serving.instances_per_host
        demand = demand_of(self._setup, count=self._setup.choose(smoke=10, standard=20, full=1000))
        demand = demand.at_rate(_LOAD * self.serving.capacity_per_s(demand) / workers)
        return [
            self._setup.trial(f"{title}, KV caches", [self._blocks.item(self._setup)]),
            self._setup.trial(f"{title}, dispatches", [self._dispatches.groups(self._setup).item(self._setup)]),
            self._setup.trial(f"{title}, requests", [self.serving.copied(self._setup, demand, workers)]),
        ]

    def point(self, caches: TrialRun, dispatches: TrialRun, requests: TrialRun) -> _Point:
        """Return the figures of the trials."""
        blocks = self._blocks.times(caches)
        latency_ps = self._dispatches.groups(self._setup).times(dispatches).latency_ps
        served = Served(requests)
        crossing = crossing_bytes(self._setup, self._ranks, self._dispatches.sizes)
        each = len(blocks.latency_ps) // max(1, len(self._ranks) // 2)
        ends = np.sort((blocks.start_ps + blocks.latency_ps).reshape(-1, each), axis=1)
        own = np.diff(ends, axis=1, prepend=0)
        return _Point(
            len(self._ranks),
            blocks.bytes_per_s / (len(self._ranks) // 2),
            float(np.percentile(own, 99)) / PS_PER_US,
            float(np.percentile(latency_ps, 99)) / PS_PER_US,
            float(crossing.sum()) * PS_PER_S / float(np.median(latency_ps)) / len(self._ranks),
            served.first_token_percentile_ms(),
            served.output_tokens_per_s / self._hosts,
            busiest_uplink_share(caches, self._setup.subject),
        )


def _convergence(setup: Setup) -> list[Trial]:
    """Return a trial with a failing link between switches, if there is one."""
    links = setup.subject.fabric.training_links
    if not links:
        return []
    pair = setup.subject.remote_pair()
    flows = setup.transfer(*pair, 4 * MIB)
    event = {"link": f"{links[0].a.node}<->{links[0].b.node}", "state": "down", "at": "20us"}
    return [setup.trial(f"a link fails, {format_size(4 * MIB)}", [setup.flows(flows)], events=[event])]


def _row(size: int, point: _Point, degraded: list[str]) -> list[Cell]:
    return [
        size,
        point.ranks,
        round(point.kv_bytes_per_s / 1e9, 3),
        round(point.kv_tail_us, 2),
        round(point.dispatch_tail_us, 2),
        round(point.dispatch_bytes_per_s / 1e9, 3),
        round(point.first_token_ms, 4),
        round(point.tokens_per_s, 2),
        round(100 * point.busiest, 2),
        ", ".join(degraded) or "none",
    ]
