"""simple_switch_grpc: `weft switch`, found by its Thrift port, with the P4Info next to the compiled program."""

from __future__ import annotations

import contextlib
import sys

from weft.cli import run_guarded
from weft.command_errors import say_error
from weft.errors import EnvironmentLacksError
from weft.shims.p4c import p4info_of
from weft.switch.cli.command import given
from weft.system.thrift_ports import Served, announced, reachable
from weft.thrift.commands import switch


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
    with contextlib.ExitStack() as stack:
        if asked.thrift_port is not None:
            served = Served(reachable(asked.address), asked.device_id)
            try:
                stack.enter_context(announced({asked.thrift_port: served}))
            except (EnvironmentLacksError, OSError) as error:
                say_error(f"simple_switch_CLI will not find this switch: {error}")
        switch.main(arguments, prog_name="simple_switch_grpc", standalone_mode=False)


if __name__ == "__main__":
    main()
