"""`weft controller …`: shows the state of a running lab's switches and sends requests to its controller.

Reading needs no election, so it never disturbs the lab's controller. Exit codes: 0 ok, 1 a check
failed, 2 usage, 3 bad input, 4 the environment lacks something (no lab, a switch that does not answer).
"""

from __future__ import annotations

from weft.controller.cli import ecn, ev, operating, reading
from weft.controller.cli.group import controller

__all__ = ["controller", "ecn", "ev", "main", "operating", "reading"]


def main() -> None:
    """Run the command `weft-controller`."""
    controller(prog_name="weft-controller")
