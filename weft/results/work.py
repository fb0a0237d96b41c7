"""Work of a run's result, as money is divided by it: steps, tokens, and the use of the accelerators meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

TOKENS_PRICED = 1_000_000


@dataclass(frozen=True)
class Product:
    """Pieces that ranks made.

    Attributes:
        key: names the price in data, such as `million_tokens`.
        name: what is priced, for people, such as `a million tokens`.
        count: how many were made, as many together as are priced; may be a fraction.
        ranks: ranks that made them, all the time.
    """

    key: str
    name: str
    count: float
    ranks: int


@dataclass(frozen=True)
class Work:
    """Work of ranks in a time.

    Attributes:
        name: of the result.
        ranks: all ranks.
        time_ps: duration, for which the ranks have to be paid.
        products: what they made.
        computing_share: share of the ranks' time in which they computed; None if unknown.
        utilisation: model FLOPs utilisation; None if unknown.
        is_undone_by_failures: whether a failure undoes work since the last checkpoint, as in training.
    """

    name: str
    ranks: int
    time_ps: int
    products: tuple[Product, ...]
    computing_share: float | None = None
    utilisation: float | None = None
    is_undone_by_failures: bool = True


def training_products(ranks: int, steps: float = 1, tokens: int = 0) -> tuple[Product, ...]:
    """Return the products of training: steps, and tokens if there are any."""
    found = (Product("training_step", "a training step", steps, ranks),)
    return (*found, tokens_of("tokens", tokens, ranks)) if tokens else found


def tokens_of(kind: str, count: int, ranks: int) -> Product:
    """Return tokens as a product; `kind` is such as `output tokens`."""
    return Product(f"million_{kind.replace(' ', '_')}", f"a million {kind}", count / TOKENS_PRICED, ranks)
