"""The commands that a host carries out, whether they come from stdin or from a caller in the same process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.traffic.host import Host
from weft.traffic.host_runs import HostRuns
from weft.traffic.messages import Message, MessageError, take, take_list, take_optional

WAIT = "wait"
"""The one command that is answered later; how to wait depends on the clock."""
ENDED = ("finished", "failed", "cancelled")


class HostCommands:
    """Commands by name, as docs/spec/endpoint-protocol.md lists them. What a command raises becomes its answer."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._runs = HostRuns(host)
        self._commands: dict[str, Callable[[Message], dict[str, Any]]] = {
            "connect": self._connect,
            "disconnect": self._disconnect,
            "join": self._join,
            "leave": self._leave,
            "collective": self._runs.prepare_collective,
            "training_step": self._runs.prepare_training_step,
            "traffic": self._runs.prepare_traffic,
            "flows": self._runs.prepare_flows,
            "flow_records": self._runs.flow_records,
            "start": self._runs.start,
            "status": self._runs.status,
            "release": self._runs.release,
            "stats": lambda _: {**host.stats()},
            "reset_stats": self._reset_stats,
            "transport": host.transport_in_force,
            "pcap": self._pcap,
            "recorded": self._recorded,
        }

    def carry_out(self, message: Message) -> dict[str, Any]:
        """Carry out any command but `wait`, and return its answer. Raises MessageError for an unknown one."""
        name = take(message, "command", str)
        if name not in self._commands:
            valid = ", ".join(sorted([*self._commands, WAIT]))
            raise MessageError(f"unknown command {name!r} (valid: {valid})")
        return self._commands[name](message)

    def close(self) -> None:
        """Stop carrying out commands, and release the host."""
        self._commands.clear()

    def status(self, message: Message) -> dict[str, Any]:
        """Return the state of the run that a `wait` names. Raises ValueError for an unknown one."""
        return self._runs.status(message)

    def _connect(self, message: Message) -> dict[str, Any]:
        connections = take_list(message, "connections", dict)
        for connection in connections:
            self._host.connect(connection)
        return {"connected": len(connections)}

    def _disconnect(self, message: Message) -> dict[str, Any]:
        label = take_optional(message, "label", str)
        gone = [channel for channel in self._host.channels() if label in (None, channel.label)]
        for channel in gone:
            self._host.disconnect(channel)
        return {"disconnected": len(gone)}

    def _join(self, message: Message) -> dict[str, Any]:
        jobs = take_list(message, "jobs", dict)
        for job in jobs:
            self._host.join(job)
        return {"joined": len(jobs)}

    def _leave(self, message: Message) -> dict[str, Any]:
        for plane in take_list(message, "planes", int):
            self._host.leave(plane)
        return {"left": message["planes"]}

    def _reset_stats(self, _: Message) -> dict[str, Any]:
        self._host.reset_stats()
        return {"reset": True}

    def _pcap(self, message: Message) -> dict[str, Any]:
        path = take_optional(message, "path", str)
        self._host.capture(take(message, "plane", int), path)
        return {"pcap": path}

    def _recorded(self, message: Message) -> dict[str, Any]:
        return {"rows_lost": self._host.save_recorded(take(message, "path", str))}
