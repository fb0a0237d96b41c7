"""Examples of a scenario's keys."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """Annotates a key with its example in the scenario reference, where its type and default give none.

    `value` is written as in a file. `needs` are other keys that the example needs, as `--set` takes them; those that
    begin with a dot are keys of the same section.
    """

    value: str
    needs: tuple[str, ...] = ()
