"""Runs that go on when a plane is lost: what its connections would carry goes over the other planes.

Both ends of a connection stop it and count what has arrived; then each has stand-ins carry what the other lacks, one
connection on each plane that is in use, message by message in turn. A ring of eight planes that loses one so has seven
eighths of its bandwidth, not half of it for the share of one plane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from weft.traffic.commands.connections import Detour, DetouredChannel, Suspend
from weft.traffic.connections import Connections
from weft.traffic.endpoint_calls import EndpointCalls
from weft.traffic.schedule_nodes import Channel

Connection = tuple[int, Channel]
"""A rank's end of one."""


@dataclass(frozen=True)
class Losses:
    """Lost and remaining parts of a fabric.

    Numbers of every host's NICs in lost planes and in usable ones; indices of lost hosts with ranks that spares can
    take, since no run can end without them; and indices of all hosts without a link.
    """

    nics: frozenset[int] = frozenset()
    nics_in_use: frozenset[int] = frozenset()
    hosts: frozenset[int] = frozenset()
    without_links: frozenset[int] = frozenset()


class PlaneDetours:
    """Moves connections off lost planes, and back.

    `losses` says what is lost and what is in use; None: nothing is ever lost. `moved` are the ends that others
    stand for at present.
    """

    def __init__(self, losses: Callable[[], Losses] | None, connections: Connections, calls: EndpointCalls) -> None:
        self._losses = losses
        self._connections, self._calls = connections, calls
        self.moved: dict[Connection, None] = {}
        # Of every stand-in, the channel that it stands for.
        self._stands_for: dict[Connection, Channel] = {}

    def clear(self) -> None:
        """Forget all, as the connections are gone."""
        self.moved.clear()
        self._stands_for.clear()

    def release(self, in_use: Iterable[Connection]) -> None:
        """Forget what was moved for a run that is over, and who stands for what, but for connections in use by others.

        The next run that needs them connects them anew, and has them moved again if their planes are still lost.
        """
        others = {end for each in in_use for end in _both_ends(each)}

        def is_over(end: Connection) -> bool:
            return (end[0], self._stands_for.get(end, end[1])) not in others

        self._connections.forget(filter(is_over, self.moved))
        self.moved = {end: None for end in self.moved if not is_over(end)}
        self._stands_for = {end: each for end, each in self._stands_for.items() if not is_over(end)}

    def follow(self, connections: Sequence[Connection]) -> None:
        """Move what a run has on lost planes, and move back what is on planes that are there again.

        Queue pairs that use all planes leave lost ones by themselves.
        """
        if self._losses is None or not connections or self._connections.spans_planes:
            return
        telemetry = self._connections.telemetry_of(connections[0])
        lost = self._losses()
        # New connections: those that were suspended do not know what has passed since.
        back = [each for each in self.moved if each[1].plane not in lost.nics]
        if back:
            self._connections.forget(back)
            self._connections.connect_channels(back, telemetry)
            for end in back:
                del self.moved[end]
        if not lost.nics or not lost.nics_in_use:
            return
        ends = dict.fromkeys(end for each in (*connections, *self._stands_for) for end in _both_ends(each))
        away = [
            end
            for end in ends
            if end[1].plane in lost.nics
            and not (end[1].is_scale_up or end in self.moved)
            and self._connections.relay_of(end) is None
        ]
        if away:
            self._move(away, sorted(lost.nics_in_use), telemetry)

    def _move(self, away: Sequence[Connection], planes: Sequence[int], telemetry: bool) -> None:
        over = {end: self._stand_ins(end, planes) for end in away}
        self._connections.connect_channels(
            [(rank, each) for (rank, _), channels in over.items() for each in channels], telemetry
        )
        by_rank: dict[int, list[Channel]] = {}
        for rank, channel in away:
            by_rank.setdefault(rank, []).append(channel)
        # Both ends stop before either counts: a message between would be sent twice, or never.
        answers = self._calls.all({rank: Suspend(tuple(channels)) for rank, channels in by_rank.items()})
        received = {
            (rank, channel): count
            for rank, channels in by_rank.items()
            for channel, count in zip(channels, answers[rank].received, strict=True)
        }
        self._calls.all(
            {
                rank: Detour(
                    tuple(
                        DetouredChannel(channel, over[rank, channel], received[_other_end((rank, channel))])
                        for channel in channels
                    )
                )
                for rank, channels in by_rank.items()
            }
        )
        self.moved.update(dict.fromkeys(away))

    def _stand_ins(self, end: Connection, planes: Sequence[int]) -> tuple[Channel, ...]:
        """Return the channels that are to stand for one: on each plane, known by whom they stand for."""
        rank, channel = end
        # A stand-in may lose its plane, too: who stands in for it carries the first one's messages.
        origin = self._stands_for.get(end, channel)
        label = f"{origin.label}, for plane {origin.plane}"
        if origin.clear_to_send is not None:
            planes = planes[:1]  # parts of a transfer keep their order over one queue pair alone
        # The one that it stands for holds what is not cleared.
        stand_in = replace(origin, peer=channel.peer, label=label, clear_to_send=None)
        channels = tuple(replace(stand_in, plane=plane) for plane in planes)
        self._stands_for.update({(rank, each): origin for each in channels})
        return channels


def _other_end(end: Connection) -> Connection:
    rank, channel = end
    return channel.peer, channel.towards(rank)


def _both_ends(end: Connection) -> tuple[Connection, Connection]:
    return end, _other_end(end)
