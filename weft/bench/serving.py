"""A serving system on a fabric under test: a model, prefill and decode instances, requests, and what users get."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.bench.searches import largest_that_holds
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.subject import Subject
from weft.jobs.inference.instance_times import InstanceTimes
from weft.jobs.inference.instances import PrefillInstances
from weft.jobs.models import MODELS, Transformer
from weft.quantities.arrays import Integers
from weft.quantities.readable import counted, format_time
from weft.quantities.units import PS_PER_MS, PS_PER_S
from weft.results.inference import INFERENCE
from weft.results.inference_model import InferenceResult
from weft.results.report_parts import Cell
from weft.trials import Procedure, Trial, TrialRun

FIRST_TOKEN_PS, PER_TOKEN_PS = 500 * PS_PER_MS, 50 * PS_PER_MS
"""The draft's objectives: TTFT P99 and ITL P99 (sections 6.2 and 11.1)."""
WHOLE_HOST = 8
"""Accelerators that serve Llama 3 70B together, TP=8: the draft's worker."""
PRESET = "70B"
FULL_PROMPTS = (128, 8192)
"""Least and most tokens of the draft's prompts, Zipf with alpha=1 (section 6.2)."""
_HIGHEST_LOAD = 2.0
"""Rates up to so many times the prefill capacity are tried."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Demand:
    """Requests of users: a Poisson process, with lengths from `prompts` and `outputs`, each least and most tokens.

    The probability of a length falls with its inverse (Zipf, alpha=1). Demands that differ in their rate only have the
    same requests in the same order.
    """

    rate_per_s: float
    count: int
    prompts: tuple[int, int]
    outputs: tuple[int, int]
    seed: int = 1

    def rows(self) -> list[tuple[float, int, int]]:
        """Return arrival (s), prompt and output tokens of each request."""
        drawn, now_s, found = random.Random(self.seed), 0.0, []
        for _ in range(self.count):
            now_s += drawn.expovariate(1.0) / self.rate_per_s
            found.append((now_s, _zipf(drawn, self.prompts), _zipf(drawn, self.outputs)))
        return found

    def at_rate(self, rate_per_s: float) -> Demand:
        """Return the same requests at another rate."""
        return replace(self, rate_per_s=rate_per_s)

    @cached_property
    def mean_prompt_tokens(self) -> float:
        """Mean length of the prompts."""
        return float(np.mean([prompt for _, prompt, _ in self.rows()]))


def _zipf(drawn: random.Random, between: tuple[int, int]) -> int:
    least, most = between
    return int(min(most, round(least * (most / least) ** drawn.random())))


@dataclass(frozen=True)
class Serving:
    """Instances of a part of Llama 3 70B, on whole hosts.

    An accelerator of the whole system, eight of which serve all 80 layers, has an eighth of every layer. Here `tensor`
    accelerators have `layers` layers. All times of computation and transfer then have the whole system's proportions,
    and `scale` of its length: with `scale` 1 they are the same.

    Attributes:
        layers: of the model.
        tensor: ranks of an instance.
        prefill: hosts with prefill instances, by place in `Subject.servers`.
        decode: hosts with decode instances.
        batch: most requests of a decode instance at once.
    """

    subject: Subject
    layers: int
    tensor: int
    prefill: tuple[int, ...]
    decode: tuple[int, ...]
    batch: int = 64

    @property
    def scale(self) -> float:
        """Length of all times over the whole system's."""
        return self.layers * WHOLE_HOST / (MODELS[PRESET].layers * self.tensor)

    @property
    def model(self) -> dict[str, Any]:
        """The model's keys; the output matrix has the same share as the layers."""
        whole = MODELS[PRESET]
        share = self.layers / whole.layers
        return {"preset": PRESET, "layers": self.layers, "vocabulary": max(1, round(whole.vocabulary * share))}

    @property
    def transformer(self) -> Transformer:
        """The model."""
        return MODELS[PRESET].model_copy(update={key: self.model[key] for key in ("layers", "vocabulary")})

    @property
    def instances_per_host(self) -> int:
        """Instances of a host."""
        return self.subject.ranks_per_host // self.tensor

    @property
    def kv_bytes_per_token(self) -> int:
        """S_KV of one token, 2·L·H_kv·D·P_bytes with BF16."""
        model = self.transformer
        return 2 * model.layers * model.key_value_heads * model.query_size * 2

    @property
    def ratio(self) -> str:
        """The draft's xPyD, in hosts."""
        return f"{len(self.prefill)}P{len(self.decode)}D"

    @property
    def slo(self) -> dict[str, str]:
        """The draft's objectives, as long as everything here."""
        return {
            "first_token": f"{round(FIRST_TOKEN_PS * self.scale)}ps",
            "per_token": f"{round(PER_TOKEN_PS * self.scale)}ps",
        }

    @property
    def slo_ms(self) -> tuple[float, float]:
        """The objectives in ms, to the first token and from token to token."""
        return FIRST_TOKEN_PS * self.scale / PS_PER_MS, PER_TOKEN_PS * self.scale / PS_PER_MS

    def ranks(self) -> list[int]:
        """Return the ranks of all prefill, then of all decode instances."""
        used = self.instances_per_host * self.tensor
        return [rank for host in (*self.prefill, *self.decode) for rank in self.subject.servers[host][:used]]

    @cached_property
    def times(self) -> InstanceTimes:
        """Times of an instance's computations."""
        return InstanceTimes(self.transformer, PrefillInstances(tensor=self.tensor), "bf16", 2)

    def capacity_per_s(self, demand: Demand) -> float:
        """Return the requests per second for which the prefill instances compute without a pause."""
        mean_ps = float(np.mean([self.times.prefill_ps(prompt) for _, prompt, _ in demand.rows()]))
        return len(self.prefill) * self.instances_per_host * PS_PER_S / mean_ps

    def item(self, setup: Setup, demand: Demand | Mapping[str, Any], **keys: Any) -> dict[str, Any]:
        """Return the item of traffic that serves requests; `keys` are further ones of `inference`."""
        requests: Mapping[str, Any] = (
            {"file": str(setup.kept("requests", _csv(demand)))} if isinstance(demand, Demand) else demand
        )
        sections = {
            "model": self.model,
            "requests": dict(requests),
            "prefill": {"instances": len(self.prefill) * self.instances_per_host, "tensor": self.tensor},
            "decode": {
                "instances": len(self.decode) * self.instances_per_host,
                "tensor": self.tensor,
                "batch": self.batch,
            },
            "slo": self.slo,
        }
        for key, value in keys.items():
            known = sections.get(key)
            sections[key] = {**known, **value} if isinstance(known, dict) and isinstance(value, Mapping) else value
        return {"inference": sections, "ranks": self.ranks()}

    def lone(self, setup: Setup, prompts: Sequence[int], apart_ps: int, output_tokens: int = 2) -> dict[str, Any]:
        """Return the item of requests that come one at a time, with these prompts."""
        rows = [(number * apart_ps / PS_PER_S, prompt, output_tokens) for number, prompt in enumerate(prompts)]
        return self.item(setup, {"file": str(setup.kept("requests", _csv_of(rows)))})

    def arriving(
        self, setup: Setup, arrivals_s: Sequence[float], prompt: int, output_tokens: int = 2
    ) -> dict[str, Any]:
        """Return the item of equal requests that come at given times."""
        rows = [(arrival_s, prompt, output_tokens) for arrival_s in arrivals_s]
        return self.item(setup, {"file": str(setup.kept("requests", _csv_of(rows)))})

    def copied(self, setup: Setup, demand: Demand, copies: int) -> dict[str, Any]:
        """Return the item of requests that come so often each, at the same time."""
        rows = [row for row in demand.rows() for _ in range(copies)]
        return self.item(setup, {"file": str(setup.kept("requests", _csv_of(rows)))})

    def described(self, demand: Demand | None = None) -> str:
        """Return the draft's system configuration and workload, in a sentence."""
        hosts = counted(len(self.prefill) + len(self.decode), "host")
        text = (
            f"{self.ratio} of {hosts}, instances of {counted(self.tensor, 'accelerator')} (H100 at half its peak rate) "
            f"with {self.layers} of Llama 3 70B's 80 layers: times are {self.scale:g} of those of TP=8 and all layers, "
            f"and so are the objectives ({format_time(round(FIRST_TOKEN_PS * self.scale))} to the first token, "
            f"{format_time(round(PER_TOKEN_PS * self.scale))} from token to token)"
        )
        if demand is None:
            return text
        return (
            f"{text}; {counted(demand.count, 'request')} as a Poisson process, prompts of {demand.prompts[0]} to "
            f"{demand.prompts[1]} and outputs of {demand.outputs[0]} to {demand.outputs[1]} tokens (Zipf, alpha=1)"
        )


def _csv(demand: Demand) -> str:
    return _csv_of(demand.rows())


def _csv_of(rows: Sequence[tuple[float, int, int]]) -> str:
    lines = [f"{arrival_s:.9f},{prompt},{output}" for arrival_s, prompt, output in rows]
    return "\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *lines, ""])


def serving_of(setup: Setup, hosts: int | None = None, prefill_hosts: int | None = None) -> Serving:
    """Return a serving system: prefill on the first hosts, decode on the last ones, at other switches if there are any.

    Args:
        setup: the fabric; the profile determines how many layers the model has.
        hosts: so many of the fabric's, all by default; in smoke up to 4.
        prefill_hosts: a quarter of them by default, as in the draft's 3P9D.

    Raises:
        NotApplicableError: the fabric has one host.
    """
    subject = setup.subject
    available = len(subject.servers)
    if available < 2:
        raise NotApplicableError("prefill and decode on separate hosts take 2 hosts; the fabric has one")
    total = min(available, hosts or setup.choose(smoke=4, standard=16, full=available))
    first = max(1, total // 4) if prefill_hosts is None else prefill_hosts
    tensor = next(each for each in (8, 4, 2, 1) if subject.ranks_per_host % each == 0)
    return Serving(
        subject,
        layers=setup.choose(smoke=1, standard=1, full=MODELS[PRESET].layers * tensor // WHOLE_HOST),
        tensor=tensor,
        prefill=tuple(range(first)),
        decode=tuple(range(available - (total - first), available)),
    )


def demand_of(setup: Setup, rate_per_s: float = 1.0, count: int | None = None) -> Demand:
    """Return the profile's demand."""
    return Demand(
        rate_per_s,
        count or setup.choose(smoke=40, standard=160, full=10_000),
        prompts=setup.choose(smoke=(128, 4096), standard=FULL_PROMPTS, full=FULL_PROMPTS),
        outputs=setup.choose(smoke=(16, 64), standard=(32, 256), full=(32, 1024)),
        seed=setup.seed,
    )


@dataclass(frozen=True)
class Served:
    """Requests that were served in a run. `item` is the place of its inference among the run's."""

    run: TrialRun
    item: int = 0

    @cached_property
    def result(self) -> InferenceResult:
        """The run's result. Raises TrialFailedError if there is none."""
        found: list[InferenceResult] = self.run.results_of("inference")
        return found[self.item]

    @cached_property
    def records(self) -> Mapping[str, Integers]:
        """A row for each request."""
        (found,) = (rows for kind, rows in self.run.run.traffic if kind is INFERENCE)
        columns: Mapping[str, Integers] = found[self.item].records
        return columns

    @property
    def first_token_ms(self) -> Floats:
        """TTFT of each request."""
        return self.records["first_token_ps"] / PS_PER_MS

    @property
    def transfer_ps(self) -> Integers:
        """T_transfer of each request: from the end of its prefill until its whole cache had arrived."""
        return self.records["transfer_ideal_ps"] + self.records["transfer_contention_ps"]

    @property
    def parts_ms(self) -> dict[str, Floats]:
        """The parts of each TTFT, which add up to it."""
        columns = self.records
        before = ("prefill_queue_ps", "prefill_ps", "transfer_ideal_ps", "transfer_contention_ps", "decode_queue_ps")
        init_ps = columns["first_token_ps"] - sum(columns[name] for name in before)
        return {
            "queue at prefill": columns["prefill_queue_ps"] / PS_PER_MS,
            "T_prefill": columns["prefill_ps"] / PS_PER_MS,
            "T_transfer": self.transfer_ps / PS_PER_MS,
            "queue at decode": columns["decode_queue_ps"] / PS_PER_MS,
            "T_decode_init": init_ps / PS_PER_MS,
        }

    def first_token_percentile_ms(self, percentile: float = 99) -> float:
        """Return a percentile of TTFT."""
        return float(np.percentile(self.first_token_ms, percentile))

    def transfer_percentile_us(self, percentile: float = 99) -> float:
        """Return a percentile of T_transfer."""
        return float(np.percentile(self.transfer_ps, percentile)) / 1e6

    def inter_token_ms(self, column: str = "99 %") -> float:
        """Return a percentile of the time from one token to the next: 50 %, 90 %, 99 %, 99.9 % or largest."""
        found = self.result.latency_ps.get("inter_token")
        return found.at(column) / PS_PER_MS if found is not None else 0.0

    @property
    def input_tokens_per_s(self) -> float:
        """TPS_input: prompt tokens over the time in which prompts arrived and were computed."""
        columns = self.records
        ends = columns["arrival_ps"] + columns["prefill_queue_ps"] + columns["prefill_ps"]
        return float(columns["prompt_tokens"].sum()) * PS_PER_S / float(ends.max() - columns["arrival_ps"].min())

    @property
    def output_tokens_per_s(self) -> float:
        """TPS_output: output tokens over the time to the last one."""
        return self.result.output_tokens_per_s

    @property
    def goodput_per_s(self) -> float:
        """Inference_Goodput: requests within their objectives over the time to the last token."""
        return self.result.requests_per_s

    @property
    def kv_bytes_per_s(self) -> float:
        """Bytes of caches over the time from the first prompt's end to the last cache's arrival."""
        begins = self._handed_off_ps
        return self.result.sent_bytes * PS_PER_S / float((begins + self.transfer_ps).max() - begins.min())

    @property
    def _handed_off_ps(self) -> Integers:
        columns = self.records
        return columns["arrival_ps"] + columns["prefill_queue_ps"] + columns["prefill_ps"]

    @property
    def transfers(self) -> tuple[Integers, Integers]:
        """When each cache began to be sent, and when it had arrived."""
        return self._handed_off_ps, self._handed_off_ps + self.transfer_ps

    @property
    def most_transfers(self) -> int:
        """Most caches under way at once."""
        begins, ends = self.transfers
        moments = np.concatenate((begins, ends))
        changes = np.repeat((1, -1), len(begins))
        # A cache that arrives at the moment at which another begins is not under way any more.
        return int(np.cumsum(changes[np.lexsort((changes, moments))]).max())

    def meets(self, serving: Serving) -> bool:
        """Return whether TTFT P99 and ITL P99 are within the objectives."""
        first_ms, per_token_ms = serving.slo_ms
        return self.first_token_percentile_ms() <= first_ms and self.inter_token_ms() <= per_token_ms


HEADINGS = ("TTFT P50 (ms)", "TTFT P99 (ms)", "ITL P99 (ms)", "TPS_output", "TPS_input", "Inference_Goodput (req/s)")


def served_row(served: Served) -> list[Cell]:
    """Return figures of a run in the order of `HEADINGS`."""
    return [
        round(served.first_token_percentile_ms(50), 4),
        round(served.first_token_percentile_ms(), 4),
        round(served.inter_token_ms(), 4),
        round(served.output_tokens_per_s, 1),
        round(served.input_tokens_per_s, 1),
        round(served.goodput_per_s, 3),
    ]


@dataclass(frozen=True)
class BoundedRate:
    """The largest rate within the objectives, and its run.

    Attributes:
        serving: the system.
        demand: requests at that rate.
        served: their run.
        tried: all rates that were tried, with their runs, in order.
        is_upper_end: whether it is the largest rate that was tried.
    """

    serving: Serving
    demand: Demand
    served: Served
    tried: dict[float, Served]
    is_upper_end: bool


def bounded_rate(setup: Setup) -> Procedure[BoundedRate]:
    """Search the largest request rate at which TTFT P99 and ITL P99 are within the objectives (Test 11.1).

    Tests that need it yield the same trials, which run once.

    Raises:
        NotApplicableError: not even the lowest rate is.
    """
    serving, demand = serving_of(setup), demand_of(setup)
    capacity_per_s = serving.capacity_per_s(demand)
    resolution = setup.choose(smoke=0.5, standard=0.1, full=0.02)

    def trial(_: str, load: float) -> Trial:
        return setup.trial(
            f"serving at {load:.3f} of the prefill capacity",
            [serving.item(setup, demand.at_rate(load * capacity_per_s))],
        )

    tried: dict[float, Served] = {}

    def holds(_: str, load: float, run: TrialRun) -> bool:
        tried[load * capacity_per_s] = Served(run)
        return not run.error and Served(run).meets(serving)

    found = yield from largest_that_holds({"rate": (0.25, _HIGHEST_LOAD)}, trial, holds, resolution)
    best = found["rate"]
    if best.value is None or best.run is None:
        raise NotApplicableError(
            f"requests at {0.25 * capacity_per_s:.3g}/s, a quarter of the prefill capacity, miss the objectives already"
        )
    rate_per_s = best.value * capacity_per_s
    return BoundedRate(
        serving,
        demand.at_rate(rate_per_s),
        Served(best.run),
        dict(sorted(tried.items())),
        math.isclose(best.value, _HIGHEST_LOAD),
    )
