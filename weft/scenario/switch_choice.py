"""A scenario's choice of switches: by name, by a pattern of names, or by role."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, TypeVar

from weft.hints import did_you_mean
from weft.scenario.places import KeyProblem
from weft.scenario.values import Text
from weft.topologies import FabricSpec, SwitchSpec

SwitchChoice = Annotated[str, Text("a switch, a pattern or a role", r"\A[^\s<>.\[\]]{1,64}\Z", "p0l*")]
"""A switch's name, a pattern of names (`*`, `?`), or a role: leaf, spine, core, router."""
_Value = TypeVar("_Value")


def by_switch(fabric: FabricSpec, chosen: Mapping[str, _Value], key: str) -> dict[str, _Value]:
    """Return what each switch is given, by its name; those that nothing names are left out.

    A name goes before a pattern, a pattern before a role; of several patterns the first one.

    Raises:
        KeyProblem: something is of no switch; `key` has it.
    """
    for choice in chosen:
        if not any(_rank(switch, choice) is not None for switch in fabric.switches):
            known = [
                *(switch.name for switch in fabric.switches),
                *(switch.role for switch in fabric.switches),
            ]
            raise KeyProblem(
                f"{key}.{choice}",
                f"no switch, pattern or role '{choice}'; {did_you_mean(choice, set(known))}",
            )
    found: dict[str, _Value] = {}
    for switch in fabric.switches:
        ranked = [(rank, value) for choice, value in chosen.items() if (rank := _rank(switch, choice)) is not None]
        if ranked:
            found[switch.name] = min(ranked, key=lambda each: each[0])[1]
    return found


def _rank(switch: SwitchSpec, choice: str) -> int | None:
    """Return how near a choice is to a switch, the nearest first; None if it is not of it."""
    if choice == switch.name:
        return 0
    if choice == switch.role:
        return 2
    return 1 if fnmatchcase(switch.name, choice) else None
