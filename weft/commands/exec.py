"""`weft exec`: a program in a host of the lab that runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
from pathlib import Path
from typing import NoReturn

import click

from weft.clocks.real import lab_state
from weft.clocks.virtual.exec.places import PLACES_VARIABLE, enter_from_another
from weft.errors import BadInputError, EnvironmentLacksError
from weft.hints import did_you_mean

_FRESH_S = 1.0
"""For fresh counters; a host that makes a large run ready answers nobody meanwhile."""
_FIRST_DESCRIPTOR = 100


@click.command(name="exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--kernel-devices", is_flag=True, help="Show RDMA programs the kernel's devices, not the lab's.")
@click.argument("host")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def exec_command(kernel_devices: bool, host: str, command: tuple[str, ...]) -> None:
    """Run COMMAND in HOST of the running lab, as `ssh HOST COMMAND` would: the words are joined and given to a shell.

    Without COMMAND it is a shell of its own. It is root's, or sudo's, as the lab is. mpirun takes it as its remote
    shell (docs/mpi.md). RDMA programs find the host's device (docs/verbs.md). The exit code is the command's; 3 if
    there is no such host, 4 if there is no lab, or if you may not enter its hosts. In a command of a run's item exec
    it means that run's hosts.
    """
    line = " ".join(command) or 'exec "${SHELL:-/bin/sh}"'
    if places := os.environ.get(PLACES_VARIABLE):
        _become(enter_from_another(Path(places), host, line))
    from weft.clocks.real.fabric_hosts import enter, with_variables
    from weft.verbs.libraries import variables
    from weft.verbs.places import without_devices

    state = lab_state.load()
    if state is None or not state.owner.alive:
        raise EnvironmentLacksError("no lab of the real clock runs on this machine; start one with `weft lab SCENARIO`")
    if host not in state.hosts:
        raise BadInputError(f"unknown host '{host}'; {did_you_mean(host, state.hosts)}")
    holder = state.hosts[host]
    if not holder.alive:
        raise EnvironmentLacksError(f"{host} has gone: its shell, process {holder.pid}, has ended")
    if not os.access(f"/proc/{holder.pid}/ns/net", os.R_OK):
        raise EnvironmentLacksError(f"only root may enter {host}: sudo weft exec {host} …")
    words = [*enter(holder.pid), "sh", "-c", line]
    if host in state.verbs_sockets and kernel_devices:
        words[-3:-3] = without_devices()
    elif host in state.verbs_sockets:
        words[-3:-3] = with_variables(variables(state.verbs_sockets[host]))
        _watch_counters(Path(state.verbs_counters[host]))
    elif state.verbs_missing and not kernel_devices and _needs_device(command):
        click.echo(f"warning: {host} has no RDMA device: {state.verbs_missing}", err=True)
    _become(words)


def _become(words: list[str]) -> NoReturn:
    try:
        os.execvp(words[0], words)
    except OSError as error:
        raise EnvironmentLacksError(f"{words[0]} cannot be run: {error.strerror}") from None


def _watch_counters(path: Path) -> None:
    """Have the host's process, if it runs, keep the device's counters fresh until the command has ended."""
    from weft.traffic.answering_socket import short_name

    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection,
        short_name(path) as short,
    ):
        connection.settimeout(_FRESH_S)
        connection.connect(short)
        connection.recv(1)
        # The command inherits it, and with its end it is closed; the number is one that no script uses.
        os.set_inheritable(fcntl.fcntl(connection, fcntl.F_DUPFD, _FIRST_DESCRIPTOR), True)


def _needs_device(command: tuple[str, ...]) -> bool:
    """Return whether the command's first word is a program that looks for an RDMA device."""
    from weft.verbs.libraries import uses_verbs

    words = " ".join(command).split()
    program = shutil.which(words[0]) if words else None
    return program is not None and uses_verbs(Path(program))
