"""What disaggregated inference found, on the terminal, on pages and in sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console

from weft.recording.tables import Integers, Table, integers_of
from weft.results.figure_tables import print_figures
from weft.results.inference_model import LATENCIES, InferenceResult
from weft.results.kinds import MeasuredColumn, ResultKind
from weft.results.latencies import COLUMNS, PERCENTILES, Latencies
from weft.results.report_parts import Axis, BarFigure, Cell, Curve, CurveFigure, ReportPart, ReportTable
from weft.results.request_files import STAGES, RequestFile
from weft.topologies import FabricSpec

FILE = RequestFile("inference")
_PS_PER_MS = 1e9
_MOST_POINTS = 500
_LATENCY_NAMES = {
    "first_token": "time to first token",
    "per_token": "time per output token",
    "end_to_end": "end to end",
    "prompt_done": "prompt computed",
}
_STAGE_NAMES = {
    "prefill_queue": "queue at prefill",
    "prefill": "prefill",
    "transfer_ideal": "KV transfer, ideal",
    "transfer_contention": "KV transfer, contention",
    "decode_queue": "queue at decode",
    "decode": "decode",
}


def print_inference(console: Console, results: Sequence[InferenceResult]) -> None:
    """Print latencies, what they come from, and how busy instances were."""
    for result in results:
        console.print(f"\n[bold]inference of {result.name}[/bold], {_summary(result)} (time is emulated)")
        print_figures(console, "latency (ms)", ["", *COLUMNS], _latency_rows(result), names=("",))
        print_figures(console, "where it comes from (ms)", ["", *COLUMNS], _stage_rows(result), names=("",))
        print_figures(console, "instances", ["", "busy", "batch"], _instance_rows(result), names=("",))
        console.print(_rates(result))


def _summary(result: InferenceResult) -> str:
    return (
        f"{result.requests} requests of {result.prompt_tokens:,} prompt and {result.output_tokens:,} output tokens; "
        f"{result.kv_bytes_per_token:,} B of KV cache a token, {result.sent_bytes:,} B sent, "
        f"{result.retransmissions} packets retransmitted"
    )


def _rates(result: InferenceResult) -> str:
    served = f"{result.output_tokens_per_s:,.0f} output tokens/s"
    if result.within_slo is None:
        return f"{served}, {result.requests_per_s:.3g} requests/s"
    share = 100 * result.within_slo / result.requests
    goodput = f"goodput {result.requests_per_s:.3g} requests/s"
    return f"{served}; {share:.1f} % of the requests meet the objectives: {goodput}"


def _latency_rows(result: InferenceResult) -> list[list[str]]:
    return _rows(_LATENCY_NAMES, result.latency_ps)


def _stage_rows(result: InferenceResult) -> list[list[str]]:
    return _rows(_STAGE_NAMES, result.stages_ps)


def _rows(names: Mapping[str, str], found: Mapping[str, Latencies]) -> list[list[str]]:
    return [[name, *map(_ms, found[key].in_columns())] for key, name in names.items() if key in found]


def _instance_rows(result: InferenceResult) -> list[list[str]]:
    prefill = [
        [f"prefill {number}", f"{100 * busy:.1f} %", ""]
        for number, busy in enumerate(result.prefill_utilisation)
    ]
    decode = [
        [f"decode {number}", f"{100 * busy:.1f} %", f"{batch:.1f}"]
        for number, (busy, batch) in enumerate(
            zip(result.decode_utilisation, result.decode_batch, strict=True)
        )
    ]
    return prefill + decode


def _ms(time_ps: int) -> str:
    return f"{time_ps / _PS_PER_MS:.3f}"


def report_inference(results: Sequence[InferenceResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Distributions of latencies, what the time to the first token consists of, and tables."""
    for number, result in enumerate(results, 1):
        title = f"inference {number} of {result.name}"
        if result.records:
            yield _distributions(title, result.records)
            yield _first_token_parts(title, result.records)
        yield ReportTable(
            f"Latencies of {title}", ["latency (ms)", *COLUMNS], _latency_rows(result), _rates(result)
        )
        note = f"{_summary(result)}; {FILE.of(number - 1)} has a row for each"
        yield ReportTable(f"Stages of {title}", ["stage (ms)", *COLUMNS], _stage_rows(result), note)
        rows: Sequence[Sequence[Cell]] = _instance_rows(result)
        note = "busy: share of the time for which it computed. batch: requests that an iteration served, on average"
        yield ReportTable(f"Instances of {title}", ["instance", "busy", "batch"], rows, note)


def _distributions(title: str, records: Table) -> CurveFigure:
    arrived_to_prompt = sum(integers_of(records, f"{stage}_ps") for stage in STAGES[:2])
    columns = {
        "prompt_done": np.asarray(arrived_to_prompt, np.int64),
        "first_token": integers_of(records, "first_token_ps"),
        "end_to_end": integers_of(records, "end_to_end_ps"),
    }
    return CurveFigure(
        f"Latencies of requests of {title}",
        Axis("time since the arrival (ms)", "ms", "log"),
        Axis("share of the requests"),
        [_distribution(_LATENCY_NAMES[key], values) for key, values in columns.items()],
        text="The share of requests that had their prompt computed, their first or their last token within a time.",
    )


def _distribution(name: str, values: Integers) -> Curve:
    ordered = np.sort(values)
    shown = np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), _MOST_POINTS)).round().astype(int))
    shares = (shown + 1) / len(ordered)
    return Curve(name, (ordered[shown] / _PS_PER_MS).round(6).tolist(), shares.round(6).tolist())


def _first_token_parts(title: str, records: Table) -> BarFigure:
    first_token_ps = integers_of(records, "first_token_ps")
    before = {stage: integers_of(records, f"{stage}_ps") for stage in STAGES[:-1]}
    first_iteration_ps = first_token_ps - np.asarray(sum(before.values()), np.int64)
    slowest = np.argsort(-first_token_ps, kind="stable")
    count = len(slowest)
    groups = {
        "all requests": slowest,
        "the slowest 10 %": slowest[: max(1, count // 10)],
        "the slowest 1 %": slowest[: max(1, count // 100)],
    }
    parts = {_STAGE_NAMES[stage]: values for stage, values in before.items()}
    parts["first iteration of decode"] = first_iteration_ps
    return BarFigure(
        f"Time to the first token of {title}",
        Axis("time (ms)", "ms"),
        rows=list(groups),
        parts={
            name: [round(float(values[rows].mean()) / _PS_PER_MS, 6) for rows in groups.values()]
            for name, values in parts.items()
        },
        text="What the time to the first token consists of, on average over the requests.",
    )


def _problems(result: InferenceResult) -> Iterator[tuple[str, str]]:
    for key, names, found, optional in (
        ("latency_ps", LATENCIES, result.latency_ps, {"per_token"}),
        ("stages_ps", STAGES, result.stages_ps, set()),
    ):
        if not set(names) - optional <= set(found) <= set(names):
            yield key, f"has keys {', '.join(found) or 'none'}; there are {', '.join(names)}"
        for name, latencies in found.items():
            if len(latencies.percentiles) != len(PERCENTILES):
                has = f"has {len(latencies.percentiles)} values; there are {len(PERCENTILES)} percentiles"
                yield f"{key}.{name}.percentiles", has
    if len(result.decode_batch) != len(result.decode_utilisation):
        yield (
            "decode_batch",
            f"has {len(result.decode_batch)} values of {len(result.decode_utilisation)} instances",
        )


def _columns(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return percentiles of a result's plain data, which are lists, and the mean of contention."""
    latencies = {
        f"{name}_p{percentile}_ps": value
        for name, found in result["latency_ps"].items()
        for percentile, value in zip(PERCENTILES.values(), found["percentiles"], strict=True)
    }
    return {**latencies, "contention_ps": result["stages_ps"]["transfer_contention"]["mean"]}


INFERENCE = ResultKind(
    key="inference",
    meaning="Of each item of inference; its place N in the list names `inference-N-requests.csv`.",
    model=InferenceResult,
    show=print_inference,
    order=6,
    report=report_inference,
    flow_file=FILE,
    problems=_problems,
    name="name",
    labels=("name", "requests"),
    measured=(
        MeasuredColumn("first token p50", "ms", 3, "first_token_p50_ps", _PS_PER_MS),
        MeasuredColumn("first token p99", "ms", 3, "first_token_p99_ps", _PS_PER_MS),
        MeasuredColumn("per token p99", "ms", 3, "per_token_p99_ps", _PS_PER_MS),
        MeasuredColumn("contention", "ms", 3, "contention_ps", _PS_PER_MS),
        MeasuredColumn("goodput", "requests/s", 3, "requests_per_s"),
    ),
    columns=_columns,
)
