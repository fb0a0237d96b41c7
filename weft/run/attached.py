"""What looks on while a scenario runs, and changes nothing."""

from __future__ import annotations

from typing import Protocol

from weft.clocks.virtual.lab import VirtualLab
from weft.errors import EnvironmentLacksError
from weft.run.fabric import Fabric


class Attached(Protocol):
    """Something that a run's caller attaches to its fabric."""

    def begin(self, fabric: Fabric) -> None:
        """Called when the fabric is up, before its traffic."""

    def end(self, fabric: Fabric) -> None:
        """Called after the traffic, also if that has failed; the fabric is still up."""


def virtual_lab(fabric: Fabric, what: str) -> VirtualLab:
    """Return the lab of a fabric whose switches are in this process. EnvironmentLacksError if they are not."""
    if not isinstance(fabric.lab, VirtualLab):
        raise _of_the_virtual_clock(what)
    return fabric.lab


def require_virtual_clock(clock: str | None, what: str) -> None:
    """Raise EnvironmentLacksError for another clock, before a lab is brought up in vain."""
    if clock != "virtual":
        raise _of_the_virtual_clock(what)


def _of_the_virtual_clock(what: str) -> EnvironmentLacksError:
    return EnvironmentLacksError(f"{what} is for runs of the virtual clock (--set clock=virtual)")
