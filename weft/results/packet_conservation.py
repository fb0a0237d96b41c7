"""The ledger of a run: what became of every packet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from weft.errors import CheckFailedError

if TYPE_CHECKING:
    from weft.engine._core import Ledger


def checked_ledger(ledger: Ledger) -> Ledger:
    """Return a ledger that balances.

    Raises:
        CheckFailedError: packets or bytes are nowhere, or have come from nowhere; says how many.
    """
    missing = ledger["missing"]
    if missing["packets"] or missing["bytes"]:
        raise CheckFailedError(
            f"the ledger does not balance: {missing['packets']} packets and {missing['bytes']} B of what entered the "
            "fabric have neither left it, nor been dropped, nor are under way (below 0: have come from nowhere); "
            f"dropped: {', '.join(ledger['dropped']) or 'none'}"
        )
    return ledger


def packets_under_way(ledger: Ledger) -> int:
    """Return how many packets wait in queues, are on links, or are in switches that take their time."""
    return sum(ledger[where]["packets"] for where in ("queued", "in_flight", "in_switches"))


_ENTERED = {
    "sent": "sent by hosts",
    "from_controller": "from the controller",
    "multicast": "multicast copies",
    "cloned": "clones",
    "duplicated": "duplicated by links",
    "flow_control": "of flow control",
    "injected": "injected",
}
_LEFT = {
    "delivered": "delivered to hosts",
    "to_controller": "to the controller",
    "flow_control": "of flow control",
    "collected": "collected",
}


def print_ledger(console: Console, ledger: Ledger | None, absorbed: Mapping[str, int]) -> None:
    """Print an equation of packets, if there is a ledger: how many there were, and what became of them.

    `absorbed` (`weft.results.counters.absorbed_totals`) stands apart from drops.
    """
    if ledger is None:
        return
    taken = sum(absorbed.values())
    came = [(_ENTERED[name], count["packets"]) for name, count in ledger["entered"].items()]
    went = [
        *((_LEFT[name], count["packets"]) for name, count in ledger["left"].items()),
        ("absorbed by aggregation", taken),
        ("dropped", sum(each["packets"] for each in ledger["dropped"].values()) - taken),
        ("under way", packets_under_way(ledger)),
    ]
    console.print(f"packet conservation: {_terms(came)} = {_terms(went)}; none is missing")


def _terms(counts: Sequence[tuple[str, int]]) -> str:
    """Return a sum; terms of 0 are left out, but for the first."""
    return " + ".join(
        f"{count} {name}" for number, (name, count) in enumerate(counts) if count or number == 0
    )
