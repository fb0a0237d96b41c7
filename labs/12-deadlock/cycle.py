"""Print the cycle of buffers that a scenario's routes make, and draw it in its fabric.

python labs/12-deadlock/cycle.py SCENARIO ROUTING PICTURE
"""

from __future__ import annotations

import sys
from pathlib import Path

from weft.controller.lossless import cycle_of_routes
from weft.controller.routing.channels import cycle_text
from weft.scenario import load_scenario
from weft.topologies import FabricLink, LinkStyle, draw


def main(scenario: Path, routing: str, picture: Path) -> None:
    """Draw the fabric, the links of the cycle in red."""
    fabric = load_scenario(scenario).fabric.build()
    cycle = cycle_of_routes(fabric, routing)
    print(cycle_text(cycle) or "no cycle")
    waiting = {(channel.switch, channel.port) for channel in cycle}

    def style(link: FabricLink) -> LinkStyle:
        is_waiting = bool(waiting & {(end.node, end.port) for end in (link.a, link.b)})
        return LinkStyle("#c0392b", 4.0, "waits for the next") if is_waiting else LinkStyle("#9aa7b5")

    draw(fabric, picture, style)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
