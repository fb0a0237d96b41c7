"""Calls a user's controller: one method after the other, in the order of what happened."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import finsy
from finsy.p4entity import P4IdleTimeoutNotification
from finsy.proto import p4r

from weft.clocks.user_controller.base import Controller, PacketIn
from weft.clocks.user_controller.controlled_switch import ControlledSwitch, entry_of
from weft.clocks.user_controller.handoff import Handoff
from weft.controller.fabric import FabricController
from weft.controller.fabric_events import FabricEvent, LinkChanged, SwitchEvent, SwitchStarted
from weft.controller.operations import OperationsClock
from weft.controller.packet_ins import PACKET_QUEUE_LENGTH
from weft.controller.reconcile import EncodedEntity
from weft.errors import BadInputError
from weft.quantities.units import NS_PER_S
from weft.traffic.extensions import ClassSpec, ExtensionError, make, user_report
from weft.traffic.extensions.later import LaterCalls
from weft.traffic.extensions.loading import overridden, without_frames_of_weft

MAX_EVENTS = 1 << 16
MAX_TIMERS = 1 << 16
_ACKNOWLEDGED_WITHIN_NS = NS_PER_S


@dataclass(frozen=True)
class TimerExpired:
    """The time of a call for later has come."""

    callback: Callable[[], object]


class RunningController:
    """A user's controller, which runs together with Weft's from `begin` to `close`.

    `on_failure` is called with an error of the user's code, which ends the run.
    """

    def __init__(
        self,
        chosen: ClassSpec,
        controller: FabricController,
        clock: OperationsClock,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._name = chosen.reference
        self._user = make(chosen, Controller)
        self._controller = controller
        self._clock = clock
        self._began_ps = 0
        self._timers: set[asyncio.Task[None]] = set()
        self.later = LaterCalls()
        self._on_failure = on_failure
        self._events: asyncio.Queue[FabricEvent | TimerExpired] = asyncio.Queue()
        self._waiting: Counter[str] = Counter()
        self._handoff = Handoff()
        self._user.fabric = controller.fabric
        self._user.switches = {
            switch.name: ControlledSwitch(switch, controller, self._handoff) for switch in controller.fabric.switches
        }

    async def begin(self) -> None:
        """Start with every switch, then take what happens. Raises ExtensionError."""
        self._controller.on_event = self._take
        self._began_ps = self._clock.now_ps()
        self._user._running = self
        for name in self._user.switches:
            await self._carry_out(SwitchStarted(name))

    async def run(self) -> None:
        """Call the user's methods until cancelled, or one of them fails."""
        try:
            while True:
                event = await self._events.get()
                if isinstance(event, SwitchEvent) and isinstance(event.event, finsy.P4PacketIn):
                    self._waiting[event.switch] -= 1
                try:
                    await self._carry_out(event)
                finally:
                    self._events.task_done()
        except ExtensionError as error:
            self._on_failure(error)
        finally:
            for timer in self._timers:
                timer.cancel()

    def now_ps(self) -> int:
        """Return the emulated time since `begin`."""
        return self._clock.now_ps() - self._began_ps

    def call_at(self, time_ps: int, callback: Callable[[], object]) -> None:
        """Have something called at a time since `begin`, between the user's methods; to be called from these.

        Raises BadInputError: too many such calls wait.
        """
        if len(self._timers) >= MAX_TIMERS:
            raise BadInputError(f"{MAX_TIMERS:,} calls for later wait already")
        expired = TimerExpired(callback)

        async def wait() -> None:
            await self._clock.sleep_ps(max(0, time_ps - self.now_ps()))
            self._put(expired)

        async def begin_waiting() -> None:
            timer = asyncio.create_task(wait())
            self._timers.add(timer)
            timer.add_done_callback(self._timers.discard)

        self._handoff.ask(begin_waiting)

    async def handled(self) -> None:
        """Wait until the methods have seen all that has come so far."""
        await self._events.join()

    def close(self) -> None:
        """Call nothing more."""
        self._controller.on_event = None
        self._handoff.close()

    def _take(self, event: FabricEvent) -> None:
        if isinstance(event, SwitchEvent) and isinstance(event.event, finsy.P4PacketIn):
            if self._waiting[event.switch] >= PACKET_QUEUE_LENGTH:
                self._controller.note_dropped_packet_in(event.switch)
                return
            self._waiting[event.switch] += 1
        self._put(event)

    def _put(self, event: FabricEvent | TimerExpired) -> None:
        if self._events.qsize() >= MAX_EVENTS:
            self._on_failure(ExtensionError(f"{self._name} is too slow: {MAX_EVENTS:,} events wait for its methods"))
            return
        self._events.put_nowait(event)

    async def _carry_out(self, event: FabricEvent | TimerExpired) -> None:
        if isinstance(event, TimerExpired):
            await self._call(event.callback)
        elif isinstance(event, SwitchStarted):
            await self._enable_digests(event.switch)
            await self._call(self._user.on_start, self._user.switches[event.switch])
        elif isinstance(event, LinkChanged):
            await self._call(self._user.on_link, event.link, event.up)
        else:
            await self._carry_out_of_stream(self._user.switches[event.switch], event.event)

    async def _carry_out_of_stream(
        self,
        switch: ControlledSwitch,
        event: finsy.P4PacketIn | finsy.P4DigestList | P4IdleTimeoutNotification,
    ) -> None:
        if isinstance(event, finsy.P4PacketIn):
            await self._call(self._user.on_packet_in, switch, PacketIn(event.payload, dict(event.metadata)))
        elif isinstance(event, finsy.P4DigestList):
            await self._call(self._user.on_digest, switch, event.digest_id, [_fields(each) for each in event])
            await self._controller.session(switch.name).acknowledge(event)
        else:
            for entry in event:
                await self._call(self._user.on_idle_timeout, switch, entry_of(entry))

    async def _enable_digests(self, switch: str) -> None:
        """Have a switch send its digests at once, each again unless it is acknowledged within a second."""
        if overridden(self._user, Controller, "on_digest") is None:
            return
        session = self._controller.session(switch)
        for digest in session.schema.digests:
            entry = finsy.P4DigestEntry(digest.alias, max_list_size=1, ack_timeout_ns=_ACKNOWLEDGED_WITHIN_NS)
            await session.write([EncodedEntity.plain(entry.encode(session.schema)).update(p4r.Update.INSERT)])

    async def _call(self, method: Callable[..., object], *arguments: Any) -> None:
        name = f"{self._name}.{getattr(method, '__name__', type(method).__name__)}"
        if inspect.iscoroutinefunction(inspect.unwrap(method)):
            raise ExtensionError(f"{name} is 'async def' (valid: 'def'; calls to switches wait for their answers)")
        raised = await self._handoff.call(lambda: method(*arguments))
        if isinstance(raised, SystemExit):
            raise ExtensionError(f"{name} called sys.exit({raised.code!r}): return in place of it")
        if raised is not None:
            raise ExtensionError(user_report(without_frames_of_weft(raised), name))


def _fields(digest: Any) -> Mapping[str, int]:
    """Return a digest's fields by name; one that is no struct has the name `value`."""
    return dict(digest) if isinstance(digest, Mapping) else {"value": digest}
