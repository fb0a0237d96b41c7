"""Results of disaggregated inference, on the terminal, on pages and in sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console

from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_MS
from weft.recording.tables import Table, integers_of
from weft.results.columns import Column, ResultTable
from weft.results.inference_model import LATENCIES, InferenceResult
from weft.results.kinds import ResultKind
from weft.results.latencies import PERCENTILES, Latencies, latency_columns
from weft.results.report_parts import Axis, BarFigure, Curve, CurveFigure, ReportPart
from weft.results.request_files import STAGES, RequestFile
from weft.topologies import FabricSpec

FILE = RequestFile("inference")
_MOST_POINTS = 500
_LATENCY_NAMES = {
    "first_token": "time to first token",
    "per_token": "time per output token",
    "inter_token": "from token to token",
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
        _LATENCIES.print(console, _named(_LATENCY_NAMES, result.latency_ps))
        _STAGES.print(console, _named(_STAGE_NAMES, result.stages_ps))
        _INSTANCES.print(console, _instances(result))
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


_Named = tuple[str, Latencies]
_Instance = tuple[str, float, float | None]


def _named(names: Mapping[str, str], found: Mapping[str, Latencies]) -> list[_Named]:
    return [(name, found[key]) for key, name in names.items() if key in found]


def _of_named(row: _Named) -> Latencies:
    return row[1]


def _latencies(title: str, heading: str, name: str) -> ResultTable[_Named]:
    columns = latency_columns(_of_named, scale=PS_PER_MS, form="{:.3f}".format)
    return ResultTable(title, (Column("", lambda row: row[0], is_name=True, page={"title": name}), *columns), heading)


_LATENCIES = _latencies("Latencies", "latency (ms)", "latency (ms)")
_STAGES = _latencies("Stages", "where it comes from (ms)", "stage (ms)")
_INSTANCES = ResultTable[_Instance](
    "Instances",
    (
        Column("", lambda row: row[0], is_name=True, page={"title": "instance"}),
        Column("busy", lambda row: 100 * row[1], form="{:.1f} %".format),
        Column("batch", lambda row: row[2], form="{:.1f}".format),
    ),
    "instances",
    "busy: share of the time for which it computed. batch: requests that an iteration served, on average",
)


def _instances(result: InferenceResult) -> list[_Instance]:
    decode = zip(result.decode_utilisation, result.decode_batch, strict=True)
    return [
        *((f"prefill {number}", busy, None) for number, busy in enumerate(result.prefill_utilisation)),
        *((f"decode {number}", busy, batch) for number, (busy, batch) in enumerate(decode)),
    ]


def report_inference(results: Sequence[InferenceResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Distributions of latencies, what the time to the first token consists of, and tables."""
    for number, result in enumerate(results, 1):
        title = f"inference {number} of {result.name}"
        if result.records:
            yield _distributions(title, result.records)
            yield _first_token_parts(title, result.records)
        latencies = _named(_LATENCY_NAMES, result.latency_ps)
        yield _LATENCIES.part(latencies, _rates(result), f"Latencies of {title}")
        note = f"{_summary(result)}; {FILE.of(number - 1)} has a row for each"
        yield _STAGES.part(_named(_STAGE_NAMES, result.stages_ps), note, f"Stages of {title}")
        yield _INSTANCES.part(_instances(result), title=f"Instances of {title}")


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
    return Curve(name, (ordered[shown] / PS_PER_MS).round(6).tolist(), shares.round(6).tolist())


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
            name: [round(float(values[rows].mean()) / PS_PER_MS, 6) for rows in groups.values()]
            for name, values in parts.items()
        },
        text="Parts of the time to the first token, on average over the requests.",
    )


def _problems(result: InferenceResult) -> Iterator[tuple[str, str]]:
    for key, names, found, optional in (
        ("latency_ps", LATENCIES, result.latency_ps, {"per_token", "inter_token"}),
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


def _flattened(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return percentiles of a result's plain data, which are lists, and the mean of contention."""
    latencies = {
        f"{name}_p{percentile}_ps": value
        for name, found in result["latency_ps"].items()
        for percentile, value in zip(PERCENTILES.values(), found["percentiles"], strict=True)
    }
    return {**latencies, "contention_ps": result["stages_ps"]["transfer_contention"]["mean"]}


INFERENCE = ResultKind(
    key="inference",
    meaning="One for each item of inference; its place N in the list names `inference-N-requests.csv`.",
    model=InferenceResult,
    show=print_inference,
    order=6,
    report=report_inference,
    flow_file=FILE,
    problems=_problems,
    name="name",
    labels=("name", "requests"),
    columns=(
        *(
            Column[InferenceResult](title, key, unit="ms", scale=PS_PER_MS, digits=3, sweep={})
            for title, key in (
                ("first token p50", "first_token_p50_ps"),
                ("first token p99", "first_token_p99_ps"),
                ("per token p99", "per_token_p99_ps"),
                ("contention", "contention_ps"),
            )
        ),
        Column("goodput", "requests_per_s", unit="requests/s", digits=3, sweep={"more_is_better": True}),
    ),
    flattened=_flattened,
)
