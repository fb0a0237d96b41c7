"""Engine, switches and P4Runtime server of a lab in one process, and the commands that it answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft.errors import Refusal
from weft.switch.daemon import code_service, manage_service, port_service, trace_service
from weft.switch.daemon.config import DaemonConfig
from weft.switch.daemon.wired_switches import WiredPort, WiredSwitch
from weft.switch.daemon.wiring import Wiring
from weft.switch.gnmi import service as gnmi_service
from weft.switch.p4runtime.service import Server


class CommandError(Refusal, ValueError):
    """A command that the daemon does not understand or cannot carry out."""


class Daemon:
    """Engine, switches and P4Runtime server of one configuration; `serve` answers controllers.

    Raises OSError if the environment lacks something, TlsError if the server's certificate cannot be used.
    """

    def __init__(self, config: DaemonConfig) -> None:
        self.wiring = Wiring(config)
        self.devices = {number: wired.device() for number, wired in self.wiring.switches.items()}
        try:
            switches = {number: wired.switch for number, wired in self.wiring.switches.items()}
            others = [
                trace_service.handler(switches),
                port_service.handler(self.wiring.board),
                manage_service.handler(self.wiring.switches),
                code_service.handler(self.wiring.switches),
                gnmi_service.handler(self.wiring.switches, self.wiring.board),
            ]
            self.server = Server(
                self.devices,
                config.grpc_address,
                config.grpc_tls,
                others,
                config.more_grpc_addresses,
                config.grpc_users,
            )
            self.wiring.start(config.realtime_priority)
        except BaseException:
            self.wiring.close()
            raise
        self._commands: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "stats": self._stats,
            "reset_stats": self._reset_stats,
            "pcap": self._pcap,
            "pcap_by_direction": self._pcap_by_direction,
            "log_packets": self._log_packets,
            "finish_files": self._finish_files,
        }

    def serve(self) -> None:
        """Start to answer controllers, which find the programs loaded so far and may replace them."""
        self.server.start()

    def close(self) -> None:
        """Stop serving, stop the engine, close the sockets."""
        self.server.stop()
        self.wiring.close()

    def answer(self, line: str) -> dict[str, Any]:
        """Carry out one command; return its answer, or {"error": reason}, with the command's `id`."""
        number: dict[str, Any] = {}
        try:
            command = _parsed(line)
            if isinstance(command, dict) and "id" in command:
                number = {"id": command["id"]}
            return self._run(command) | number
        except (CommandError, OSError) as error:
            return {"error": str(error)} | number

    def _run(self, command: Any) -> dict[str, Any]:
        name = command.get("command") if isinstance(command, dict) else None
        if not isinstance(name, str) or name not in self._commands:
            raise CommandError(f"unknown command {name!r}", valid=map(repr, self._commands))
        failure = self.wiring.engine.failure
        if failure is not None:
            raise CommandError(f"the engine has stopped: {failure}")
        return self._commands[name](command)

    def _stats(self, _command: dict[str, Any]) -> dict[str, Any]:
        return {**self.wiring.stats()}

    def _reset_stats(self, _command: dict[str, Any]) -> dict[str, Any]:
        self.wiring.reset_stats()
        return {"ok": True}

    def _pcap(self, command: dict[str, Any]) -> dict[str, Any]:
        wired, number, port = self._port(command)
        path = command.get("path")
        if path is not None and not isinstance(path, str):
            raise CommandError(f"path is {path!r}, neither a string nor null")
        interface = f"{wired.config.name}:{number}"
        port.set_capture(None if path is None else Path(path), interface, _without_shims(command))
        return {"ok": True}

    def _pcap_by_direction(self, command: dict[str, Any]) -> dict[str, Any]:
        _, _, port = self._port(command)
        directory = command.get("directory")
        if not isinstance(directory, str):
            raise CommandError(f"directory is {directory!r}, not a string")
        origin_ns = time.time_ns() - self.wiring.engine.now_ps // 1000
        port.capture_by_direction(Path(directory), origin_ns, _without_shims(command))
        return {"ok": True}

    def _log_packets(self, command: dict[str, Any]) -> dict[str, Any]:
        wired, path = self._switch(command), command.get("path")
        if not isinstance(path, str):
            raise CommandError(f"path is {path!r}, not a string")
        self.wiring.log_packets(wired, Path(path))
        return {"ok": True}

    def _finish_files(self, _command: dict[str, Any]) -> dict[str, Any]:
        return {"incomplete": self.wiring.finish_files()}

    def _switch(self, command: dict[str, Any]) -> WiredSwitch:
        """Return the switch that a command names. Raises CommandError."""
        device_id = command.get("device_id")
        wired = self.wiring.switches.get(device_id) if isinstance(device_id, int) else None
        if wired is None:
            raise CommandError(f"unknown device_id {device_id!r}", valid=_listed(self.wiring.switches))
        return wired

    def _port(self, command: dict[str, Any]) -> tuple[WiredSwitch, int, WiredPort]:
        """Return the switch, the number and the port that a command names. Raises CommandError."""
        wired, number = self._switch(command), command.get("port")
        port = wired.ports.get(number) if isinstance(number, int) else None
        if port is None:
            raise CommandError(f"unknown port {number!r}", valid=_listed(wired.ports))
        return wired, port.config.port, port


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise CommandError(f"the command is not JSON: {error}") from None


def _without_shims(command: dict[str, Any]) -> bool:
    """Return whether a capture is to leave out Weft's shims. Raises CommandError."""
    found = command.get("without_shims", False)
    if not isinstance(found, bool):
        raise CommandError(f"without_shims is {found!r}, neither true nor false")
    return found


def _listed(numbers: dict[int, Any]) -> str:
    return ", ".join(map(str, numbers)) or "none"
