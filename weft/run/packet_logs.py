"""Logs of every packet in each switch, SWITCH.log, in simple_switch's format."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from weft.clocks.real.access import hand_over
from weft.clocks.real.lab import MininetLab
from weft.errors import BadInputError
from weft.run.fabric import Fabric
from weft.run.packet_traces import PacketTraces, TracedPacket
from weft.switch.native.trace import MANY_PACKETS
from weft.switch.trace.log_file import PacketLogFile


class PacketLogs:
    """Writes the logs of a run to a directory, which is created if missing. See `Attached`."""

    def __init__(self, directory: Path, warn: Callable[[str], None]) -> None:
        self._directory = directory
        self._warn = warn
        self._files: dict[str, PacketLogFile] = {}
        self._traces: PacketTraces | None = None

    def begin(self, fabric: Fabric) -> None:
        """See Attached. Raises BadInputError if the files cannot be created."""
        directory = made(self._directory)
        if isinstance(fabric.lab, MininetLab):
            fabric.lab.log_packets(directory)
            return
        names = [switch.name for switch in fabric.topology.switches]
        for name in names:
            try:
                self._files[name] = PacketLogFile(directory / f"{name}.log")
            except OSError as error:
                raise BadInputError(f"{directory / name}.log cannot be written: {error.strerror}") from None
        self._traces = PacketTraces(names, self._write, MANY_PACKETS)
        self._traces.begin(fabric)

    def _write(self, packet: TracedPacket) -> None:
        self._files[packet.switch].write(packet.program, [packet.trace])

    def end(self, fabric: Fabric) -> None:
        """See Attached."""
        if self._traces is None:
            return
        self._traces.end(fabric)
        if self._traces.missed:
            self._warn(f"{self._traces.missed} packets came too fast to be logged")
        for file in self._files.values():
            file.close()
            if file.error:
                self._warn(f"{file.path} is incomplete: {os.strerror(file.error)}")


def made(directory: Path) -> Path:
    """Create a directory for the user who runs the lab, if missing; return its full path. Raises BadInputError."""
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        hand_over(missing)
    except OSError as error:
        raise BadInputError(f"{directory}: {error.strerror}", place="--packet-logs") from None
    return directory.resolve()
