"""Decoding, replayed after the run from the arrival times of KV caches: it does not affect the fabric."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from weft.jobs.inference.instance_times import InstanceTimes
from weft.jobs.inference.plan import InferencePlan
from weft.jobs.inference.requests import LONGEST_PS
from weft.jobs.training_plan import PlanError
from weft.quantities.arrays import Integers
from weft.quantities.readable import format_time


@dataclass(frozen=True, eq=False)
class DecodeTimes:
    """When decode instances generated tokens.

    Attributes:
        admitted_ps: start of each request's first iteration.
        first_token_ps: end of each request's first iteration.
        end_ps: when each request's last token was generated.
        busy_ps: time of all iterations of each instance.
        token_count: tokens that each instance generated.
        iteration_count: iterations of each instance.
        token_gap_ps: times from one token to the next of a request; each iteration has one for all of its requests.
        token_gap_count: requests of each of these iterations that had a token before.
    """

    admitted_ps: Integers
    first_token_ps: Integers
    end_ps: Integers
    busy_ps: Integers
    token_count: Integers
    iteration_count: Integers
    token_gap_ps: Integers
    token_gap_count: Integers


def decode_times(plan: InferencePlan, decode: Integers, delivered_ps: Integers) -> DecodeTimes:
    """Return when outputs are generated, given each request's decode instance and the arrival time of its cache there.

    Raises PlanError if they take longer than `LONGEST_PS`.
    """
    count, instances = len(plan.requests), plan.decode.instances
    found = DecodeTimes(*(np.zeros(rows, np.int64) for rows in (count,) * 3 + (instances,) * 3 + (0,) * 2))
    times = InstanceTimes(plan.model, plan.decode, plan.precision, plan.kv_element_bytes)
    gaps = [(found.token_gap_ps, found.token_gap_count)]
    for instance in range(instances):
        mine = np.flatnonzero(decode == instance)
        in_order = mine[np.argsort(delivered_ps[mine], kind="stable")]
        gaps += _Instance(plan, times, instance, in_order, delivered_ps, found).run()
    gap_ps, gap_count = (np.concatenate(columns) for columns in zip(*gaps, strict=True))
    return replace(found, token_gap_ps=gap_ps, token_gap_count=gap_count)


class _Instance:
    """An instance with continuous batching (Yu et al. 2022, "Orca", section 3.1).

    Requests join and leave between iterations. They are admitted in the order in which their caches arrived, while the
    batch has room and the memory can hold the caches of all served requests at their full length. With static batching
    they join only when all requests of the batch before them are done.
    """

    def __init__(
        self,
        plan: InferencePlan,
        times: InstanceTimes,
        instance: int,
        in_order: Integers,
        delivered_ps: Integers,
        found: DecodeTimes,
    ) -> None:
        self._times, self._instance, self._found = times, instance, found
        self._prompts = plan.requests.prompt_tokens
        self._outputs = plan.requests.output_tokens
        self._delivered_ps = delivered_ps
        self._coming = deque(in_order.tolist())
        self._most, self._free_tokens = plan.decode.batch, plan.kv_capacity_tokens(plan.decode)
        self._left: dict[int, int] = {}
        """Tokens left to generate, by served request."""
        self._context_tokens = 0
        self._is_static = plan.decode.batching == "static"
        self._gaps: list[tuple[Integers, Integers]] = []

    def run(self) -> list[tuple[Integers, Integers]]:
        """Serve all requests; returns the times between tokens, and how many requests had each."""
        now_ps = 0
        while self._coming or self._left:
            if not self._left:
                now_ps = max(now_ps, int(self._delivered_ps[self._coming[0]]))
            admitted = self._admit(now_ps)
            now_ps = self._iterate(now_ps, admitted)
        return self._gaps

    def _needs_tokens(self, request: int) -> int:
        return int(self._prompts[request] + self._outputs[request])

    def _has_room(self) -> bool:
        """Return whether a next request exists and fits in the batch and the memory."""
        return (
            bool(self._coming)
            and len(self._left) < self._most
            and self._needs_tokens(self._coming[0]) <= self._free_tokens
        )

    def _admit(self, now_ps: int) -> list[int]:
        admitted: list[int] = []
        if self._is_static and self._left:
            return admitted
        while self._has_room() and self._delivered_ps[self._coming[0]] <= now_ps:
            request = self._coming.popleft()
            self._free_tokens -= self._needs_tokens(request)
            self._left[request] = int(self._outputs[request])
            self._context_tokens += int(self._prompts[request])
            self._found.admitted_ps[request] = now_ps
            admitted.append(request)
        return admitted

    def _iterate(self, now_ps: int, admitted: list[int]) -> int:
        """Run iterations until a request leaves or can join; return when the last of them ends."""
        batch = len(self._left)
        took_ps = self._times.iterations_ps(batch, self._context_tokens, min(self._left.values()))
        if now_ps + float(np.sum(took_ps, dtype=np.float64)) > 2 * LONGEST_PS:
            raise PlanError("decode", f"outputs take longer than {format_time(LONGEST_PS)}", valid="up to that")
        ends = now_ps + np.cumsum(took_ps)
        count = len(ends)
        if self._has_room() and not self._is_static:
            next_ps = self._delivered_ps[self._coming[0]]
            count = min(count, int(np.searchsorted(ends, next_ps)) + 1)
        end_ps, found = int(ends[count - 1]), self._found
        found.first_token_ps[admitted] = ends[0]
        found.busy_ps[self._instance] += end_ps - now_ps
        found.token_count[self._instance] += batch * count
        found.iteration_count[self._instance] += count
        had_a_token = np.full(count, batch, np.int64)
        had_a_token[0] -= len(admitted)
        self._gaps.append((took_ps[:count].copy(), had_a_token))
        self._context_tokens += batch * count
        for request in list(self._left):
            self._left[request] -= count
            if not self._left[request]:
                self._leave(request, end_ps)
        return end_ps

    def _leave(self, request: int, end_ps: int) -> None:
        del self._left[request]
        self._found.end_ps[request] = end_ps
        self._free_tokens += self._needs_tokens(request)
        self._context_tokens -= self._needs_tokens(request)
