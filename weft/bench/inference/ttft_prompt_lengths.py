"""10.1 TTFT Under Varying Prompt Lengths."""

from __future__ import annotations

import numpy as np

from weft.bench.figures import curve
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import Served, serving_of
from weft.bench.setup import Setup
from weft.quantities.arrays import Integers
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_MS
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure

PROMPTS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
_PERCENTILES = (50, 95, 99)
_CONTEXTS = {"4K": 4096, "32K": 32768, "128K": 131072}


class TtftPromptLengths(BenchTest):
    """Single requests by the length of their prompts."""

    section = "10.1"
    name = "ttft-prompt-lengths"
    title = "TTFT Under Varying Prompt Lengths"
    objective = "The time to the first token of a lone request by prompt length, and the transfer's part of it."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        serving = serving_of(setup)
        lengths = setup.choose(smoke=PROMPTS[::2], standard=PROMPTS, full=PROMPTS)
        repeats = setup.choose(smoke=2, standard=5, full=100)
        # A request comes when the one before it has its last token.
        apart_ps = 2 * serving.times.prefill_ps(lengths[-1]) + 50 * PS_PER_MS
        prompts = [length for length in lengths for _ in range(repeats)]
        (run,) = yield [setup.trial("single requests", [serving.lone(setup, prompts, apart_ps)])]
        served = Served(run)
        tokens, first_ms = served.records["prompt_tokens"], served.first_token_ms
        transfer_ms = served.transfer_ps / PS_PER_MS
        chosen = {length: np.flatnonzero(tokens == length) for length in lengths}
        longest = lengths[-1]
        return Measured(
            tables=[
                ReportTable(
                    "TTFT of single requests (ms)",
                    [
                        "prompt",
                        *(f"TTFT P{each}" for each in _PERCENTILES),
                        *(f"T_transfer P{each}" for each in _PERCENTILES),
                        *(f"T_transfer/TTFT P{each} (%)" for each in _PERCENTILES),
                        "T_prefill",
                        "T_decode_init",
                    ],
                    [_row(served, length, chosen[length]) for length in lengths],
                ),
                ReportTable(
                    "S_KV of the model",
                    ["configuration", "layers", *(f"{name} context (GB)" for name in _CONTEXTS)],
                    [
                        [
                            "CFG-B" if serving.layers == 80 else "CFG-E: a part of CFG-B",
                            serving.layers,
                            *(round(serving.kv_bytes_per_token * each / 1e9, 4) for each in _CONTEXTS.values()),
                        ]
                    ],
                    "2·L·H_kv·D·C·P_bytes with H_kv = 8, D = 128 and P_bytes = 2",
                ),
            ],
            curves=[
                CurveFigure(
                    "TTFT by prompt length",
                    Axis("prompt (tokens)", "", "log"),
                    Axis("time (ms)", "ms", "log"),
                    [
                        *(
                            curve(
                                f"TTFT P{each}",
                                lengths,
                                [np.percentile(first_ms[chosen[length]], each) for length in lengths],
                            )
                            for each in (50, 99)
                        ),
                        curve("T_transfer", lengths, [np.median(transfer_ms[chosen[length]]) for length in lengths]),
                    ],
                )
            ],
            kpis=[
                KpiValue(
                    "TTFT",
                    float(np.percentile(first_ms[chosen[longest]], 99)),
                    f"P99, single requests of {longest} tokens",
                )
            ],
            repeatability=[
                repeatability(f"TTFT, {longest} tokens", "ms", first_ms[chosen[longest]].tolist()),
            ],
            scaled=[
                serving.described(),
                f"{counted(repeats, 'request')} of a length in place of 100: alone, each takes the same time",
            ],
        )


def _row(served: Served, length: int, rows: Integers) -> list[Cell]:
    first_ms, transfer_ms = served.first_token_ms[rows], served.transfer_ps[rows] / PS_PER_MS
    parts = served.parts_ms
    return [
        length,
        *(round(float(np.percentile(first_ms, each)), 4) for each in _PERCENTILES),
        *(round(float(np.percentile(transfer_ms, each)), 4) for each in _PERCENTILES),
        *(round(100 * float(np.percentile(transfer_ms / first_ms, each)), 2) for each in _PERCENTILES),
        round(float(parts["T_prefill"][rows].mean()), 4),
        round(float(parts["T_decode_init"][rows].mean()), 4),
    ]
