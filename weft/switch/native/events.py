"""Events that a native switch reports to its controllers: packet-ins, digests, idle entries."""

from __future__ import annotations

import math

from weft.engine import _core
from weft.switch.backend import Digest, PacketIn, StreamEvent
from weft.switch.lowering.layout import bytes_for
from weft.switch.native.entries import TableEntries
from weft.switch.native.running import RunningProgram

_POLL_S = 0.5
"""Interval at which entries with idle timeouts are checked. Packets and digests end a wait immediately, but such an
entry may be written during a wait, and packets that hit it postpone its timeout without a report."""


class StreamEvents:
    """The events of a switch, in order of detection."""

    def __init__(self, native: _core.Switch, running: RunningProgram, entries: TableEntries) -> None:
        self._native = native
        self._running = running
        self._entries = entries

    def wait(self, timeout_s: float | None) -> StreamEvent | None:
        """Return the next event; None after the timeout (a timeout of None waits forever)."""
        left_s = math.inf if timeout_s is None else timeout_s
        while True:
            if (timeout := self._entries.idle.next_event(self._entries.idle_ns)) is not None:
                return timeout
            slice_s = min(left_s, _POLL_S)
            event = self._native.wait_event(slice_s)
            if event is not None and (read := self._read(*event)) is not None:
                return read
            left_s -= slice_s
            if left_s <= 0:
                return None

    def _read(self, kind: str, learn_list_id: int, data: bytes, time_ps: int) -> StreamEvent | None:
        """Return the event; None for a digest of a program that has since been replaced."""
        if kind == "packet_in":
            return PacketIn(data, time_ps)
        learn_list = self._running.program.learn_lists.get(learn_list_id)
        if learn_list is None:
            return None
        values = []
        for element in learn_list.elements:
            size = bytes_for(getattr(element, "width_bits", None) or 0)
            values.append(int.from_bytes(data[:size], "big"))
            data = data[size:]
        return Digest(learn_list_id, tuple(values), time_ps)
