"""Prints costs as tables, and converts them to plain values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import Any

from rich.console import Console
from rich.markup import escape

from weft.cost.figures import CostFigures, YearsCost
from weft.cost.prices import PriceTable
from weft.cost.work import WorkCost
from weft.quantities.readable import counted, format_number
from weft.results.figure_tables import print_figures

_SMALL = 1e-3
"""Smaller amounts have more digits behind the point."""


def caption(table: PriceTable) -> str:
    """Return the note on assumptions that every output of costs carries."""
    return (
        f"Assumed prices and watts, not a quotation ({table.date}; {table.source}). Network alone: NICs, cables, "
        "switches; no servers, racks, installation, spare parts or staff."
    )


def as_dict(
    costs: Sequence[CostFigures], table: PriceTable, works: Sequence[Sequence[WorkCost]] = ()
) -> dict[str, Any]:
    """Return plain values: the assumptions, then each fabric with its bill, and its run's work if there are runs."""
    fabrics = [_fabric(each) for each in costs]
    for fabric, found in zip(fabrics, works, strict=bool(works)):
        fabric["work"] = [_work(each) for each in found]
    return {"assumptions": table.model_dump(mode="json"), "fabrics": fabrics}


def _fabric(cost: CostFigures) -> dict[str, Any]:
    return {
        "name": cost.name,
        "items": [
            {
                "kind": item.kind,
                "name": item.name,
                "count": item.count,
                "price": item.price,
                "watts": item.watts,
                "metres": item.metres,
            }
            for item in cost.bill.items
        ],
        "price": cost.bill.price,
        "watts": cost.bill.watts,
        "racks": cost.bill.host_racks,
        "longest_cable_m": cost.bill.longest_m,
        "accelerators": cost.accelerators,
        "accelerators_per_host": cost.accelerators_per_host,
        "switch_ports": cost.bill.ports,
        "switch_ports_in_use": cost.bill.ports_in_use,
        "bisection_bps": cost.bisection_bps,
        "bisection_is_exact": cost.bisection_is_exact,
        "price_per_accelerator": cost.price_per_accelerator,
        "watts_per_accelerator": cost.watts_per_accelerator,
        "price_per_bisection_gbps": cost.price_per_gbps,
        "watts_per_bisection_gbps": cost.watts_per_gbps,
        "over_years": _years(cost.years, cost.over_years),
        "per_accelerator_hour": cost.per_accelerator_hour,
        "with_accelerators": _with_accelerators(cost),
        "kept_share": cost.kept_share,
        "per_kept_accelerator_hour": cost.per_kept_hour,
    }


def _work(cost: WorkCost) -> dict[str, Any]:
    figures = {key: value for key, _, value in cost.figures()}
    return {
        "name": cost.work.name,
        "accelerators": cost.accelerators,
        "time_ps": cost.work.time_ps,
        "computing_share": cost.work.computing_share,
        "mfu": cost.work.utilisation,
        "kept_share": cost.kept_share,
        "per_accelerator_hour": cost.hourly,
        "total": cost.total,
        "costs": figures,
        "costs_of_kept_work": None if cost.kept_share is None else {k: cost.kept(each) for k, each in figures.items()},
    }


def _years(years: float, cost: YearsCost) -> dict[str, float]:
    return {
        "years": years,
        "price": cost.price,
        "interest": cost.interest,
        "energy_kwh": cost.energy_kwh,
        "electricity": cost.electricity,
        "total": cost.total,
    }


def _with_accelerators(cost: CostFigures) -> dict[str, Any] | None:
    if cost.accelerator is None:
        return None
    return {
        "accelerator": cost.accelerator,
        "price": cost.accelerators_price,
        "watts": cost.accelerators_watts,
        "network_share_of_price": cost.network_price_share,
        "network_share_of_watts": cost.network_watts_share,
        "over_years": _years(cost.years, cost.accelerators_over_years),
        "per_accelerator_hour": cost.whole_per_accelerator_hour,
    }


def print_bill(console: Console, cost: CostFigures, table: PriceTable, note: str = "") -> None:
    """Print the bill of one fabric and its derived figures."""
    bill = cost.bill
    rows = [
        [
            item.name,
            f"{item.count:,}",
            f"{item.metres:,.0f}" if item.metres else "",
            f"{item.price:,.0f}",
            f"{item.watts:,.0f}",
        ]
        for item in bill.items
    ]
    rows.append(["network", "", "", f"{bill.price:,.0f}", f"{bill.watts:,.0f}"])
    title = (
        f"[bold]{escape(cost.name)}[/bold]: {counted(cost.accelerators, 'accelerator')}, "
        f"{cost.accelerators_per_host} a host, in {counted(bill.host_racks, 'rack')}, "
        f"longest cable {bill.longest_m:g} m"
    )
    columns = ("item", "count", "length (m)", f"price ({table.currency})", "power (W)")
    print_figures(console, title, columns, rows, ("item",))
    console.print()
    for line in _lines(cost, table):
        console.print(escape(line), soft_wrap=True)
    if note:
        console.print(escape(note), soft_wrap=True)


def _lines(cost: CostFigures, table: PriceTable) -> list[str]:
    money, energy, over, bill = table.currency, table.energy, cost.over_years, cost.bill
    lines = [
        f"switch ports: {bill.ports_in_use:,} of {bill.ports:,} in use ({bill.ports_in_use / bill.ports:.0%})",
        f"per accelerator: {_of(cost.price_per_accelerator, money)}, {format_number(cost.watts_per_accelerator)} W",
        _bisection(cost, money),
        f"{energy.years:g} years: {_of(over.price, money)} of equipment, {_of(over.electricity, money)} of electricity "
        f"({over.energy_kwh:,.0f} kWh at {_of(energy.price_per_kwh, money)}, PUE {energy.pue:g})"
        + (f", {_of(over.interest, money)} of interest ({energy.cost_of_capital:.3g} a year)" if over.interest else "")
        + f"; {_of(cost.per_accelerator_hour, money)} for an hour of an accelerator",
    ]
    if cost.accelerator is not None:
        lines.append(
            f"with {cost.accelerators:,} x {cost.accelerator} in their servers "
            f"({_of(cost.accelerators_price, money)}, {cost.accelerators_watts:,.0f} W): the network is "
            f"{cost.network_price_share:.1%} of the price and {cost.network_watts_share:.1%} of the power; "
            f"together {_of(cost.whole_per_accelerator_hour, money)} for an hour of an accelerator"
        )
    if cost.per_kept_hour is not None:
        lines.append(
            f"failures, checkpoints and restarts leave {cost.kept_share:.1%} of the time (weft goodput): "
            f"{_of(cost.per_kept_hour, money)} for an hour of kept work of an accelerator"
        )
    return lines


def _bisection(cost: CostFigures, money: str) -> str:
    if cost.price_per_gbps is None or cost.watts_per_gbps is None:
        return "bisection bandwidth: none"
    bound = "" if cost.bisection_is_exact else "at most "
    return (
        f"bisection bandwidth: {bound}{format_number(cost.bisection_bps / 1e9)} Gb/s, "
        f"{format_number(cost.bisection_gbps_per_accelerator)} an accelerator; for each Gb/s "
        f"{_of(cost.price_per_gbps, money)} and {format_number(cost.watts_per_gbps)} W"
        f"{'' if cost.bisection_is_exact else ' at least'}"
        f"{', the storage network included, which adds none' if cost.has_storage_network else ''}"
    )


def print_work(console: Console, name: str, works: Sequence[WorkCost], table: PriceTable) -> None:
    """Print what a run's steps and tokens cost on a fabric, and hours by their use."""
    money = table.currency
    for each in works:
        work, is_kept = each.work, each.kept_share is not None
        title = (
            f"\n[bold]{escape(name)}: {escape(work.name)}[/bold], {counted(each.accelerators, 'accelerator')} at "
            f"{escape(_of(each.hourly, money))} an hour each"
        )
        columns = ["cost of", money, *([f"{money}, kept work"] if is_kept else [])]
        rows = [
            [what, _amount(value), *([_amount(each.kept(value))] if is_kept else [])]
            for what, value in (("an hour of an accelerator", each.hourly), *(row[1:] for row in each.figures()))
        ]
        print_figures(console, title, columns, rows, ("cost of",))
        console.print(escape(_uses(each)), soft_wrap=True)
    console.print()


def _amount(value: float | None) -> str:
    """Return an amount to three digits, without an exponent."""
    if value is None:
        return ""
    return format_number(value) if value >= _SMALL or not value else f"{value:.{2 - floor(log10(value))}f}"


def _uses(cost: WorkCost) -> str:
    """Return what the accelerators' time was used for."""
    work, parts = cost.work, []
    if work.computing_share is not None:
        parts.append(f"ranks compute for {work.computing_share:.1%} of the time")
    if work.utilisation is not None:
        parts.append(f"MFU is {work.utilisation:.1%}")
    if cost.kept_share is not None:
        parts.append(f"failures, checkpoints and restarts leave {cost.kept_share:.1%} of the time (weft goodput)")
    return "; ".join(parts)


_FABRICS_ABREAST = 5
"""Most columns of a comparison; further fabrics follow in another table."""


def print_comparison(console: Console, costs: Sequence[CostFigures], table: PriceTable) -> None:
    """Print fabrics side by side, one column each."""
    whole = costs[0].accelerator
    title = "[bold]cost of fabrics[/bold]"
    title += f" (share: of the network, with {escape(whole)} in their servers)" if whole else ""
    for first in range(0, len(costs), _FABRICS_ABREAST):
        chosen = costs[first : first + _FABRICS_ABREAST]
        columns = [_column(each, table.currency) for each in chosen]
        figures = dict.fromkeys(figure for column in columns for figure in column)
        rows = [[figure, *(column.get(figure, "") for column in columns)] for figure in figures]
        print_figures(console, title, ["figure", *(each.name for each in chosen)], rows, ("figure",))
    console.print()


def _column(cost: CostFigures, money: str) -> dict[str, str]:
    """Return a fabric's figures as text, by label."""
    bound = "" if cost.bisection_is_exact else "≤ "
    column = {
        "accelerators": f"{cost.accelerators:,}",
        "accelerators a host": f"{cost.accelerators_per_host}",
        "switches": f"{cost.bill.count_of('switch'):,}",
        "switch ports in use": f"{cost.bill.ports_in_use:,}",
        "switch ports paid for": f"{cost.bill.ports:,}",
        "copper cables": f"{cost.bill.count_of('copper'):,}",
        "transceivers": f"{cost.bill.count_of('transceiver'):,}",
        f"price ({money})": f"{cost.bill.price:,.0f}",
        "power (kW)": f"{cost.bill.watts / 1e3:,.1f}",
        "bisection (Gb/s)": f"{bound}{format_number(cost.bisection_bps / 1e9)}",
        "per accelerator:": "",
        f"  price ({money})": format_number(cost.price_per_accelerator),
        "  power (W)": format_number(cost.watts_per_accelerator),
        "  bisection (Gb/s)": f"{bound}{format_number(cost.bisection_gbps_per_accelerator)}",
        f"  {cost.years:g} years, an hour ({money})": f"{cost.per_accelerator_hour:.4f}",
        "per Gb/s of bisection:": "",
        f"  price of it ({money})": _per_gbps(cost.price_per_gbps, cost.bisection_is_exact),
        "  power of it (W)": _per_gbps(cost.watts_per_gbps, cost.bisection_is_exact),
    }
    if cost.per_kept_hour is not None:
        column |= {
            "kept work (%)": f"{100 * (cost.kept_share or 0):.1f}",
            f"an hour of kept work ({money})": f"{cost.per_kept_hour:.4f}",
        }
    if cost.accelerator is not None:
        column |= {
            "share of the price (%)": f"{100 * cost.network_price_share:.1f}",
            "share of the power (%)": f"{100 * cost.network_watts_share:.1f}",
        }
    return column


def _per_gbps(value: float | None, is_exact: bool) -> str:
    if value is None:
        return "none"
    return f"{'' if is_exact else '≥ '}{format_number(value)}"


def _of(amount: float, money: str) -> str:
    """Return an amount of money as text: `$0.013`, `2,500 CHF`."""
    number = format_number(amount)
    return f"{money}{number}" if len(money) == 1 else f"{number} {money}"
