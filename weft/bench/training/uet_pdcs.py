"""6.7 UET PDC Scalability and Connection Setup Rate."""

from __future__ import annotations

from weft.bench.figures import curve
from weft.bench.measures import goodput_bps, repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.bench.variants import Variant
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.traffic.patterns import Flow
from weft.trials import Procedure, Trial, TrialRun

ENDPOINTS = (100, 1000, 10_000, 100_000)
"""The draft's numbers of remote endpoints."""
_FIRST_BYTES = 64
_SHARE = 0.9
_PDCS_OF_A_FLOW = 256


class PdcScalability(BenchTest):
    """Rate at which a host opens PDCs, and how many share its link."""

    section = "6.7"
    name = "uet-pdcs"
    title = "UET PDC Scalability and Connection Setup Rate"
    objective = "How fast a host opens PDCs, and up to how many share its link without loss of throughput."
    compares_transports = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        setup.require_hosts(2, "a PDC")
        uet = setup.under(Variant("uet-rud", setup.variant.load_balancing))
        rc = setup.under(Variant("rc", setup.variant.load_balancing))
        counts = setup.choose(smoke=(16, 256), standard=(16, 100, 1000, 4000), full=(16, 100, 1000, 10_000, 30_000))
        peers = uet.subject.senders_to(0, 1) or [1]
        others = list(range(1, uet.subject.ranks)) if uet.subject.ranks > 2 else peers
        reach = [
            rank
            for rank in others
            if uet.subject.fabric.hops_between(uet.subject.edges[0], uet.subject.edges[rank]) is not None
        ]
        opened = [
            uet.trial(f"{count} PDCs at once", [uet.flows(_first_messages(reach, count))], _with_pdcs(count))
            for count in counts
        ]
        steady = [_steady(uet, reach, count) for count in counts]
        first = [
            each.trial(
                f"first byte, {name}", [each.flows(each.transfer(*each.subject.remote_pair(), _FIRST_BYTES)[:1])]
            )
            for name, each in (("UET", uet), ("RoCEv2", rc))
        ]
        runs = yield [*opened, *steady, *first]
        rates = {count: _rate(run, count) for count, run in zip(counts, runs, strict=False)}
        goodputs = {count: goodput_bps(run) / 1e9 for count, run in zip(counts, runs[len(counts) :], strict=False)}
        base = max(goodputs.values())
        sustained = [count for count in counts if goodputs[count] >= _SHARE * base]
        first_us = [int(run.flows["completion_ps"].max()) / PS_PER_US for run in runs[-2:]]
        return Measured(
            tables=[
                ReportTable(
                    "PDCs of one host",
                    ["PDCs", "establishment rate (PDCs/s)", "goodput of all (Gbps)", "of the best (%)"],
                    [_row(count, rates, goodputs, base) for count in counts],
                    f"to {len(reach)} remote endpoints, several PDCs to each",
                ),
                ReportTable(
                    "Data before handshake",
                    ["transport", f"completion of the first {_FIRST_BYTES} B (us)"],
                    [["UET RUD", round(first_us[0], 3)], ["RoCEv2 RDMA WRITE", round(first_us[1], 3)]],
                ),
            ],
            curves=[
                CurveFigure(
                    "PDC establishment rate",
                    Axis("PDCs opened at once", "", "log"),
                    Axis("PDCs/s"),
                    [curve("UET RUD", rates, rates.values())],
                )
            ],
            kpis=[
                KpiValue("PDC Establishment Rate", rates[counts[-1]], f"{counts[-1]} PDCs at once"),
                KpiValue(
                    "Max Concurrent PDCs",
                    float(max(sustained)),
                    f"at least {_SHARE:.0%} of the best goodput",
                    "≥" if sustained[-1] == counts[-1] else "=",
                ),
            ],
            repeatability=[repeatability("establishment rate", "PDCs/s", [rates[counts[-1]]])],
            scaled=[
                f"up to {counts[-1]} PDCs to {len(reach)} endpoints, not to {ENDPOINTS[0]} and more endpoints",
                "a NIC of Weft opens PDCs without a cost of its own, so the link's rate bounds the establishment rate",
            ],
        )


def _with_pdcs(count: int) -> dict[str, object]:
    return {"transport.max_pdcs": max(4096, min(32_767, count))}


def _spread(reach: list[int], count: int, size: int) -> list[Flow]:
    """Return flows from rank 0 over so many queue pairs, divided among all others; each has one PDC."""
    flows = []
    left = count
    for place, rank in enumerate(reach):
        share = min(left // (len(reach) - place), _PDCS_OF_A_FLOW)
        if share:
            flows.append(Flow(0, rank, size * share, queue_pairs=share))
        left -= share
    return flows


def _first_messages(reach: list[int], count: int) -> list[Flow]:
    return _spread(reach, count, _FIRST_BYTES)


def _steady(uet: Setup, reach: list[int], count: int) -> Trial:
    total_bytes = uet.subject.rank_rate_bps // 8 * uet.choose(smoke=20, standard=100, full=1000) // 10**6
    size = max(_FIRST_BYTES, total_bytes // count)
    return uet.trial(f"{count} PDCs share a link", [uet.flows(_spread(reach, count, size))], _with_pdcs(count))


def _rate(run: TrialRun, count: int) -> float:
    """Return PDCs a second: each has brought its first message when the last is acknowledged."""
    return count * PS_PER_S / float(run.flows["completion_ps"].max())


def _row(count: int, rates: dict[int, float], goodputs: dict[int, float], base: float) -> list[Cell]:
    return [count, round(rates[count]), round(goodputs[count], 1), round(100 * goodputs[count] / base, 1)]
