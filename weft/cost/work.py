"""Cost of a run's work: of steps and tokens, and of hours of accelerators by what they were used for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.cost.figures import CostFigures
from weft.quantities.units import PS_PER_S
from weft.results.work import Product, Work

_S_PER_HOUR = 3600


@dataclass(frozen=True)
class WorkCost:
    """Cost of one result's work; money in the table's currency.

    Attributes:
        work: the result's work.
        accelerators_per_rank: accelerators behind each rank, all of which are paid.
        hourly: cost of an hour of an accelerator, busy or idle.
        kept_share: share of time that is kept work; None if nothing is known of failures, or if they undo no such work.

    """

    work: Work
    accelerators_per_rank: int
    hourly: float
    kept_share: float | None

    @property
    def accelerators(self) -> int:
        """Accelerators of all ranks."""
        return self.work.ranks * self.accelerators_per_rank

    @property
    def total(self) -> float:
        """Cost of all accelerators for the work's time."""
        return self._of_ranks(self.work.ranks)

    def price_of(self, product: Product) -> float | None:
        """Return the cost of as many pieces as are priced together; None if none was made."""
        return self._of_ranks(product.ranks) / product.count if product.count else None

    @property
    def per_computing_hour(self) -> float | None:
        """Cost of an hour of an accelerator in which it computes; None if unknown."""
        return self.hourly / self.work.computing_share if self.work.computing_share else None

    @property
    def per_peak_hour(self) -> float | None:
        """Cost of as many of the model's operations as an accelerator does at its peak in an hour; None if unknown."""
        return self.hourly / self.work.utilisation if self.work.utilisation else None

    def kept(self, cost: float | None) -> float | None:
        """Return a cost with the share of failures in it; None if either is unknown."""
        return cost / self.kept_share if cost is not None and self.kept_share else None

    def figures(self) -> Iterator[tuple[str, str, float]]:
        """Yield key, name and cost of each figure that is known, without failures."""
        for product in self.work.products:
            if (price := self.price_of(product)) is not None:
                yield product.key, product.name, price
        if self.per_computing_hour is not None:
            yield "useful_hour", "a useful hour (computing)", self.per_computing_hour
        if self.per_peak_hour is not None:
            yield "useful_hour_at_peak", "a useful hour (at peak FLOPS)", self.per_peak_hour

    def _of_ranks(self, ranks: int) -> float:
        hours = self.work.time_ps / PS_PER_S / _S_PER_HOUR
        return ranks * self.accelerators_per_rank * hours * self.hourly


def work_cost(work: Work, cost: CostFigures, accelerators_per_rank: int) -> WorkCost:
    """Return the cost of work on a fabric, with its accelerators if `cost` has them, else of the network alone."""
    hourly = cost.per_accelerator_hour if cost.accelerator is None else cost.whole_per_accelerator_hour
    return WorkCost(work, accelerators_per_rank, hourly, cost.kept_share if work.is_undone_by_failures else None)
