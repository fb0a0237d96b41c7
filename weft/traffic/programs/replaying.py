"""Replay: given frames at given times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.engine import _core
from weft.traffic.programs.base import OpenProgram, Program

if TYPE_CHECKING:
    from weft.traffic.host import Host

Frames = tuple[tuple[int, bytes], ...]
"""Each frame, and how many picoseconds after the start it is sent; these do not decrease."""


@dataclass(frozen=True)
class ReplayRecord:
    """How many frames were queued at the NIC, their bytes, and how many found the queue full."""

    packets: int
    sent_bytes: int
    not_sent_packets: int


@dataclass(frozen=True)
class Replay(Program):
    """Sends frames from a NIC of the host."""

    interface: int
    frames: Frames

    def open(self, host: Host) -> OpenProgram:
        """See Program."""
        return _OpenReplay(self, host)


class _OpenReplay(OpenProgram):
    def __init__(self, replay: Replay, host: Host) -> None:
        self.application: _core.FrameReplay = _core.FrameReplay(
            host.ip, host.executor, replay.interface, list(replay.frames)
        )

    def record(self) -> ReplayRecord:
        """See OpenProgram."""
        not_sent = self.application.not_sent_packets()
        sent = self.application.status()["nodes_done"] - not_sent
        return ReplayRecord(sent, self.application.sent_bytes(), not_sent)
