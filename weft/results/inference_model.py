"""The result of disaggregated inference, made from when prompts were computed, caches arrived and outputs were done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from weft.jobs.formulas.kv_cache import kv_bytes_per_token
from weft.jobs.inference.decode import DecodeTimes
from weft.jobs.inference.objectives import Objectives
from weft.jobs.inference.plan import InferencePlan
from weft.jobs.inference.prefill import PrefillSchedule
from weft.jobs.inference.requests import NO_PREFIX
from weft.jobs.inference.transfer_job import RequestTimes
from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_S
from weft.recording import tables
from weft.recording.tables import integers_of
from weft.results.kinds import ItemResult
from weft.results.latencies import Latencies, latencies_of, weighted_latencies
from weft.results.request_files import STAGES
from weft.results.work import Work, tokens_of

LATENCIES = ("first_token", "per_token", "inter_token", "end_to_end", "prompt_done")


@dataclass(frozen=True)
class InferenceResult(ItemResult):
    """Requests that prefill and decode instances served, from the start to the last request's last token.

    A request's time is divided into stages that add up to it ([definitions](inference.md#where-latencies-come-from)).
    `records` has a row per request; it is written to a separate table, not to the results file.
    """

    derived: ClassVar[Mapping[str, str]] = {
        "output_tokens_per_s": "output_tokens_per_s",
        "requests_per_s": "requests_per_s",
    }

    name: str
    """Name of the model."""
    requests: int
    """How many."""
    prompt_tokens: int
    """Prompt tokens of all requests."""
    output_tokens: int
    """Output tokens of all requests."""
    kv_bytes_per_token: int
    """Size of a token's KV cache, in all layers."""
    sent_bytes: int
    """Bytes of KV caches sent for all requests; more than their size where several decode ranks need the same heads."""
    time_ps: int
    """To the last token."""
    latency_ps: dict[str, Latencies]
    """`first_token` and `end_to_end` (since the arrival), `per_token` (from the first token to the last, of requests
    with several), `inter_token` (from a token to the next, of all tokens but the first of each request), `prompt_done`
    (from the arrival until the prompt has been computed)."""
    stages_ps: dict[str, Latencies]
    """Time of each stage of a request."""
    prefill_utilisation: list[float]
    """Share of the time for which each prefill instance computed."""
    decode_utilisation: list[float]
    """Share of the time for which each decode instance computed."""
    decode_batch: list[float]
    """Requests per iteration of each decode instance, on average."""
    slo_first_token_ps: int | None
    """Objective for the time to the first token; null without one."""
    slo_per_token_ps: int | None
    """Objective for the time per token; null without one."""
    within_slo: int | None
    """Requests that met both objectives; null without them."""
    retransmissions: int
    """Packets sent again by all hosts meanwhile."""
    prefixed_requests: int = 0
    """Requests with a shared prefix."""
    prefill_prefix_hits: int = 0
    """Requests with a prefix that their prefill instance had computed before; only with prefix caching."""
    decode_prefix_hits: int = 0
    """Requests with a prefix that their decode instance had been sent before; only with prefix caching."""
    prefill_ranks: int = 0
    """Ranks of all prefill instances."""
    decode_ranks: int = 0
    """Ranks of all decode instances."""
    records: tables.Table = field(default_factory=dict, compare=False, repr=False)

    @property
    def work(self) -> Work | None:
        """Return tokens of all instances, and of each kind's; None of files that do not have the number of ranks."""
        ranks = self.prefill_ranks + self.decode_ranks
        if not ranks:
            return None
        busy = self.prefill_ranks * _mean(self.prefill_utilisation) + self.decode_ranks * _mean(self.decode_utilisation)
        products = (
            tokens_of("input tokens", self.prompt_tokens, self.prefill_ranks),
            tokens_of("output tokens", self.output_tokens, self.decode_ranks),
            tokens_of("tokens", self.prompt_tokens + self.output_tokens, ranks),
        )
        name = f"inference of {self.name}"
        return Work(name, ranks, self.time_ps, products, busy / ranks, is_undone_by_failures=False)

    @property
    def output_tokens_per_s(self) -> float:
        """Return tokens that all decode instances generated per second of emulated time."""
        return self._per_s(self.output_tokens)

    @property
    def requests_per_s(self) -> float:
        """Return requests per second of emulated time; with objectives, those that met them (goodput)."""
        return self._per_s(self.requests if self.within_slo is None else self.within_slo)

    def _per_s(self, count: int) -> float:
        return count / (self.time_ps / PS_PER_S) if self.time_ps else 0.0


def inference_result(
    name: str,
    plan: InferencePlan,
    schedule: PrefillSchedule,
    times: RequestTimes,
    ideal_ps: Integers,
    decoded: DecodeTimes,
    objectives: Objectives | None,
    retransmissions: int,
) -> InferenceResult:
    """Return the result of a run; `ideal_ps` is what requests would have waited for their caches on an idle fabric."""
    records = _records(plan, schedule, times, ideal_ps, decoded)
    last_ps = int(decoded.end_ps.max())
    requests = plan.requests
    prefill_busy_ps = np.bincount(
        schedule.prefill, times.prefill_end_ps - times.prefill_start_ps, plan.prefill.instances
    )
    first_ps, per_token_ps = integers_of(records, "first_token_ps"), integers_of(records, "per_token_ps")
    return InferenceResult(
        name=name,
        requests=len(requests),
        prompt_tokens=int(requests.prompt_tokens.sum()),
        output_tokens=int(requests.output_tokens.sum()),
        kv_bytes_per_token=kv_bytes_per_token(plan.model, plan.kv_element_bytes),
        sent_bytes=plan.sent_bytes_per_token() * int((requests.prompt_tokens - schedule.held_tokens).sum()),
        time_ps=last_ps,
        latency_ps={
            name: latencies_of(values)
            for name, values in (
                ("first_token", first_ps),
                ("per_token", per_token_ps[per_token_ps >= 0]),
                ("end_to_end", integers_of(records, "end_to_end_ps")),
                ("prompt_done", times.prefill_end_ps - requests.arrival_ps),
            )
            if len(values)
        }
        | ({"inter_token": gaps} if (gaps := _gaps(decoded)) else {}),
        stages_ps={stage: latencies_of(integers_of(records, f"{stage}_ps")) for stage in STAGES},
        prefill_utilisation=(prefill_busy_ps / last_ps).tolist(),
        decode_utilisation=(decoded.busy_ps / last_ps).tolist(),
        decode_batch=(decoded.token_count / np.maximum(1, decoded.iteration_count)).tolist(),
        slo_first_token_ps=objectives.first_token if objectives else None,
        slo_per_token_ps=objectives.per_token if objectives else None,
        within_slo=objectives.met_by(first_ps, per_token_ps) if objectives else None,
        retransmissions=retransmissions,
        prefixed_requests=0 if requests.prefix is None else int((requests.prefix != NO_PREFIX).sum()),
        prefill_prefix_hits=int((schedule.cached_tokens > 0).sum()),
        decode_prefix_hits=int((schedule.held_tokens > 0).sum()),
        prefill_ranks=plan.prefill.rank_count,
        decode_ranks=plan.decode.rank_count,
        records=records,
    )


def _mean(shares: Sequence[float]) -> float:
    return sum(shares) / len(shares) if shares else 0.0


def _gaps(decoded: DecodeTimes) -> Latencies | None:
    if not decoded.token_gap_count.any():
        return None
    return weighted_latencies(decoded.token_gap_ps, decoded.token_gap_count)


def _records(
    plan: InferencePlan,
    schedule: PrefillSchedule,
    times: RequestTimes,
    ideal_ps: Integers,
    decoded: DecodeTimes,
) -> dict[str, Integers]:
    requests = plan.requests
    handed_over_ps = times.handed_over_ps
    transfer_ps = handed_over_ps - times.prefill_end_ps
    # Cut-through switches, or the real clock's granularity, may be faster than what is stored and forwarded.
    least_ps = np.minimum(ideal_ps, transfer_ps)
    tokens_after = requests.output_tokens - 1
    after_first_ps = decoded.end_ps - decoded.first_token_ps
    return {
        "request": np.arange(len(requests)),
        "prefill_instance": schedule.prefill,
        "decode_instance": schedule.decode,
        "arrival_ps": requests.arrival_ps,
        "prompt_tokens": requests.prompt_tokens,
        "output_tokens": requests.output_tokens,
        "prefill_queue_ps": times.prefill_start_ps - requests.arrival_ps,
        "prefill_ps": times.prefill_end_ps - times.prefill_start_ps,
        "transfer_ideal_ps": least_ps,
        "transfer_contention_ps": transfer_ps - least_ps,
        "decode_queue_ps": decoded.admitted_ps - handed_over_ps,
        "decode_ps": decoded.end_ps - decoded.admitted_ps,
        "first_token_ps": decoded.first_token_ps - requests.arrival_ps,
        "per_token_ps": np.where(tokens_after > 0, after_first_ps // np.maximum(1, tokens_after), -1),
        "end_to_end_ps": decoded.end_ps - requests.arrival_ps,
    }
