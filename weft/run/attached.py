"""Interface of observers of a running scenario, which do not change its results."""

from __future__ import annotations

from typing import Protocol

from weft.clocks.virtual.lab import VirtualLab
from weft.errors import EnvironmentLacksError
from weft.run.fabric import Fabric


class Attached(Protocol):
    """An observer that a run's caller attaches to the fabric."""

    def begin(self, fabric: Fabric) -> None:
        """Called when the fabric is up, before its traffic."""

    def end(self, fabric: Fabric) -> None:
        """Called after the traffic, also if that has failed; the fabric is still up."""


def virtual_lab(fabric: Fabric, what: str) -> VirtualLab:
    """Return a fabric's lab. Raises EnvironmentLacksError unless its switches are in this process."""
    if not isinstance(fabric.lab, VirtualLab):
        raise _of_the_virtual_clock(what)
    return fabric.lab


def require_virtual_clock(clock: str | None, what: str) -> None:
    """Raise EnvironmentLacksError for another clock, before a lab is started in vain."""
    if clock != "virtual":
        raise _of_the_virtual_clock(what)


def _of_the_virtual_clock(what: str) -> EnvironmentLacksError:
    return EnvironmentLacksError(f"{what} is for runs of the virtual clock (--set clock=virtual)")
