"""Captures of a running fabric's host and switch ports to files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from weft.clocks.lab import Lab
from weft.recording.places import Places
from weft.scenario.fidelity_checks import check_capture
from weft.system.child_processes import ChildError
from weft.traffic.control import EndpointGroup


class PortCaptures:
    """Begins and ends captures; errors as in the `Fabric.capture…` methods."""

    def __init__(self, lab: Lab, hosts: Callable[[], EndpointGroup]) -> None:
        self._lab = lab
        self._hosts = hosts
        # Kind, node and port of current captures, in order of their start.
        self._running: dict[tuple[str, str, int], None] = {}

    def of_host(self, host: str, plane: int, path: Path | None) -> None:
        """Capture a host's port in a plane; None ends it."""
        if path is not None:
            check_capture(self._lab.options)
        spec = self._lab.fabric.host(host)
        spec.nic(plane)
        self._running.pop(("host", host, plane), None)
        self._hosts().capture(spec.index, plane, path, self._lab.options.observe.removes_shims)
        if path is not None:
            self._running["host", host, plane] = None

    def of_switch(self, switch: str, port: int, path: Path | None) -> None:
        """Capture a switch's port; None ends it."""
        if path is not None:
            check_capture(self._lab.options)
        self._lab.fabric.switch(switch).port(port)
        self._running.pop(("switch", switch, port), None)
        self._lab.capture_port(switch, port, path)
        if path is not None:
            self._running["switch", switch, port] = None

    def of_port(self, port: str, path: Path | None) -> None:
        """Capture NODE:PORT of a switch or a host; None ends it."""
        name = Places(self._lab.fabric).checked_ports("captures", [port])[0]
        node, _, number = name.rpartition(":")
        is_host = any(node == host.name for host in self._lab.fabric.hosts)
        (self.of_host if is_host else self.of_switch)(node, int(number), path)

    def end(self) -> list[str]:
        """End all captures; return, in words, which files are incomplete and why (a full disk)."""
        failures = []
        for kind, node, number in list(self._running):
            try:
                (self.of_host if kind == "host" else self.of_switch)(node, number, None)
            except (OSError, ChildError) as error:
                failures.append(str(error))
        return failures
