"""The base class of users' controllers, and what their methods are given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from weft.controller.counters import Count
from weft.errors import InvalidValueError
from weft.quantities.limits import whole_ps
from weft.topologies import FabricLink, FabricSpec
from weft.traffic.extensions.later import LaterCalls, callback_of

if TYPE_CHECKING:
    from weft.clocks.user_controller.controlled_switch import ControlledSwitch


@dataclass(frozen=True)
class PacketIn:
    """A packet that a switch sent to the controller: its bytes, and the fields of the program's packet_in header."""

    payload: bytes
    metadata: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """An entry of a table, with names as in P4Info: short ones where they are unique.

    `match` has a number for an exact key, (value, length) for a prefix, (value, mask) for a ternary one, (low, high)
    for a range. Keys that match anything are left out. An entry of a table that chooses by an action profile has a
    `member_id` or a `group_id` in place of an action, or 0 in both, where it has an action set. `count` is there if the
    table counts and the entry was read from it.
    """

    table: str
    match: Mapping[str, Any]
    action: str
    params: Mapping[str, int]
    priority: int = 0
    member_id: int = 0
    group_id: int = 0
    count: Count | None = None


class Running(Protocol):
    """The run, as a controller needs it."""

    @property
    def later(self) -> LaterCalls:
        """The calls that the controller asks for."""

    def now_ps(self) -> int:
        """Return the emulated time since the controller has begun."""

    def call_at(self, time_ps: int, callback: Callable[[], object]) -> None:
        """Have something called then, between other methods."""


class Controller:
    """A controller of yours: `controller: mine.py:Class` in a scenario. Weft's own controller keeps running.

    Its methods are called one at a time, in the order of events, and may call methods of switches, which return when
    the switch has answered. Parameters of `__init__` are the scenario's `controller.parameters`.

    Attributes:
        fabric: hosts, switches, links; there from `on_start` on.
        switches: by name.

    """

    fabric: FabricSpec
    switches: Mapping[str, ControlledSwitch]
    _running: Running | None = None

    def on_start(self, switch: ControlledSwitch) -> None:
        """Take note that a switch runs its program: once each, before the first packet, and again if it comes back."""

    def on_digest(self, switch: ControlledSwitch, name: str, entries: Sequence[Mapping[str, int]]) -> None:
        """Take digests of one kind: each is the fields of the program's struct."""

    def on_packet_in(self, switch: ControlledSwitch, packet: PacketIn) -> None:
        """Take a packet that the program sent to the CPU port."""

    def on_link(self, link: FabricLink, up: bool) -> None:
        """Take note that a link is down, or up again; Weft has changed its own routes by then."""

    def on_idle_timeout(self, switch: ControlledSwitch, entry: Entry) -> None:
        """Take note that no packet has hit an entry for its `idle_timeout_ns`; it stays until it is deleted."""

    @property
    def now(self) -> int:
        """The emulated time in picoseconds since the first `on_start`."""
        return self._run.now_ps()

    def after(self, delay: float, callback: Callable[[], object]) -> None:
        """Call something so many emulated picoseconds from now, between the other methods; 1e6 is a microsecond.

        Raises ValueError for a delay that is negative or no whole number, and for calls without a delay that never
        end; TypeError for what cannot be called.
        """
        run = self._run
        run.call_at(run.later.time_ps(run.now_ps(), delay), callback_of(callback))

    def every(self, interval: float, callback: Callable[[], object]) -> None:
        """Call something again and again, first one interval from now. Raises ValueError unless it is above 0.

        Where methods take longer than an interval, calls that are past are left out.
        """
        callback_of(callback)
        interval_ps = whole_ps(interval)
        if interval_ps <= 0:
            raise InvalidValueError(f"an interval of {interval} ps", valid="above 0")
        began_ps, run = self.now, self._run

        def call() -> None:
            callback()
            begin_next()

        functools.update_wrapper(call, callback)

        def begin_next() -> None:
            past = (run.now_ps() - began_ps) // interval_ps
            run.call_at(began_ps + (past + 1) * interval_ps, call)

        begin_next()

    @property
    def _run(self) -> Running:
        if self._running is None:
            raise RuntimeError("a controller can act when its switches have started: from on_start on")
        return self._running
