"""Looks for all capabilities at the same time, each within a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from weft.doctor.capability import Capability, Finding

DEADLINE_S = 60.0
"""For all checks together. The longest wait for child processes, which end themselves before."""


@dataclass(frozen=True)
class Examined:
    """A capability and what its check found."""

    capability: Capability
    finding: Finding

    @property
    def prevents_runs(self) -> bool:
        """Whether no run works on this machine."""
        return self.capability.is_essential and not self.finding.present


def examine(capabilities: Iterable[Capability], deadline_s: float = DEADLINE_S) -> list[Examined]:
    """Return the findings, in order. A check that does not end by the deadline counts as missing.

    Checks run in threads that the interpreter does not wait for at its end, because a system call on a broken disk
    or network file system may never return.
    """
    looks = [_Look(each) for each in capabilities]
    for look in looks:
        look.start()
    until_s = time.monotonic() + deadline_s
    for look in looks:
        look.join(max(0.0, until_s - time.monotonic()))
    return [
        Examined(look.capability, look.finding or Finding(False, f"no answer within {deadline_s:g} s"))
        for look in looks
    ]


class _Look(threading.Thread):
    def __init__(self, capability: Capability) -> None:
        super().__init__(name=f"doctor: {capability.name}", daemon=True)
        self.capability = capability
        self.finding: Finding | None = None

    def run(self) -> None:
        try:
            self.finding = self.capability.look()
        except Exception as error:
            self.finding = Finding(False, f"{type(error).__name__}: {error}")
