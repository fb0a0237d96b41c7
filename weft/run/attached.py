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
        """Called after the traffic; the fabric is still up."""


def virtual_lab(fabric: Fabric, what: str) -> VirtualLab:
    """Return the lab of a fabric whose switches are in this process. EnvironmentLacksError if they are not."""
    if not isinstance(fabric.lab, VirtualLab):
        raise EnvironmentLacksError(f"{what} is for runs of the virtual clock (--set clock=virtual)")
    return fabric.lab
