"""Passes packet-ins, digests and idle timeouts of a switch to its P4Runtime device at their virtual time."""

from __future__ import annotations

from weft.clocks.virtual.loop import VirtualTimeLoop
from weft.clocks.virtual.processes import ALONE, Processes
from weft.quantities.units import PS_PER_NS, PS_PER_S
from weft.switch.backend import Digest, PacketIn, StreamEvent
from weft.switch.native import NativeSwitch
from weft.switch.p4runtime.device import Device


class EventPump:
    """Passes on one switch's packet-ins and digests as they come, digest lists and idle timeouts as they fall due.

    `owner` is the number of the process that serves the switch.
    """

    def __init__(
        self,
        device: Device,
        switch: NativeSwitch,
        loop: VirtualTimeLoop,
        processes: Processes = ALONE,
        owner: int = 0,
    ) -> None:
        self._device = device
        self._switch = switch
        self._loop = loop
        self._processes, self._owner = processes, owner
        self._what = f"events of switch {device.device_id}"
        self._scheduled = False
        self._due_ps: int | None = None
        switch.native.set_event_listener(self._happened)

    def pump(self) -> None:
        """Pass on what is pending, and schedule the next call for what is due later."""
        self._scheduled = False
        events, idle_ns = self._processes.of(self._owner, self._what, self._take)
        for event in events:
            # Python learns of an event one window late; a control latency counts from the event itself.
            with self._loop.as_of(self._happened_ps(event)):
                self._device.on_event(event)
        digests_s = self._device.on_time()
        waits_ps = [] if digests_s is None else [round(digests_s * PS_PER_S)]
        if idle_ns is not None:
            waits_ps.append(idle_ns * PS_PER_NS)
        if waits_ps:
            self._come_back(min(waits_ps))

    def _take(self) -> tuple[list[StreamEvent], int | None]:
        """Return what is pending, and how long it is until an entry may be idle."""
        events = []
        while (event := self._switch.wait_stream_event(0.0)) is not None:
            events.append(event)
        return events, self._switch.next_idle_deadline_ns()

    def close(self) -> None:
        """Stop listening."""
        self._switch.native.set_event_listener(None)

    def _happened_ps(self, event: StreamEvent) -> int:
        if isinstance(event, PacketIn | Digest) and event.time_ps is not None:
            return event.time_ps
        return self._loop.now_ps()

    def _happened(self) -> None:
        # One call takes all that a window has queued; a call per packet-in would cost a stop of all partitions each.
        if not self._scheduled:
            self._scheduled = True
            self._loop.wake(self.pump)

    def _come_back(self, wait_ps: int) -> None:
        due_ps = self._loop.now_ps() + wait_ps
        if self._due_ps is None or due_ps < self._due_ps:
            self._due_ps = due_ps
            self._loop.call_after_ps(wait_ps, lambda: self._on_due(due_ps))

    def _on_due(self, due_ps: int) -> None:
        # An earlier deadline has replaced others, whose calls cannot be taken back.
        if due_ps == self._due_ps:
            self._due_ps = None
            self.pump()
