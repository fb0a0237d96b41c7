"""Offered load, and the highest rate that gets through."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scheduling import pinned
from wires import received_frames, settled_frames

MAX_LOSS = 0.01
MIN_SENT = 0.98
"""Of the rate that should be offered; a sender that stays below can do no more."""
FIRST_RATE = 1_000.0
COARSE_STEP, FINE_STEP = 1.5, 1.05
TRIES = 3
"""A step that fails is tried again: a virtual machine whose host takes a core away loses frames, too."""
SENDER_CORE = 0
SWITCH_CORE = 1
UNLIMITED = 1e9
_FORWARDER = Path(__file__).parent / "forwarder" / "bare_forwarder.cpp"
_ENGINE_SOURCES = Path(__file__).parent.parent / "engine"


def build_forwarder(folder: Path) -> str:
    """Compile forwarder/bare_forwarder.cpp; its path."""
    binary = str(folder / "bare_forwarder")
    ring = str(_ENGINE_SOURCES / "links" / "packet_ring.cpp")
    command = ["g++", "-std=c++20", "-O3", f"-I{_ENGINE_SOURCES}", "-o", binary, str(_FORWARDER), ring]
    subprocess.run(command, check=True)
    return binary


@dataclass(frozen=True)
class Offer:
    """The outcome of offering a rate."""

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
        return max(coarse, self._climb(coarse, FINE_STEP)) if coarse else 0.0

    def _climb(self, offered: float, step: float) -> float:
        best = 0.0
        while True:
            offers = self._tries(offered)
            best = max([best, *(offer.rate for offer in offers if offer.is_clean)])
            if not offers[-1].is_clean or offers[-1].sent < offered * self.seconds * MIN_SENT:
                return best
            offered *= step

    def _tries(self, offered: float) -> list[Offer]:
        """Offers of the same rate, up to the first that was sent whole and came through."""
        offers: list[Offer] = []
        while len(offers) < TRIES:
            offers.append(self.offer(offered))
            if offers[-1].is_clean and offers[-1].sent >= offered * self.seconds * MIN_SENT:
                break
        return offers
