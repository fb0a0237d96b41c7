"""Figures derived from a bill: per accelerator, per bisection bandwidth, over years, and relative to accelerators."""

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
    """Cost of equipment over its years: price, interest and electricity."""

    price: float
    interest: float
    energy_kwh: float
    electricity: float

    @property
    def total(self) -> float:
        """Total cost."""
        return self.price + self.interest + self.electricity


@dataclass(frozen=True)
class CostFigures:
    """A fabric's bill and derived figures; money in the table's currency.

    Attributes:
        name: name of the scenario.
        bill: bill of the network.
        accelerators: of all endpoints of the fabric, including spares.
        accelerators_per_host: accelerators that share a host.
        bisection_bps: bisection bandwidth of all planes together (`weft.topologies.metrics.fabric_bisection`).
        bisection_is_exact: whether it is exact; otherwise it is an upper bound.
        over_years: cost of the network over `years`.
        years: years of operation.
        accelerator: name of the accelerators in the table; None for the network alone.
        accelerators_price, accelerators_watts: totals of all accelerators; 0 without a name.
        accelerators_over_years: cost of all accelerators over `years`; 0 without a name.
        kept_share: share of time that is kept work (`weft.goodput`); None if nothing is known of failures.
        has_storage_network: whether the bill has a storage network, which is none of these planes.

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
    kept_share: float | None = None
    has_storage_network: bool = False

    @property
    def price_per_accelerator(self) -> float:
        """The network's price per accelerator."""
        return self.bill.price / self.accelerators

    @property
    def watts_per_accelerator(self) -> float:
        """The network's power per accelerator."""
        return self.bill.watts / self.accelerators

    @property
    def bisection_gbps_per_accelerator(self) -> float:
        """Bisection bandwidth per accelerator in Gb/s."""
        return self.bisection_bps / 1e9 / self.accelerators

    @property
    def price_per_gbps(self) -> float | None:
        """Price per Gb/s of bisection bandwidth; None without any."""
        return self.bill.price / (self.bisection_bps / 1e9) if self.bisection_bps else None

    @property
    def watts_per_gbps(self) -> float | None:
        """Watts per Gb/s of bisection bandwidth; None without any."""
        return self.bill.watts / (self.bisection_bps / 1e9) if self.bisection_bps else None

    @property
    def per_accelerator_hour(self) -> float:
        """Cost of the network per accelerator and hour, busy or idle."""
        return self.over_years.total / (self.accelerators * self.years * HOURS_PER_YEAR)

    @property
    def whole_per_accelerator_hour(self) -> float:
        """Cost of network and accelerators per accelerator and hour."""
        whole = self.over_years.total + self.accelerators_over_years.total
        return whole / (self.accelerators * self.years * HOURS_PER_YEAR)

    @property
    def per_kept_hour(self) -> float | None:
        """Cost of an hour of an accelerator whose work is kept, as the hour's above; None as `kept_share`, or at 0."""
        whole = self.per_accelerator_hour if self.accelerator is None else self.whole_per_accelerator_hour
        return whole / self.kept_share if self.kept_share else None

    @property
    def network_price_share(self) -> float:
        """The network's share of the price of network and accelerators."""
        whole = self.bill.price + self.accelerators_price
        return self.bill.price / whole if whole else 0.0

    @property
    def network_watts_share(self) -> float:
        """The network's share of the power of network and accelerators."""
        whole = self.bill.watts + self.accelerators_watts
        return self.bill.watts / whole if whole else 0.0


def cost_figures(
    name: str,
    fabric: FabricSpec,
    table: PriceTable,
    accelerator: str | None = None,
    per_endpoint: int = 1,
    kept_share: float | None = None,
) -> CostFigures:
    """Return the cost figures of a fabric from a table of prices, with the named accelerators if given.

    Args:
        per_endpoint: accelerators of each endpoint of the fabric.
        kept_share: see CostFigures.

    Raises:
        BadInputError: the table lacks the accelerator, or parts for the fabric (`bill_of`).
    """
    bill = bill_of(fabric, table, per_endpoint)
    bisection_bps, is_exact = fabric_bisection(fabric)
    count = len(fabric.hosts) * per_endpoint
    each = table.accelerator(accelerator) if accelerator is not None else None
    price, watts = (count * each.price, count * each.watts) if each is not None else (0.0, 0.0)
    return CostFigures(
        name=name,
        has_storage_network=fabric.storage_plane is not None,
        bill=bill,
        accelerators=count,
        accelerators_per_host=per_endpoint * fabric.ranks_per_host,
        bisection_bps=bisection_bps,
        bisection_is_exact=is_exact,
        over_years=over_years(bill.price, bill.watts, table.energy),
        years=table.energy.years,
        accelerator=accelerator,
        accelerators_price=price,
        accelerators_watts=watts,
        accelerators_over_years=over_years(price, watts, table.energy),
        kept_share=kept_share,
    )


def over_years(price: float, watts: float, energy: Energy) -> YearsCost:
    """Return the cost of equipment with this price that draws `watts` at all times.

    With a cost of capital i, the price P is paid as an annuity over n years, each P·i / (1 − (1 + i)^−n); the excess
    over P is interest. The site draws `watts` times the power usage effectiveness.
    """
    interest = 0.0
    if energy.cost_of_capital:
        rate = energy.cost_of_capital
        interest = price * (energy.years * rate / -expm1(-energy.years * log1p(rate)) - 1)
    energy_kwh = watts / 1000 * energy.pue * HOURS_PER_YEAR * energy.years
    return YearsCost(price, interest, energy_kwh, energy_kwh * energy.price_per_kwh)
