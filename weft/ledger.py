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


def print_ledger(console: Console, ledger: Ledger | None) -> None:
    """Print one line, if there is a ledger."""
    if ledger is None:
        return
    sent, delivered = ledger["entered"]["sent"], ledger["left"]["delivered"]
    dropped = [sum(each[unit] for each in ledger["dropped"].values()) for unit in ("packets", "bytes")]
    under_way = [ledger["queued"][unit] + ledger["in_flight"][unit] for unit in ("packets", "bytes")]
    console.print(
        f"ledger: hosts sent {sent['packets']} packets ({sent['bytes']} B) and were given {delivered['packets']} "
        f"({delivered['bytes']} B); {dropped[0]} ended in switches, on links or at NICs, {under_way[0]} are under way; "
        "none is missing"
    )
