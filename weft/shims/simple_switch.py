"""simple_switch_grpc: `weft switch` with the P4Info next to the compiled program."""

from __future__ import annotations

import copy
import sys

from weft.cli import run_guarded
from weft.shims.p4c import P4INFO_SUFFIXES, p4info_of
from weft.switch.cli.command import given
from weft.thrift.commands import switch as without_search

switch = copy.copy(without_search)
switch.p4info_suffixes = P4INFO_SUFFIXES


def main() -> None:
    """Run the switch with the process's arguments."""
    sys.exit(run_guarded(lambda: run(sys.argv[1:])))


def run(arguments: list[str]) -> None:
    """Run a switch until it is interrupted. Ends the process as `weft switch`."""
    asked = given(arguments)
    if asked.program is not None and not asked.has_p4info:
        found = p4info_of(asked.program)
        if found is not None:
            arguments = ["--p4info", str(found), *arguments]
    switch.main(arguments, prog_name="simple_switch_grpc", standalone_mode=False)


if __name__ == "__main__":
    main()
