"""Whether a fabric's routes let its lossless classes go on, before anything is built."""

from __future__ import annotations

from weft.controller.errors import SettingError
from weft.controller.features import Settings
from weft.controller.features.virtual_lanes import require_classes_apart, require_lanes
from weft.controller.lossless import LosslessSettings, cycle_of_routes
from weft.controller.routing import ROUTING_KINDS
from weft.controller.routing.channels import cycle_text
from weft.scenario import CreditsSection, FabricOptions, KeyProblem, PfcSection
from weft.topologies import FabricSpec


def _section(options: FabricOptions) -> tuple[str, PfcSection | CreditsSection]:
    """Return the flow control that the options ask for, and the name of its section."""
    return ("credits", options.credits) if options.credits.classes else ("pfc", options.pfc)


def require_classes(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that routes leave the classes of data to themselves. Raises KeyProblem."""
    kind = ROUTING_KINDS.named(options.routing.kind)
    for lanes in kind.lanes_of_planes(fabric):
        try:
            require_classes_apart(lanes, options.scheduling.data_classes)
        except SettingError as error:
            raise KeyProblem("scheduling.classes", f"{options.scheduling.classes}: {error}") from None


def require_lossless_routes(fabric: FabricSpec, options: FabricOptions, settings: Settings) -> None:
    """Check that lossless classes have the lanes that routes need, and that none of their buffers can deadlock.

    Raises:
        KeyProblem: says which lanes are missing, or which buffers may wait for each other.
    """
    key, section = _section(options)
    if not section.classes:
        return
    if fabric.circuits is not None and len(fabric.circuits.names) > 1:
        raise KeyProblem(
            f"{key}.classes",
            f"{section.classes}: circuits that may change are not lossless",
            valid=f"one configuration, such as {fabric.circuits.present}",
        )
    for each in ROUTING_KINDS.named(settings.routing).lanes_of_planes(fabric):
        try:
            require_lanes(each, settings.of(LosslessSettings))
        except SettingError as error:
            raise KeyProblem(f"{key}.classes", f"{section.classes}: {error}") from None
    if section.allow_deadlock:
        return
    if cycle := cycle_of_routes(fabric, settings.routing):
        raise KeyProblem(
            f"{key}.classes",
            f"{section.classes} may deadlock: routes by {settings.routing} make a cycle of buffers, each of which may "
            f"wait for the next: {cycle_text(cycle)}. Take routes without one, or run nevertheless with "
            f"{key}.allow_deadlock: true",
        )
