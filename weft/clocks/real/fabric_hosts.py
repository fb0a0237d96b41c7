"""Hosts of a lab as their programs see them: a hostname of their own, and names for all nodes of the fabric."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mininet.node import Host

_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


class FabricHost(Host):  # type: ignore[misc]
    """A host with a hostname of its own (a UTS namespace), by which MPI and others distinguish machines."""

    variables: Mapping[str, str] = _NO_VARIABLES
    """Environment variables of its programs, beside the caller's."""

    def _popen(self, cmd: list[str], **parameters: Any) -> subprocess.Popen[bytes]:
        if self.shell is None:  # the one that holds the namespaces; each of these programs becomes the next
            cmd = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.name, *cmd]
        process: subprocess.Popen[bytes] = super()._popen(cmd, **parameters)
        return process

    def popen(self, *arguments: Any, **parameters: Any) -> subprocess.Popen[Any]:
        """Start a program in the host; as Mininet's, and with the hostname.

        It has the host's variables, unless `env` gives it others.
        """
        parameters.setdefault("mncmd", [*enter(self.pid), "-d"])
        if self.variables and parameters.get("env") is None:
            parameters["mncmd"] = [*parameters["mncmd"], *with_variables(self.variables)]
        process: subprocess.Popen[Any] = super().popen(*arguments, **parameters)
        return process

    def use_hosts_file(self, path: Path) -> None:
        """Let names be looked up in a file of the lab's instead of the machine's /etc/hosts; the rest is untouched."""
        self.cmd(f"mount --bind {shlex.quote(str(path))} /etc/hosts")

    def use_variables(self, variables: Mapping[str, str]) -> None:
        """Set environment variables for all that is started in the host from now on, also at the lab's prompt."""
        self.variables = variables
        self.cmd("export", shlex.join(f"{name}={value}" for name, value in variables.items()))


def with_variables(variables: Mapping[str, str]) -> list[str]:
    """Return the command that runs another one with environment variables, whatever they do to programs before it."""
    return ["env", *(f"{name}={value}" for name, value in variables.items())]


def enter(pid: int) -> list[str]:
    """Return the command that runs another one in a host, given the process that holds its namespaces."""
    # mnexec enters the network and keeps the directory, of which nsenter would do only the first.
    return ["nsenter", f"--target={pid}", "--uts", "mnexec", "-a", str(pid)]
