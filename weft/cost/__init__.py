"""Price and power of a fabric: a bill of its parts from a table of assumed prices, and derived figures."""

from weft.cost.bill import Bill, Item, bill_of
from weft.cost.figures import CostFigures, cost_figures
from weft.cost.prices import PriceTable, read_prices, shipped_table_text

__all__ = [
    "Bill",
    "CostFigures",
    "Item",
    "PriceTable",
    "bill_of",
    "cost_figures",
    "read_prices",
    "shipped_table_text",
]
