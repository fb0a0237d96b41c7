"""The ledger of a run: what became of every packet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from weft.errors import CheckFailedError

if TYPE_CHECKING:
    from engine._core import Ledger


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


def print_ledger(console: Console, ledger: Ledger | None) -> None:
    """Print one line, if there is a ledger."""
    if ledger is None:
        return
    sent, delivered = ledger["entered"]["sent"], ledger["left"]["delivered"]
    dropped = sum(each["packets"] for each in ledger["dropped"].values())
    under_way = [ledger[where]["packets"] for where in ("queued", "in_flight", "in_switches")]
    console.print(
        f"ledger: hosts sent {sent['packets']} packets ({sent['bytes']} B) and were given {delivered['packets']} "
        f"({delivered['bytes']} B); {dropped} ended in switches, on links or at NICs, {sum(under_way)} are under way; "
        "none is missing"
    )
