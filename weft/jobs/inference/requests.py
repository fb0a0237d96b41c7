"""Requests: arrival times, prompt and output lengths, either given or drawn from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import model_validator

from weft.errors import InvalidValueError
from weft.quantities import portable_math
from weft.quantities.arrays import Integers
from weft.quantities.definitions import number, whole
from weft.quantities.example import Example
from weft.quantities.section import Section
from weft.quantities.units import PS_PER_S

MAX_REQUESTS = 1_000_000
MAX_TOKENS = 1 << 20
NO_PREFIX = -1
LONGEST_PS = 1 << 60
"""Longest time from the start to the last request's end: 13 days."""
Tokens = Annotated[int, whole(1, MAX_TOKENS)]


class TokenCounts(Section):
    """Token counts, drawn from a log-normal distribution."""

    median: Tokens
    """Median of the distribution."""
    sigma: Annotated[float, number(0, 10)] = 0.0
    """Standard deviation of the logarithm; with 0 all are the median."""
    least: Tokens = 1
    """Smaller counts are raised to this."""
    most: Tokens = MAX_TOKENS
    """Larger counts are lowered to this."""

    @model_validator(mode="after")
    def _check(self) -> TokenCounts:
        if not self.least <= self.median <= self.most:
            raise InvalidValueError(f"median: {self.median}", valid=f"`least` to `most`, {self.least} to {self.most}")
        return self

    def draw(self, generator: np.random.Generator, count: int) -> Integers:
        """Return `count` token counts."""
        # A median times e^700 is still a number.
        exponents = np.clip(self.sigma * generator.standard_normal(count), -700, 700)
        drawn = np.clip(np.rint(self.median * portable_math.exp(exponents)), self.least, self.most)
        return np.asarray(drawn, np.int64)


class SharedPrefixes(Section):
    """Prefixes, such as system prompts, with which prompts begin; the seed draws which."""

    share: Annotated[float, number(0, 1, above=True, example="0.5"), Example("0.75")]
    """Probability that a request's prompt begins with a shared prefix."""
    tokens: Annotated[Tokens, Example("512")]
    """Tokens of a prefix. A prompt that begins with one has at least one token more."""
    count: Annotated[int, whole(1, MAX_REQUESTS), Example("4")] = 1
    """Different prefixes, chosen evenly."""

    def given_to(self, requests: Requests, seed: int) -> Requests:
        """Return the requests with prefixes drawn for them."""
        generator = np.random.default_rng([seed, 3])
        has_one = generator.random(len(requests)) < self.share
        prefix = np.where(has_one, generator.integers(0, self.count, len(requests)), NO_PREFIX)
        prompts = np.where(has_one, np.maximum(requests.prompt_tokens, self.tokens + 1), requests.prompt_tokens)
        return replace(requests, prompt_tokens=prompts, prefix=prefix, prefix_tokens=self.tokens)


@dataclass(frozen=True, eq=False)
class Requests:
    """Requests in order of arrival; all columns have the same number of rows.

    Attributes:
        arrival_ps: arrival time since the start.
        prompt_tokens: tokens of the prompt.
        output_tokens: tokens to generate.
        prefix: number of the prefix that the prompt shares with others, NO_PREFIX for none; None: no request has one.
        prefix_tokens: tokens of each prefix.
    """

    arrival_ps: Integers
    prompt_tokens: Integers
    output_tokens: Integers
    prefix: Integers | None = None
    prefix_tokens: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError for columns of unequal lengths, no or too many requests, and values out of range."""
        count = len(self.arrival_ps)
        if {len(self.prompt_tokens), len(self.output_tokens)} != {count}:
            raise ValueError(f"columns of {count}, {len(self.prompt_tokens)} and {len(self.output_tokens)} rows")
        if not 1 <= count <= MAX_REQUESTS:
            raise InvalidValueError(f"{count} requests", valid=f"1 to {MAX_REQUESTS:,}")
        if self.arrival_ps[0] < 0 or (np.diff(self.arrival_ps) < 0).any():
            raise ValueError("requests are not in the order of their arrivals, from 0 on")
        if self.arrival_ps[-1] > LONGEST_PS:
            raise InvalidValueError(
                f"the last request arrives at {self.arrival_ps[-1]} ps", valid=f"up to {LONGEST_PS}"
            )
        for name in ("prompt_tokens", "output_tokens"):
            values = getattr(self, name)
            if values.min() < 1 or values.max() > MAX_TOKENS:
                raise InvalidValueError(f"{name} of {values.min()} to {values.max()}", valid=f"1 to {MAX_TOKENS}")

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.arrival_ps)

    def first(self, count: int | None) -> Requests:
        """Return the first `count` requests, all for None."""
        return Requests(self.arrival_ps[:count], self.prompt_tokens[:count], self.output_tokens[:count])


def poisson_requests(rate_per_s: float, count: int, prompt: TokenCounts, output: TokenCounts, seed: int) -> Requests:
    """Return requests of a Poisson process; the first arrives after one interval."""
    generator = np.random.default_rng([seed, 0])
    intervals_s = portable_math.exponential(generator, count) / rate_per_s
    arrival_ps = np.rint(np.minimum(np.cumsum(intervals_s) * PS_PER_S, 2 * LONGEST_PS))
    return requests_at(arrival_ps.astype(np.int64), prompt, output, seed)


def requests_at(arrival_ps: Sequence[int] | Integers, prompt: TokenCounts, output: TokenCounts, seed: int) -> Requests:
    """Return requests that arrive at given times, in any order. Raises ValueError as `Requests` does."""
    arrivals = np.sort(np.asarray(arrival_ps, np.int64))
    prompts = prompt.draw(np.random.default_rng([seed, 1]), len(arrivals))
    outputs = output.draw(np.random.default_rng([seed, 2]), len(arrivals))
    return Requests(arrivals, prompts, outputs)
