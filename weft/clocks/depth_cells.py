"""In which cells switches count the depth of queues, so that 19 bits hold ECN's thresholds at any rate."""

from __future__ import annotations

from weft.controller.features.ecn import scaled_profile
from weft.controller.target import MOST_DEPTH_UNITS, TargetFacts, cell_bytes_for
from weft.scenario import FabricOptions, KeyProblem
from weft.topologies import FabricSpec


def _largest_threshold_bytes(fabric: FabricSpec, options: FabricOptions) -> int:
    if options.ecn.kmax is not None:
        return options.ecn.kmax
    fastest = max((port.link.rate_bps for switch in fabric.switches for port in switch.ports), default=0)
    return scaled_profile(fastest).kmax_bytes


def depth_cell_bytes(fabric: FabricSpec, options: FabricOptions) -> int:
    """Return the size of a cell, the same in all switches: 80 B, unless a threshold is deeper than 19 bits of these."""
    return cell_bytes_for(_largest_threshold_bytes(fabric, options))


def require_depths(fabric: FabricSpec, options: FabricOptions, target: TargetFacts) -> None:
    """Check that the depth of a queue can say ECN's thresholds. Raises KeyProblem.

    Cells grow with them; packets, in which BMv2 counts, stay what they are.
    """
    most_bytes = MOST_DEPTH_UNITS * target.depth_unit_bytes
    kmax_bytes = _largest_threshold_bytes(fabric, options)
    if kmax_bytes <= most_bytes:
        return
    given = options.ecn.kmax is not None
    whose = "" if given else ", kmax's default at the fastest ports,"
    raise KeyProblem(
        "ecn.kmax" if given else "ecn",
        f"{kmax_bytes} B{whose} are more than the depth of a queue can say in packets of {target.depth_unit_bytes} B "
        f"(valid: kmax up to {most_bytes} B; or depths in cells, which grow with it: target: embedded with "
        "switching.depth_unit: cells)",
    )
