"""Assigns requests to instances and schedules their prompts, both independently of the fabric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.jobs.inference.assignments import ASSIGNMENTS
from weft.jobs.inference.instance_times import InstanceTimes
from weft.jobs.inference.plan import InferencePlan
from weft.jobs.inference.requests import LONGEST_PS, NO_PREFIX
from weft.jobs.training_plan import PlanError
from weft.quantities.arrays import Integers
from weft.quantities.readable import format_time


@dataclass(frozen=True, eq=False)
class PrefillSchedule:
    """Instances and prefill times of each request, in order of arrival.

    Attributes:
        prefill: its prefill instance.
        decode: its decode instance.
        start_ps: when its prompt begins to be computed.
        end_ps: when its prompt has been computed.
        cached_tokens: tokens of its prompt that its prefill instance had computed before, for another request.
        held_tokens: tokens of its prompt that its decode instance had been sent before, for another request.
        provider: that other request; its own number if there is none.
    """

    prefill: Integers
    decode: Integers
    start_ps: Integers
    end_ps: Integers
    cached_tokens: Integers
    held_tokens: Integers
    provider: Integers


@dataclass(frozen=True)
class _Provider:
    """A request with a prefix, and when its prompt has been computed."""

    request: int
    end_ps: int


def prefill_times(plan: InferencePlan) -> InstanceTimes:
    """Return the durations of a prefill instance's computations."""
    return InstanceTimes(plan.model, plan.prefill, plan.precision, plan.kv_element_bytes)


def prefill_schedule(plan: InferencePlan) -> PrefillSchedule:
    """Assign requests to instances as they arrive; each prefill instance serves them first in, first out.

    Raises PlanError if prompts are computed beyond `LONGEST_PS`.
    """
    times, requests = prefill_times(plan), plan.requests
    to_prefill, to_decode = ASSIGNMENTS[plan.prefill_assignment], ASSIGNMENTS[plan.decode_assignment]
    free_ps = np.zeros(plan.prefill.instances, np.int64)
    given_tokens = np.zeros(plan.decode.instances, np.int64)
    caches = _PrefixCaches(plan)
    rows: list[tuple[int, ...]] = []
    arrivals, prompts = requests.arrival_ps.tolist(), requests.prompt_tokens.tolist()
    for number, (arrival_ps, tokens) in enumerate(zip(arrivals, prompts, strict=True)):
        cached = caches.computed_by_instance(number)
        takes_ps = {each: times.prefill_ps(tokens - each, each) for each in set(cached)}
        costs_ps = np.array([takes_ps[each] for each in cached], np.int64)
        prefill = to_prefill.choose(number, np.maximum(0, free_ps - arrival_ps), costs_ps)
        start_ps = max(arrival_ps, int(free_ps[prefill]))
        held = caches.held_by_instance(number, start_ps)
        decode = to_decode.choose(number, given_tokens, tokens - np.array(held, np.int64))
        end_ps = start_ps + int(costs_ps[prefill])
        if end_ps > LONGEST_PS:
            raise PlanError(
                "requests",
                f"prompts are computed for {format_time(end_ps)}",
                valid=f"up to {format_time(LONGEST_PS)}",
            )
        free_ps[prefill] = end_ps
        given_tokens[decode] += tokens
        provider = caches.provider(number, decode) if held[decode] else number
        rows.append((prefill, decode, start_ps, end_ps, cached[prefill], held[decode], provider))
        caches.note(number, prefill, decode, end_ps)
    return PrefillSchedule(*np.array(rows, np.int64).T)


class _PrefixCaches:
    """Prefixes that instances hold. They are kept for good, apart from the memory of requests."""

    def __init__(self, plan: InferencePlan) -> None:
        self._none = [0] * plan.prefill.instances, [0] * plan.decode.instances
        prefix = plan.requests.prefix if plan.prefix_caching else None
        self._prefix: list[int] | None = None if prefix is None else prefix.tolist()
        self._tokens = plan.requests.prefix_tokens
        self._computed: set[tuple[int, int]] = set()
        """Prefill instances with prefixes."""
        self._providers: dict[tuple[int, int], _Provider] = {}
        """By decode instance and prefix: the request with which it was sent first."""

    def computed_by_instance(self, request: int) -> list[int]:
        """Return how many tokens of a request's prompt each prefill instance has computed once it comes to it."""
        prefix = self._of(request)
        if prefix == NO_PREFIX:
            return self._none[0]
        return [self._tokens * ((each, prefix) in self._computed) for each in range(len(self._none[0]))]

    def held_by_instance(self, request: int, start_ps: int) -> list[int]:
        """Return how many tokens of a request's prompt were sent to each decode instance before it is computed."""
        prefix = self._of(request)
        if prefix == NO_PREFIX:
            return self._none[1]
        found = (self._providers.get((each, prefix)) for each in range(len(self._none[1])))
        return [self._tokens if each is not None and each.end_ps <= start_ps else 0 for each in found]

    def provider(self, request: int, decode: int) -> int:
        """Return the request with which a decode instance was sent a request's prefix."""
        return self._providers[decode, self._of(request)].request

    def note(self, request: int, prefill: int, decode: int, end_ps: int) -> None:
        """Note where a request's prompt is computed, and sent."""
        prefix = self._of(request)
        if prefix == NO_PREFIX:
            return
        self._computed.add((prefill, prefix))
        known = self._providers.get((decode, prefix))
        if known is None or end_ps < known.end_ps:
            self._providers[decode, prefix] = _Provider(request, end_ps)

    def _of(self, request: int) -> int:
        return NO_PREFIX if self._prefix is None else self._prefix[request]
