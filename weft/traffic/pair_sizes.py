"""How many bytes each rank has for each in an all-to-all-v: given as a matrix, or drawn alike on every rank."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from weft.errors import InvalidValueError
from weft.quantities import portable_math
from weft.quantities.arrays import Integers
from weft.traffic.expert_choice import skewed_popularity
from weft.traffic.schedules.spec import CollectiveSpec

_UNIT = 1 << 20
"""The largest weight of drawn sizes."""
_EXACT = 1 << 62
"""Products up to this are exact in 64 bits."""


@dataclass(frozen=True, eq=False)
class PairSizes:
    """Sizes that ranks have for each other, in proportion: a matrix of senders (rows) and receivers (columns).

    Attributes:
        matrix: bytes from each rank to each; None: drawn.
        skew: exponent of the receivers' popularity: the i-th most popular rank gets in proportion to i^-skew (Zipf).
        spread: standard deviation of the logarithm of a factor drawn for each pair (lognormal); 0: none.
        seed: of what is drawn.

    """

    matrix: Integers | None = None
    skew: float = 0.2
    spread: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError for a matrix or numbers that make no sizes."""
        if self.matrix is None:
            if self.skew < 0 or self.spread < 0:
                raise InvalidValueError(f"skew {self.skew:g}, spread {self.spread:g}", valid="0 or more")
            return
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.matrix.shape[1] or self.matrix.min(initial=0) < 0:
            shape = " x ".join(map(str, self.matrix.shape))
            raise InvalidValueError(f"a matrix of {shape}", valid="a row and a column for each rank, none below 0")
        if not self.matrix.any():
            raise InvalidValueError("a matrix of zeros", valid="at least one pair with bytes")

    @property
    def parameters(self) -> str:
        """The parameters as text, for `of`."""
        if self.matrix is not None:
            return json.dumps({"matrix": self.matrix.tolist()}, separators=(",", ":"))
        return json.dumps({"skew": self.skew, "spread": self.spread, "seed": self.seed}, separators=(",", ":"))

    @staticmethod
    def of(parameters: str) -> PairSizes:
        """Return the sizes of `parameters`."""
        values = json.loads(parameters)
        return PairSizes(np.array(values["matrix"], np.int64)) if "matrix" in values else PairSizes(**values)

    @property
    def size_bytes(self) -> int | None:
        """The largest sum of bytes that a rank sends or receives, its own included; None if they are drawn."""
        return None if self.matrix is None else largest_sum(self.matrix)

    @property
    def rank_count(self) -> int | None:
        """Ranks of the matrix; None if it is drawn, for any number."""
        return None if self.matrix is None else len(self.matrix)

    def weights(self, ranks: int) -> Integers:
        """Return numbers in proportion to the sizes. Raises ValueError if the matrix is of other ranks."""
        if self.matrix is None:
            return _drawn(self.skew, self.spread, self.seed, ranks)
        if len(self.matrix) != ranks:
            raise InvalidValueError(
                f"sizes of {len(self.matrix)} ranks for {ranks}", valid=f"a row and a column for each of {ranks}"
            )
        return self.matrix

    def least_elements(self, ranks: int) -> int:
        """Return the smallest data of a rank, in elements, with which a pair of different ranks has one.

        Of drawn sizes an element a rank, which suffices whatever the seed unless sizes spread far.
        """
        if self.matrix is None:
            return ranks
        largest = int(between_ranks(self.matrix).max())
        return -(-largest_sum(self.matrix) // largest) if largest else 1

    def elements(self, spec: CollectiveSpec) -> Integers:
        """Return how many elements each rank has for each; the largest sum of a rank is the size of its data.

        Sizes are rounded down to whole elements. All ranks share the array.
        """
        return _elements(self, spec.rank_count, spec.element_count, spec.element_bytes)


def largest_sum(sizes: Integers) -> int:
    """Return the largest sum of a row or column."""
    return int(max(sizes.sum(axis=0).max(), sizes.sum(axis=1).max()))


def between_ranks(sizes: Integers) -> Integers:
    """Return the sizes without what ranks have for themselves."""
    found = sizes.copy()
    np.fill_diagonal(found, 0)
    return found


def hosts_of(spec: CollectiveSpec) -> Integers:
    """Return the host of each rank."""
    if spec.hosts:
        return np.array(spec.hosts, np.int64)
    return np.array([spec.position(rank) // spec.ranks_per_host for rank in range(spec.rank_count)], np.int64)


def between_hosts(sizes: Integers, spec: CollectiveSpec) -> Integers:
    """Return the sizes with zeros for ranks of one host, which scale-up links join."""
    hosts = hosts_of(spec)
    return np.where(hosts[:, None] != hosts[None, :], sizes, 0)


@lru_cache(maxsize=4)
def _drawn(skew: float, spread: float, seed: int, ranks: int) -> Integers:
    generator = np.random.default_rng([seed, ranks])
    weights = np.tile(generator.permutation(skewed_popularity(ranks, skew)), (ranks, 1))
    if spread:
        exponents = np.clip(spread * generator.standard_normal((ranks, ranks)), -700, 700)
        weights = weights * portable_math.exp(exponents)
    found: Integers = np.rint(weights / weights.max() * _UNIT).astype(np.int64)
    return found


@lru_cache(maxsize=4)
def _elements(sizes: PairSizes, ranks: int, elements: int, element_bytes: int) -> Integers:
    weights = sizes.weights(ranks)
    total = largest_sum(weights)
    if sizes.matrix is not None and elements * element_bytes == total:
        return np.floor_divide(weights, element_bytes)
    if int(weights.max()) * elements < _EXACT:
        return np.floor_divide(weights * elements, total)
    exact: Integers = (weights.astype(object) * elements // total).astype(np.int64)
    return exact
