"""9.3 ECMP and Dynamic Load Balancing Under Inference Traffic."""

from __future__ import annotations

from typing import Any

from weft.bench.background import background
from weft.bench.expert_dispatch import CANONICAL, Dispatches, even_sizes, expert_ranks, spaced
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.variants import LOAD_BALANCING, OWN, Variant
from weft.quantities.fairness import jain_index
from weft.quantities.readable import counted, format_size
from weft.quantities.units import MIB, PS_PER_US
from weft.report.run_directory import RunDirectory
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.traffic.patterns import Flow
from weft.trials import InvalidTrialError, Procedure, Trial, TrialRun

_CACHES, _DISPATCHES, _MIXED = "KV caches", "expert dispatches", "mixed"
_LOAD = 0.6
Key = tuple[str, str]


class InferenceLoadBalancing(BenchTest):
    """Caches, dispatches and both over the fabric's links, by way of balancing load."""

    section = "9.3"
    name = "load-balancing"
    title = "ECMP and Dynamic Load Balancing Under Inference Traffic"
    objective = "How evenly inference traffic uses the links between switches, by way of balancing load."
    compares_load_balancing = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        if not setup.subject.has_parallel_paths:
            raise NotApplicableError("no switch with hosts has a choice of links")
        names = setup.choose(smoke=(OWN, "adaptive"), standard=tuple(LOAD_BALANCING), full=tuple(LOAD_BALANCING))
        scenarios = setup.choose(smoke=(_CACHES, _MIXED), standard=_ALL, full=_ALL)
        setups, refused = _setups(setup, names)
        runs: dict[Key, TrialRun] = {}
        for name, each in setups.items():
            try:
                found = yield [_trial(each, LOAD_BALANCING[name].title, scenario) for scenario in scenarios]
            except InvalidTrialError as error:
                refused.append(f"{LOAD_BALANCING[name].title}: {error}")
                continue
            runs.update({(name, scenario): run for scenario, run in zip(scenarios, found, strict=True)})
        if not runs:
            raise NotApplicableError("; ".join(refused))
        shares = {key: _uplinks(setup, run.run) for key, run in runs.items()}
        indices = {key: min(jain_index(group) for group in each) for key, each in shares.items()}
        busiest = {key: 100 * max(map(max, each)) for key, each in shares.items()}
        last = next(reversed(runs))
        return Measured(
            tables=[
                ReportTable(
                    f"Links between switches, {scenario}",
                    [
                        "load balancing",
                        "JFI",
                        "largest (%)",
                        "least (%)",
                        "oversubscription",
                        "retransmitted",
                        "out of order",
                    ],
                    [
                        _row(setup, name, shares[name, scenario], runs[name, scenario])
                        for name in setups
                        if (name, scenario) in runs
                    ],
                    "share of a link's capacity while traffic ran; JFI of the parallel links of the worst switch; "
                    "oversubscription: busiest link over the mean of its switch",
                )
                for scenario in scenarios
            ],
            bars=[
                BarFigure(
                    f"JFI of parallel links, {scenario}",
                    Axis("JFI"),
                    [LOAD_BALANCING[name].title for name in setups if (name, scenario) in runs],
                    {"JFI": [indices[name, scenario] for name in setups if (name, scenario) in runs]},
                )
                for scenario in scenarios
            ],
            kpis=[
                KpiValue("Link_utilization", busiest[name, scenario], f"{LOAD_BALANCING[name].title}, {scenario}")
                for name, scenario in runs
                if scenario == last[1]
            ],
            repeatability=[
                repeatability(f"JFI, {LOAD_BALANCING[last[0]].title}, {last[1]}", "JFI", [indices[last]]),
            ],
            scaled=[
                f"caches are blocks of {format_size(_block(setup))} between all pairs at {_LOAD:.0%} of the NICs' rate",
                f"{_duration_ps(setup) / PS_PER_US:g} us of traffic; dispatches of model M1 follow each other",
                f"{counted(len(setups), 'way')} of balancing load, each with its default parameters",
            ],
            anomalies=refused,
        )


_ALL = (_CACHES, _DISPATCHES, _MIXED)


def _setups(setup: Setup, names: tuple[str, ...]) -> tuple[dict[str, Setup], list[str]]:
    found, refused = {}, []
    for name in names:
        try:
            found[name] = setup.under(Variant(setup.variant.transport, name))
        except NotApplicableError as error:
            refused.append(f"{LOAD_BALANCING[name].title}: {error}")
    return found, refused


def _block(setup: Setup) -> int:
    return setup.choose(smoke=MIB, standard=4 * MIB, full=16 * MIB)


def _duration_ps(setup: Setup) -> int:
    return setup.choose(smoke=200, standard=1500, full=100_000) * PS_PER_US


def _trial(setup: Setup, title: str, scenario: str) -> Trial:
    items: list[dict[str, Any]] = []
    if scenario != _DISPATCHES:
        items.append(setup.flows(background(setup, _LOAD, _duration_ps(setup), message_bytes=_block(setup))))
    if scenario != _CACHES:
        items.append(setup.flows(_dispatches(setup)))
    return setup.trial(f"{title}, {scenario}", items if len(items) == 1 else [{"together": items}])


def _dispatches(setup: Setup) -> list[Flow]:
    ranks = min(setup.subject.ranks, 96)
    members, sizes = expert_ranks(setup, ranks), even_sizes(CANONICAL["M1"], 16, ranks)
    one = spaced(setup, members, sizes, 1)
    count = max(1, min(_duration_ps(setup) // one.interval_ps, 40_000 // ranks**2 + 1))
    return Dispatches(members, sizes, count, one.interval_ps).groups(setup).flows


def _uplinks(setup: Setup, run: RunDirectory) -> list[list[float]]:
    """Return the shares of parallel links by group, of groups with a choice that have carried something."""
    groups = [
        [run.utilisation[port] for port in group.ports] for group in setup.subject.uplinks if len(group.ports) > 1
    ]
    return [group for group in groups if any(group)] or [[0.0]]


def _row(setup: Setup, name: str, groups: list[list[float]], run: TrialRun) -> list[Cell]:
    worst = max(groups, key=lambda group: max(group) * len(group) / (sum(group) or 1))
    return [
        LOAD_BALANCING[name].title,
        round(min(map(jain_index, groups)), 4),
        round(100 * max(map(max, groups)), 2),
        round(100 * min(map(min, groups)), 2),
        round(max(worst) * len(worst) / (sum(worst) or 1), 3),
        run.results.retransmissions,
        run.results.out_of_sequence_packets,
    ]
