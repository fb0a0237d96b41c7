"""`weft shell`: p4runtime-shell on a switch that runs."""

from __future__ import annotations

import os

import click

from weft.commands.running_switch import find_running_switch
from weft.errors import EnvironmentLacksError
from weft.paths import SHELL_PYTHON

# Below the lab's controller: the shell reads, and the controller stays primary.
BACKUP_ELECTION_ID = "0,1"
# Above it, high half first: the shell may write, and the controller is primary no more until it bids again.
PRIMARY_ELECTION_ID = "1,0"


@click.command()
@click.argument("switch")
@click.option("--primary", is_flag=True, help="Take the switch over from the lab's controller, to write, too.")
@click.option("--device-id", type=click.IntRange(0), default=0, help="Of a switch given by address.")
def shell(switch: str, primary: bool, device_id: int) -> None:
    """Open p4runtime-shell on SWITCH, to read its tables and counters.

    SWITCH is a switch of the running lab, or HOST:PORT or unix:PATH of any that serves P4Runtime (without TLS).
    p4runtime-shell runs from an environment of its own (.venv-shell), which `make setup PARTS=shell` makes.
    """
    address, device_id, _ = find_running_switch(switch, device_id)
    if not SHELL_PYTHON.exists():
        raise EnvironmentLacksError(
            f"{SHELL_PYTHON} is missing: make it with `make setup PARTS=shell` in a checkout, or with\n"
            f"  python3 -m venv {SHELL_PYTHON.parents[1]}\n"
            f"  {SHELL_PYTHON} -m pip install p4runtime-shell==0.0.6 'protobuf<3.21' setuptools"
        )
    election_id = PRIMARY_ELECTION_ID if primary else BACKUP_ELECTION_ID
    command = [str(SHELL_PYTHON), "-m", "p4runtime_sh", "--grpc-addr", address, "--device-id", str(device_id)]
    # Its protobuf code is older than the C++ parser that a newer one would come with.
    environment = os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    os.execve(SHELL_PYTHON, [*command, "--election-id", election_id], environment)
