"""Compares the packets expected at each port with the packets that left."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from weft.switch.stf.statements import Expect

_SHOWN_DIGITS = 160


@dataclass
class Ports:
    """Expected and sent packets by port, in order."""

    expected: defaultdict[int, list[Expect]] = field(default_factory=lambda: defaultdict(list))
    sent: defaultdict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))

    def differences(self) -> list[str]:
        """Return a message for each missing, unexpected or different packet, by port."""
        found = []
        for port in sorted(self.expected.keys() | self.sent.keys()):
            found += _port_differences(port, self.expected[port], self.sent[port])
        return found


def _port_differences(port: int, expected: list[Expect], sent: list[bytes]) -> list[str]:
    found = []
    for expect, packet in zip(expected, sent, strict=False):
        difference = packet_difference(expect, packet.hex())
        if difference is not None:
            found.append(f"{expect.place}: port {port}: {difference}")
    for expect in expected[len(sent) :]:
        found.append(f"{expect.place}: port {port}: the expected packet did not come")
    for packet in sent[len(expected) :]:
        found.append(f"port {port}: nothing more was expected, got {_shown(packet.hex())}")
    return found


def packet_difference(expect: Expect, digits: str) -> str | None:
    """Return how a packet (hexadecimal) differs from the expected one, None if it does not."""
    if expect.digits is None:
        return None
    if len(digits) < len(expect.digits) or (expect.whole and len(digits) != len(expect.digits)):
        at_least = "" if expect.whole else "at least "
        return (
            f"got {len(digits) // 2} bytes, expected {at_least}{(len(expect.digits) + 1) // 2}:"
            f" got {_shown(digits)}, expected {_shown(expect.digits)}"
        )
    for at, (wanted, got) in enumerate(zip(expect.digits, digits, strict=False)):
        if wanted not in ("*", got):
            return f"byte {at // 2} differs: got {_shown(digits)}, expected {_shown(expect.digits)}"
    return None


def _shown(digits: str) -> str:
    return digits if len(digits) <= _SHOWN_DIGITS else f"{digits[:_SHOWN_DIGITS]}…"
