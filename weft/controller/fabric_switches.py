"""The controller's view of the switches: a P4Runtime session with each, and its known entries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from weft.controller.entities import Entity
from weft.controller.errors import PipelineError
from weft.controller.grpc_targets import Channel, GrpcTarget
from weft.controller.installed import read_installed
from weft.controller.own_entries import OwnEntries, OwnOperation, applied
from weft.controller.pipeline import Pipelines
from weft.controller.plan import SwitchPlan
from weft.controller.reconcile import EncodedUpdate, EntitySet, plan_updates
from weft.controller.runtime_entries import EntriesSettings
from weft.controller.session import StreamEvent, SwitchSession
from weft.controller.stub import P4RuntimeStub

_Result = TypeVar("_Result")


class FabricSwitches:
    """Sessions by switch name, and each switch's known entries; unknown entries are read back.

    Args:
        targets: address of each switch's server.
        pipelines: program of each switch.
        timeout_s: timeout of each call.
        push: load the program even if a switch already runs it.
        open_channel: opens a channel to a target's address.
        preempt: outbid a controller that is primary.

    Attributes:
        writing: lock held while the plan or a user's entry is written.

    """

    def __init__(
        self,
        targets: Mapping[str, GrpcTarget],
        pipelines: Pipelines,
        timeout_s: float,
        push: bool,
        open_channel: Callable[[str], Channel],
        preempt: bool = False,
    ) -> None:
        self.targets = dict(targets)
        self.pipelines = pipelines
        self.push = push
        self.writing = asyncio.Lock()
        self._timeout_s = timeout_s
        self._open_channel = open_channel
        self._preempt = preempt
        self._own = OwnEntries()
        self._channels: dict[str, Channel] = {}
        self._sessions: dict[str, SwitchSession] = {}
        self._applied: dict[str, SwitchPlan] = {}
        self._installed: dict[str, EntitySet] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the switches with a session."""
        return tuple(self._sessions)

    @property
    def lost(self) -> tuple[str, ...]:
        """Names of the switches that closed their stream."""
        return tuple(name for name, session in self._sessions.items() if session.is_lost)

    def session(self, name: str) -> SwitchSession:
        """Return a switch's session."""
        return self._sessions[name]

    def begin(self, name: str, on_event: Callable[[str, StreamEvent], None]) -> None:
        """Create a session for `connect` to connect; the caller closes a previous one.

        `on_event` is called with the switch and its stream's events until the session is closed. It is not kept longer,
        because it may refer to this object's owner.
        """
        target = self.targets[name]
        if target.address not in self._channels:
            self._channels[target.address] = self._open_channel(target.address)
        self._sessions[name] = SwitchSession(
            name,
            target.device_id,
            P4RuntimeStub(self._channels[target.address]),
            self.pipelines[name],
            self._timeout_s,
            on_event=lambda event: on_event(name, event),
        )

    async def connect(
        self,
        name: str,
        entries: EntriesSettings,
        first_election_id: int,
        written: dict[str, list[EncodedUpdate]] | None,
    ) -> None:
        """Become primary on a switch and load its program unless it runs already; `written` records its updates."""
        session = self._sessions[name]
        await session.negotiate_version()
        await session.become_primary(first_election_id, self._preempt)
        if written is not None:
            session.written = written.setdefault(name, [])
        loaded = None if self.push else await session.read_pipeline()
        if loaded is None:
            await session.push_pipeline()
            await session.write_cells(entries.cells.get(name, ()))
            self.forget(name)
            self._installed[name] = {}
        elif loaded.p4info != self.pipelines[name].p4info:
            raise PipelineError("runs a program with another P4Info; push the program anew", place=name)

    def holds(self, name: str, plan: SwitchPlan) -> bool:
        """Return whether a switch is known to hold exactly this plan."""
        return plan.is_same_as(self._applied.get(name))

    async def apply(self, name: str, plan: SwitchPlan) -> int:
        """Write the differences between a plan and a switch's entries; return the number of updates."""
        session = self._sessions[name]
        self._applied.pop(name, None)
        installed = self._installed.pop(name, None)
        if installed is None:
            installed = await read_installed(session)
        desired = session.encode(plan) | session.encode(plan.entries) | self._own.of(name)
        updates = plan_updates(installed, desired)
        await session.write(updates)
        # Only now: after a failed write, the entries are unknown and read back before the next write.
        self._installed[name] = desired
        self._applied[name] = plan
        return len(updates)

    async def write_own(self, name: str, operation: OwnOperation, entity: Entity) -> None:
        """See `FabricController.write_own`."""
        async with self.writing:
            session = self._sessions[name]
            if name not in self._installed:
                self._installed[name] = await read_installed(session)
            plan = self._applied.get(name)
            planned = session.encode(plan) | session.encode(plan.entries) if plan is not None else {}
            (encoded,) = session.encode([entity]).values()
            update = self._own.update(name, operation, encoded, self._installed[name], planned)
            await session.write([update])
            self._own.note(name, operation, encoded)
            self._installed[name] = applied(self._installed[name], update)

    async def keep_what_is_written(self, name: str) -> None:
        """See `FabricController.keep_what_is_written`."""
        async with self.writing:
            planned = self._installed.get(name, {})
            self._own.adopt(name, await read_installed(self._sessions[name]), planned)
            self._installed[name] = planned | self._own.of(name)

    def forget(self, name: str) -> None:
        """Discard the known entries of a switch."""
        self._installed.pop(name, None)
        self._applied.pop(name, None)

    async def close(self) -> None:
        """End all sessions; the switches keep their entries."""
        await asyncio.gather(*(session.close() for session in self._sessions.values()))
        await asyncio.gather(*(channel.close() for channel in self._channels.values()))
        self._sessions.clear()
        self._channels.clear()
        self._installed.clear()
        self._applied.clear()


async def on_all(action: Callable[[str], Awaitable[_Result]], names: Iterable[str]) -> list[_Result]:
    """Run an action for several switches concurrently; after all have ended, raise the first error."""
    outcomes = await asyncio.gather(*(action(name) for name in names), return_exceptions=True)
    errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    if errors:
        if len(errors) > 1:
            errors[0].add_note(f"{len(errors) - 1} other switch(es) failed too")
        raise errors[0]
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
