"""Whether a fabric's routes let its lossless classes go on, before anything is built."""

from __future__ import annotations

from weft.controller.features import Settings
from weft.controller.lossless import LosslessSettings, cycle_of_routes
from weft.controller.routing.channels import cycle_text
from weft.scenario import CreditsSection, FabricOptions, KeyProblem, PfcSection
from weft.topologies import FabricSpec


def _section(options: FabricOptions) -> tuple[str, PfcSection | CreditsSection]:
    """Return the flow control that the options ask for, and the name of its section."""
    return ("credits", options.credits) if options.credits.classes else ("pfc", options.pfc)


def lossless_settings(options: FabricOptions) -> LosslessSettings:
    """Return what the controller must know of flow control."""
    _, section = _section(options)
    return LosslessSettings(tuple(sorted(set(section.classes))))


def require_lossless_routes(fabric: FabricSpec, options: FabricOptions, settings: Settings) -> None:
    """Check that no buffers of lossless classes can wait for each other. Raises KeyProblem, which names them."""
    key, section = _section(options)
    if not section.classes or section.allow_deadlock:
        return
    if cycle := cycle_of_routes(fabric, settings.routing):
        raise KeyProblem(
            f"{key}.classes",
            f"{section.classes} may deadlock: routes by {settings.routing} make a cycle of buffers, each of which may "
            f"wait for the next: {cycle_text(cycle)}. Take routes without one, or run nevertheless with "
            f"{key}.allow_deadlock: true",
        )
