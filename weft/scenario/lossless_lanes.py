"""The classes that are lossless besides those that a scenario names: the lanes that routes move their packets to."""

from __future__ import annotations

from weft.controller.features.virtual_lanes import lane_classes
from weft.controller.routing import ROUTING_KINDS
from weft.scenario.options import FabricOptions
from weft.topologies import FabricSpec


def with_lossless_lanes(options: FabricOptions, fabric: FabricSpec) -> FabricOptions:
    """Return options that name all lossless classes on a fabric: those given, and the lanes of their packets.

    What cannot be routed, or has too few lanes, stays as it is: later checks say so.
    """
    kind = ROUTING_KINDS.named(options.routing.kind)
    sections = {name: section for name in ("pfc", "credits") if (section := getattr(options, name)).classes}
    if not sections or kind.objection(fabric):
        return options
    lanes = kind.lanes_of_planes(fabric)
    changed = {}
    for name, section in sections.items():
        needed = {each for own in section.classes for plane in lanes for each in lane_classes(own, plane)}
        if added := sorted(needed - set(section.classes)):
            changed[name] = section.model_copy(update={"classes": [*section.classes, *added]})
    return options.changed(**changed) if changed else options
