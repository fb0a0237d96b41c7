"""Which connections are moved when planes are lost and return, from run to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from weft.traffic.answers import Done, Suspended
from weft.traffic.commands.base import Command
from weft.traffic.commands.connections import Suspend
from weft.traffic.connections import Connections
from weft.traffic.endpoint_calls import EndpointCalls
from weft.traffic.plane_detours import Connection, Losses, PlaneDetours
from weft.traffic.schedule_nodes import Channel


class Hosts:
    """The queue pairs of two ranks: those that are connected, and those that are suspended.

    Like hosts it refuses to suspend what is not connected. `replaced` are queue pairs in whose place new ones were
    made: what had been posted to them is lost.
    """

    spans_planes = False

    def __init__(self) -> None:
        self.connected: set[Connection] = set()
        self.suspended: set[Connection] = set()
        self.replaced: list[Connection] = []
        self._known: set[Connection] = set()

    def telemetry_of(self, _: Connection) -> bool:
        return False

    def relay_of(self, _: Connection) -> None:
        return None

    def forget(self, connections: Iterable[Connection]) -> None:
        self._known -= set(connections)

    def connect_channels(self, channels: Iterable[Connection], _: bool) -> None:
        for end in channels:
            if end not in self._known:
                self.replaced += [end] if end in self.connected else []
                self.connected.add(end)
                self.suspended.discard(end)
                self._known.add(end)

    def all(self, commands: Mapping[int, Command[Any]]) -> dict[int, object]:
        return {rank: self._carry_out(rank, command) for rank, command in commands.items()}

    def _carry_out(self, rank: int, command: Command[Any]) -> object:
        if not isinstance(command, Suspend):
            return Done()
        ends = {(rank, channel) for channel in command.channels}
        assert ends <= self.connected
        self.connected -= ends
        self.suspended |= ends
        return Suspended((0,) * len(command.channels))


def both_ends(plane: int, label: str = "collective") -> list[Connection]:
    return [(0, Channel(plane, 1, label)), (1, Channel(plane, 0, label))]


class Fabric:
    """Three planes, and the connections of runs over them."""

    def __init__(self) -> None:
        self.hosts = Hosts()
        self.lost: set[int] = set()
        self.detours = PlaneDetours(self._losses, cast("Connections", self.hosts), cast("EndpointCalls", self.hosts))

    def _losses(self) -> Losses:
        in_use = {0, 1, 2} - self.lost
        return Losses(frozenset(self.lost), frozenset(in_use))

    def begin(self, connections: list[Connection]) -> None:
        """Connect what a run needs, and follow once it has started."""
        self.hosts.connect_channels(connections, False)
        self.detours.follow(connections)

    def follow(self, lost: set[int], connections: list[Connection]) -> None:
        self.lost = lost
        self.detours.follow(connections)


def test_a_run_that_begins_while_its_plane_is_lost_has_its_connections_moved() -> None:
    """And moved back when the plane returns, without a queue pair in place of one in use."""
    fabric, ends = Fabric(), both_ends(2)
    fabric.begin(ends)
    fabric.follow({2}, ends)
    fabric.detours.release([])
    fabric.begin(ends)
    assert set(ends) <= fabric.hosts.suspended
    fabric.follow(set(), ends)
    assert set(ends) <= fabric.hosts.connected
    assert fabric.hosts.replaced == []


def test_those_that_stood_for_others_are_forgotten_with_them() -> None:
    """A stand-in whose own plane was lost is not connected: another run does not suspend it again."""
    fabric, ends = Fabric(), both_ends(2)
    fabric.begin(ends)
    fabric.follow({2}, ends)
    fabric.follow({0, 2}, ends)
    fabric.detours.release([])
    fabric.begin(ends)
    assert set(ends) <= fabric.hosts.suspended
    fabric.follow(set(), ends)
    assert fabric.hosts.replaced == []


def test_what_another_run_uses_stays_moved() -> None:
    fabric, ends, others = Fabric(), both_ends(2), both_ends(2, "other")
    fabric.begin([*ends, *others])
    fabric.follow({2}, [*ends, *others])
    fabric.detours.release(others)
    assert set(fabric.detours.moved) == set(others)
    fabric.follow(set(), others)
    assert set(others) <= fabric.hosts.connected
    assert fabric.hosts.replaced == []
