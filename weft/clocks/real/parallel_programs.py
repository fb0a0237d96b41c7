"""Parallel programs of others on the hosts of a lab, a process a host: MPI by mpirun, or ranks that find each other."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from weft.clocks.real.lab import MininetLab
from weft.errors import CheckFailedError

_ALONE = ("unshare", "--pid", "--fork", "--kill-child=KILL")
# What a program that fails prints last says why.
_MOST_ERROR_CHARACTERS = 2000
_BETWEEN_LOOKS_S = 0.05


def open_mpi_command(
    hosts: Sequence[str], command: Sequence[str], network: str, parameters: Mapping[str, str]
) -> list[str]:
    """Return the command by which a host starts a program of Open MPI on hosts of its lab, itself among them.

    Args:
        hosts: names, one for each rank.
        command: each rank's command.
        network: addresses of the plane that it uses, in CIDR notation; mpirun's own messages use it, too.
        parameters: further Open MPI parameters (`--mca`).
    """
    settings = {
        "plm_rsh_agent": f"{sys.executable} -m weft exec",
        "btl": "self,tcp",
        "btl_tcp_if_include": network,
        "oob_tcp_if_include": network,
        # Processes that wait leave the cores to switches and to each other.
        "mpi_yield_when_idle": "1",
        **parameters,
    }
    words = ["mpirun", "--allow-run-as-root", "--host", ",".join(hosts)]
    for name, value in settings.items():
        words += ["--mca", name, value]
    return [*words, *command]


def outputs_of(lab: MininetLab, commands: Mapping[str, Sequence[str]], timeout_s: float) -> dict[str, str]:
    """Run a command on each of some hosts at the same time; return what each printed.

    If one fails, or is not done in time, all end, with what they started on other hosts.

    Raises:
        CheckFailedError: which failed, with the end of what it said; or that they have not ended in time.
    """
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weft-")))
        processes = {
            host: stack.enter_context(_running(lab, host, command, directory)) for host, command in commands.items()
        }
        deadline_s = time.monotonic() + timeout_s
        while any(process.poll() is None for process in processes.values()):
            if any(process.poll() for process in processes.values()):
                break
            if time.monotonic() > deadline_s:
                waiting = [host for host, process in processes.items() if process.poll() is None]
                raise CheckFailedError(
                    f"programs have not ended in {timeout_s:g} s on {', '.join(waiting)}{_said(directory, waiting[0])}"
                )
            time.sleep(_BETWEEN_LOOKS_S)
        for host, process in processes.items():
            if process.poll():
                raise CheckFailedError(f"{host}: exit code {process.returncode}{_said(directory, host)}")
        return {host: (directory / f"{host}.out").read_text(encoding="utf-8", errors="replace") for host in commands}


def _said(directory: Path, host: str) -> str:
    """Return the end of what a host's program said, after a colon; empty if it said nothing."""
    said = (directory / f"{host}.err").read_text(encoding="utf-8", errors="replace").strip()
    return f": {said[-_MOST_ERROR_CHARACTERS:]}" if said else ""


@contextlib.contextmanager
def _running(lab: MininetLab, host: str, command: Sequence[str], directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a command on a host; whatever ends the block, its processes end with it.

    They have a space of process ids of their own, which goes with its first process (pid_namespaces(7)).
    """
    with (directory / f"{host}.out").open("wb") as output, (directory / f"{host}.err").open("wb") as errors:
        process = lab.network.popen(host, [*_ALONE, *command], stdout=output, stderr=errors)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
