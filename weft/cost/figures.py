"""What a bill comes to: per accelerator, per bandwidth between halves, over years, and beside the accelerators."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, log1p

from weft.cost.bill import Bill, bill_of
from weft.cost.prices import Energy, PriceTable
from weft.topologies import FabricSpec
from weft.topologies.metrics import fabric_bisection

HOURS_PER_YEAR = 8760


@dataclass(frozen=True)
class YearsCost:
    """What equipment costs over its years: the price, interest on it, electricity."""

    price: float
    interest: float
    energy_kwh: float
    electricity: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.price + self.interest + self.electricity


@dataclass(frozen=True)
class CostFigures:
    """A fabric's bill and what follows from it; money in the table's currency.

    Attributes:
        name: of the scenario.
        bill: of the network.
        accelerators: endpoints of the fabric, spare ones included.
        accelerators_per_host: those that share a host, joined by its scale-up links; 1 where there are none.
        bisection_bps: between halves of the hosts, all planes together (`weft.topologies.metrics.fabric_bisection`).
        bisection_is_exact: otherwise it is an upper bound.
        over_years: of the network.
        years: of `over_years`.
        accelerator: name of the accelerators in the table; None: the network alone.
        accelerators_price, accelerators_watts: of all of them; 0 without a name.
        accelerators_over_years: likewise.

    """

    name: str
    bill: Bill
    accelerators: int
    accelerators_per_host: int
    bisection_bps: int
    bisection_is_exact: bool
    over_years: YearsCost
    years: float
    accelerator: str | None
    accelerators_price: float
    accelerators_watts: float
    accelerators_over_years: YearsCost

    @property
    def price_per_accelerator(self) -> float:
        """The network's."""
        return self.bill.price / self.accelerators

    @property
    def watts_per_accelerator(self) -> float:
        """The network's."""
        return self.bill.watts / self.accelerators

    @property
    def bisection_gbps_per_accelerator(self) -> float:
        """Gb/s of bisection bandwidth over accelerators."""
        return self.bisection_bps / 1e9 / self.accelerators

    @property
    def price_per_gbps(self) -> float | None:
        """Price over Gb/s of bisection bandwidth; None without any."""
        return self.bill.price / (self.bisection_bps / 1e9) if self.bisection_bps else None

    @property
    def watts_per_gbps(self) -> float | None:
        """Power over Gb/s of bisection bandwidth; None without any."""
        return self.bill.watts / (self.bisection_bps / 1e9) if self.bisection_bps else None

    @property
    def per_accelerator_hour(self) -> float:
        """What the network costs for an hour of an accelerator, whether that computes or not."""
        return self.over_years.total / (self.accelerators * self.years * HOURS_PER_YEAR)

    @property
    def whole_per_accelerator_hour(self) -> float:
        """The same with the accelerators."""
        whole = self.over_years.total + self.accelerators_over_years.total
        return whole / (self.accelerators * self.years * HOURS_PER_YEAR)

    @property
    def network_price_share(self) -> float:
        """Of the price with accelerators."""
        whole = self.bill.price + self.accelerators_price
        return self.bill.price / whole if whole else 0.0

    @property
    def network_watts_share(self) -> float:
        """Of the power with accelerators."""
        whole = self.bill.watts + self.accelerators_watts
        return self.bill.watts / whole if whole else 0.0


def cost_figures(
    name: str, fabric: FabricSpec, table: PriceTable, accelerator: str | None = None
) -> CostFigures:
    """Return what a fabric costs by a table of prices, beside accelerators of a name where one is given.

    Raises:
        BadInputError: the table has no such accelerator, or nothing that serves the fabric (`bill_of`).
    """
    bill = bill_of(fabric, table)
    bisection_bps, is_exact = fabric_bisection(fabric)
    count = len(fabric.hosts)
    each = table.accelerator(accelerator) if accelerator is not None else None
    price, watts = (count * each.price, count * each.watts) if each is not None else (0.0, 0.0)
    return CostFigures(
        name=name,
        bill=bill,
        accelerators=count,
        accelerators_per_host=fabric.scale_up.ranks_per_host if fabric.scale_up else 1,
        bisection_bps=bisection_bps,
        bisection_is_exact=is_exact,
        over_years=over_years(bill.price, bill.watts, table.energy),
        years=table.energy.years,
        accelerator=accelerator,
        accelerators_price=price,
        accelerators_watts=watts,
        accelerators_over_years=over_years(price, watts, table.energy),
    )


def over_years(price: float, watts: float, energy: Energy) -> YearsCost:
    """Return what equipment of a price costs that draws `watts` at all hours of its years.

    With a cost of capital i the price P is an annuity of n years, each P·i / (1 − (1 + i)^−n); what exceeds P is
    interest. `watts` times the power usage effectiveness is what the site draws.
    """
    interest = 0.0
    if energy.cost_of_capital:
        rate = energy.cost_of_capital
        interest = price * (energy.years * rate / -expm1(-energy.years * log1p(rate)) - 1)
    energy_kwh = watts / 1000 * energy.pue * HOURS_PER_YEAR * energy.years
    return YearsCost(price, interest, energy_kwh, energy_kwh * energy.price_per_kwh)
