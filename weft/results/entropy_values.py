"""Entropy values of transports that choose paths by them, and what hosts heard of these paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from weft.quantities.plain_data import PlainData
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.traffic.host_stats import HostStats


@dataclass(frozen=True)
class EntropyValuesResult(PlainData):
    """Entropy values of one plane over all queue pairs: at the end of the run, or when their queue pair ended."""

    plane: int
    """Its number, of the hosts' NICs."""
    good: int
    """Entropy values in use or in reserve."""
    skip: int
    """Those to be passed over once, because a switch marked or trimmed a packet."""
    assumed_bad: int
    """Those whose path counts as failed until a probe comes back."""
    denied: int
    """Those that an administrator has excluded."""
    most_assumed_bad: int
    """Those with a failed path at one host, the one with most."""
    most_assumed_bad_host: str
    """That host, the first of several; "" if there is none."""


@dataclass(frozen=True)
class PathSignalsResult(PlainData):
    """Signals by which hosts judge the paths of their entropy values, over the whole run."""

    sacks: int
    """Selective acknowledgements received."""
    trim_nacks: int
    """NACKs received for trimmed packets."""
    other_nacks: int
    """NACKs received for another reason."""
    probes: int
    """Probes sent."""
    probes_answered: int
    """Probes that were answered."""
    skips: int
    """Times that an entropy value was to be passed over once."""
    failures: int
    """Times that an entropy value's path was taken for failed."""
    recoveries: int
    """Times that an entropy value became good again."""
    ev_probes: int
    """Probes of an entropy value sent to NICs, not queue pairs: by receivers, of paths for SACKs, and by operators."""
    ev_probes_answered: int
    """Those that were answered."""
    port_updates: int
    """Messages to peers about ports that went down or came up, repeated ones included."""
    timeouts: int
    """Retransmission timeouts."""


def entropy_values_results(endpoints: Sequence[HostStats]) -> list[EntropyValuesResult]:
    """Return a result for each plane; none without such a transport."""
    of_planes: dict[int, dict[str, Counter[str]]] = {}
    for endpoint in endpoints:
        for plane, states in enumerate(endpoint["entropy_values"]):
            of_planes.setdefault(plane, {})[endpoint["name"]] = Counter(states)
    results = []
    for plane, hosts in sorted(of_planes.items()):
        states = sum(hosts.values(), Counter[str]())
        most = max(hosts, key=lambda host: hosts[host]["assumed_bad"])
        results.append(
            EntropyValuesResult(
                plane=plane,
                good=states["good"],
                skip=states["skip"],
                assumed_bad=states["assumed_bad"],
                denied=states["denied"],
                most_assumed_bad=hosts[most]["assumed_bad"],
                most_assumed_bad_host=most if hosts[most]["assumed_bad"] else "",
            )
        )
    return results


def path_signals_results(endpoints: Sequence[HostStats]) -> list[PathSignalsResult]:
    """Return a single result, none without such a transport."""
    totals = sum((Counter(endpoint["totals"]) for endpoint in endpoints), Counter[str]())
    if not any("evs_to_good" in endpoint["totals"] for endpoint in endpoints):
        return []
    return [
        PathSignalsResult(
            sacks=totals["acknowledgements_received"],
            trim_nacks=totals["trim_nacks_received"],
            other_nacks=totals["other_nacks_received"],
            probes=totals["probes_sent"],
            probes_answered=totals["probes_answered"],
            skips=totals["evs_to_skip"],
            failures=totals["evs_to_assumed_bad"],
            recoveries=totals["evs_to_good"],
            ev_probes=totals["ev_probes_sent"],
            ev_probes_answered=totals["ev_probes_answered"],
            port_updates=totals["port_updates_sent"],
            timeouts=totals["timeouts"],
        )
    ]


_VALUES = ResultTable[EntropyValuesResult](
    "EntropyValues",
    (
        Column("plane", "plane"),
        Column("good", "good"),
        Column("skip", "skip"),
        Column("assumed\nbad", "assumed_bad", sweep={}),
        Column("denied", "denied"),
        Column("most", "most_assumed_bad", page={"title": "most assumed bad"}),
        Column("at", "most_assumed_bad_host"),
    ),
    "[bold]entropy values[/bold] at the end of their queue pairs",
)
ENTROPY_VALUES = ResultKind(key="entropy_values", model=EntropyValuesResult, tables=(_VALUES,))
_SIGNALS = ResultTable[PathSignalsResult](
    "PathSignals",
    (
        Column("SACKs", "sacks"),
        Column("NACKs,\ntrimmed", "trim_nacks", sweep={}),
        Column("NACKs,\nother", "other_nacks"),
        Column("probes", "probes"),
        Column("answered", "probes_answered"),
        Column("skips", "skips", sweep={}),
        Column("failures", "failures", sweep={}),
        Column("recoveries", "recoveries"),
        Column("EV\nprobes", "ev_probes"),
        Column("answered", "ev_probes_answered"),
        Column("port\nupdates", "port_updates"),
        Column("timeouts", "timeouts"),
    ),
    "[bold]paths of entropy values[/bold]",
)
PATH_SIGNALS = ResultKind(key="path_signals", model=PathSignalsResult, tables=(_SIGNALS,))
