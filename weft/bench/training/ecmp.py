"""8.1 ECMP Entropy and Polarization."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from weft.bench.figures import curve
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.bench.spreading import HEADINGS, Spread, mean_of, require_paths, spread_of, transfers
from weft.bench.variants import Variant, changed
from weft.quantities.readable import counted
from weft.results.report_parts import Axis, CurveFigure, ReportTable
from weft.trials import Procedure, Trial

HASHES = {"5-tuple": "flow", "5-tuple and queue pair (BTH)": "flow_and_queue_pair"}
QUEUE_PAIRS = (1, 4, 8, 16, 32)
_MEASURES: dict[str, Callable[[Spread], float]] = {"MMR": lambda each: each.mmr, "JFI": lambda each: each.jfi}


class EcmpEntropy(BenchTest):
    """Balance of ECMP by queue pairs of each pair of hosts, with and without the BTH in the hash."""

    section = "8.1"
    name = "ecmp-entropy"
    title = "ECMP Entropy and Polarization"
    objective = "How unevenly hashing spreads the few long flows of training, by queue pairs of each pair of hosts."
    compares_load_balancing = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        require_paths(setup)
        ecmp = setup.under(Variant(setup.variant.transport, "ecmp"))
        counts = setup.choose(smoke=(1, 8), standard=QUEUE_PAIRS, full=QUEUE_PAIRS)
        iterations = setup.choose(smoke=1, standard=5, full=20)
        hashes = setup.choose(smoke=dict(list(HASHES.items())[:1]), standard=HASHES, full=HASHES)
        keys = list(product(hashes, counts))
        runs = yield [
            with_hash(hashes[name], transfers(ecmp, f"{name}, {counted(count, 'queue pair')}", count, number))
            for name, count in keys
            for number in range(iterations)
        ]
        spreads = [spread_of(ecmp, run) for run in runs]
        by_key = {key: spreads[place * iterations : (place + 1) * iterations] for place, key in enumerate(keys)}
        first = keys[0]
        return Measured(
            tables=[
                ReportTable(
                    "Balance by queue pairs of each pair of hosts",
                    ["hash", "queue pairs", *HEADINGS],
                    [[name, count, *mean_of(by_key[name, count]).row] for name, count in keys],
                    "MMR and JFI of the worst switch; mean of all seeds",
                )
            ],
            curves=[
                CurveFigure(
                    f"{measure} by queue pairs",
                    Axis("queue pairs of each pair of hosts"),
                    Axis(measure),
                    [
                        curve(name, counts, [_mean([value(each) for each in by_key[name, count]]) for count in counts])
                        for name in hashes
                    ],
                    text="mean of all seeds",
                )
                for measure, value in _MEASURES.items()
            ],
            kpis=[
                KpiValue(
                    "ECMP Imbalance",
                    _mean([each.mmr for each in by_key[key]]),
                    f"{counted(key[1], 'queue pair')}, {key[0]}",
                )
                for key in keys
            ],
            repeatability=[
                repeatability(
                    f"MMR, {counted(first[1], 'queue pair')}, {first[0]}", "ratio", [each.mmr for each in by_key[first]]
                )
            ],
            scaled=[
                f"the fabric's own {len(ecmp.subject.uplinks)} leaf switches in place of 8 to 64",
                "every seed draws other hash seeds and source ports",
            ],
        )


def with_hash(mode: str, trial: Trial) -> Trial:
    """Return a trial with another way in which switches hash."""
    return Trial(trial.label, changed(trial.tree, {"routing.load_balancing": mode}))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
