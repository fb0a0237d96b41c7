"""`weft shell`: p4runtime-shell on a switch of the running lab."""

from __future__ import annotations

import os

import click

from weft import lab_state
from weft.errors import BadInputError, EnvironmentLacksError, did_you_mean
from weft.paths import SHELL_PYTHON

# Below the lab's controller: the shell reads, and the controller stays primary.
BACKUP_ELECTION_ID = "0,1"
# Above it, high half first: the shell may write, and the controller is primary no more until it bids again.
PRIMARY_ELECTION_ID = "1,0"


@click.command()
@click.argument("switch")
@click.option(
    "--primary", is_flag=True, help="Take the switch over from the lab's controller, to write, too."
)
def shell(switch: str, primary: bool) -> None:
    """Open p4runtime-shell on SWITCH of the running lab, to read its tables and counters.

    p4runtime-shell runs from an environment of its own (.venv-shell), which the project's set-up makes.
    """
    address, device_id = _find(switch)
    if not SHELL_PYTHON.exists():
        raise EnvironmentLacksError(
            f"{SHELL_PYTHON} is missing: run vagrant/provision.sh, which makes .venv-shell"
        )
    election_id = PRIMARY_ELECTION_ID if primary else BACKUP_ELECTION_ID
    command = [str(SHELL_PYTHON), "-m", "p4runtime_sh", "--grpc-addr", address, "--device-id", str(device_id)]
    # Its protobuf code is older than the C++ parser that a newer one would come with.
    environment = os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    os.execve(SHELL_PYTHON, [*command, "--election-id", election_id], environment)


def _find(switch: str) -> tuple[str, int]:
    state = lab_state.load()
    if state is None or not state.grpc:
        raise EnvironmentLacksError("no lab runs on this machine: start one with `weft lab SCENARIO`")
    if switch not in state.grpc:
        raise BadInputError(f"unknown switch '{switch}'; {did_you_mean(switch, state.grpc)}")
    return state.grpc[switch]
