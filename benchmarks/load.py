"""Offered load, and the highest rate that gets through."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scheduling import pinned
from wires import received_frames, settled_frames

MAX_LOSS = 0.01
FIRST_RATE = 10_000.0
COARSE_STEP, FINE_STEP = 1.3, 1.04
TRIES = 3
"""A step that loses frames is tried again: a virtual machine whose host takes the core away loses some, too."""
SENDER_CORE = 0
SWITCH_CORE = 1
UNLIMITED = 1e9
_FORWARDER = Path(__file__).parent / "forwarder" / "bare_forwarder.cpp"
_ENGINE_SOURCES = Path(__file__).parent.parent / "engine" / "src"


def build_forwarder(folder: Path) -> str:
    """Compile forwarder/bare_forwarder.cpp; its path."""
    binary = str(folder / "bare_forwarder")
    ring = str(_ENGINE_SOURCES / "packet_ring.cpp")
    command = ["g++", "-std=c++20", "-O3", f"-I{_ENGINE_SOURCES}", "-o", binary, str(_FORWARDER), ring]
    subprocess.run(command, check=True)
    return binary


@dataclass(frozen=True)
class Offer:
    """What came of offering a rate."""

    sent: int
    received: int
    seconds: float

    @property
    def rate(self) -> float:
        """Frames received per second."""
        return self.received / self.seconds

    @property
    def is_clean(self) -> bool:
        """Hardly any frame was lost."""
        return self.received >= self.sent * (1 - MAX_LOSS)


@dataclass(frozen=True)
class Load:
    """A sender of these frames on `source`, whose frames are expected on `sink`."""

    binary: str
    source: str
    sink: str
    frames: Sequence[bytes]
    seconds: float
    realtime: bool

    def offer(self, frames_per_s: float) -> Offer:
        """Send at this rate for a while, and wait until everything has come through."""
        before = received_frames(self.sink)
        command = [*pinned(SENDER_CORE, realtime=self.realtime), self.binary, "send", self.source]
        sender = subprocess.run(
            [*command, str(frames_per_s), str(self.seconds)],
            input="\n".join(frame.hex() for frame in self.frames),
            check=True,
            capture_output=True,
            text=True,
        )
        return Offer(int(sender.stdout), settled_frames(self.sink) - before, self.seconds)

    def highest_rate(self) -> float:
        """Frames per second at the highest step of the load that loses less than MAX_LOSS."""
        coarse = self._climb(FIRST_RATE, COARSE_STEP)
        return self._climb(coarse, FINE_STEP) if coarse else 0.0

    def _climb(self, offered: float, step: float) -> float:
        best = 0.0
        while True:
            offer = self._best_of_tries(offered)
            if not offer.is_clean:
                return best
            best = max(best, offer.rate)
            if offer.sent < offered * self.seconds / step:  # the sender itself can do no more
                return best
            offered *= step

    def _best_of_tries(self, offered: float) -> Offer:
        offer = self.offer(offered)
        for _ in range(TRIES - 1):
            if offer.is_clean:
                break
            offer = self.offer(offered)
        return offer
