"""A rank's port into the links of its host, and its connections over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from weft.engine import Engine, Nic, _core
from weft.errors import InvalidValueError
from weft.traffic.host_config import ScaleUpConfig
from weft.traffic.protocols import LINE_FORMATS
from weft.traffic.schedule_nodes import Channel


@dataclass(frozen=True)
class ScaleUpLinks:
    """The links of a host: `ranks` are its ports' ranks, in order."""

    domain: _core.ScaleUpDomain
    ranks: tuple[int, ...]

    @classmethod
    def to_processes(cls, config: ScaleUpConfig, rank: int, engine: Engine) -> ScaleUpLinks:
        """Return a rank's links to the other ranks of its host, each a separate process.

        Raises ValueError for sockets to other ranks than these, OSError for invalid descriptors.
        """
        if rank not in config.ranks or not set(config.sockets) <= set(config.ranks):
            raise InvalidValueError(
                f"scale_up: sockets of rank {rank} to the ranks {', '.join(map(str, config.sockets))}",
                valid=f"to the others of {', '.join(map(str, config.ranks))}",
            )
        domain = _core.ScaleUpDomain(
            engine,
            rate_bps=config.rate_bps,
            latency_ps=config.latency_ps,
            port_count=len(config.ranks),
        )
        sockets = {config.ranks.index(peer): number for peer, number in config.sockets.items()}
        _core.ScaleUpSockets(domain, config.ranks.index(rank), sockets)
        return cls(domain, config.ranks)


class ScaleUpPort:
    """One rank's end of its host's links. Channels take the place of queue pairs, and their numbers."""

    def __init__(self, links: ScaleUpLinks, rank: int, nic: Nic, executor: _core.ScheduleExecutor) -> None:
        self._links, self._executor = links, executor
        self._port = links.ranks.index(rank)
        self._channels: dict[Channel, tuple[_core.ScaleUpChannel, int]] = {}
        self._groups: dict[Channel, int] = {}
        links.domain.attach(self._port, nic)

    def connect(
        self,
        channel: Channel,
        queue_pair: int,
        remote_queue_pair: int,
        step_latency_ps: int = 0,
        relay: int | None = None,
    ) -> int:
        """Make a channel to a rank of the host, in place of one before; returns the executor's number.

        Steps learn of what arrives `step_latency_ps` later. `relay`: the rank of the host that the channel ends at, if
        that sends on to the channel's peer. Raises ValueError for another host's rank.
        """
        port = self._port_of(channel.peer if relay is None else relay)
        self.disconnect(channel)
        made = _core.ScaleUpChannel(
            self._links.domain,
            self._executor,
            port=self._port,
            number=queue_pair,
            peer_port=port,
            peer_number=remote_queue_pair,
            line_format=LINE_FORMATS[channel.protocol],
            group=self._group_of(channel),
        )
        number = self._executor.add_scale_up_channel(made, step_latency_ps)
        self._channels[channel] = (made, number)
        return number

    def relay(self, source: int, source_number: int, number: int, step_latency_ps: int) -> _core.ScaleUpRelay:
        """Return what sends on a rank's messages `step_latency_ps` after they came. ValueError: as `connect`."""
        return _core.ScaleUpRelay(
            self._links.domain,
            port=self._port,
            number=number,
            source_port=self._port_of(source),
            source_number=source_number,
            step_latency_ps=step_latency_ps,
        )

    def _group_of(self, channel: Channel) -> int:
        """Return a number for channels that differ in their peers alone, as a collective's do."""
        return self._groups.setdefault(replace(channel, peer=self._links.ranks[self._port]), len(self._groups))

    def _port_of(self, rank: int) -> int:
        if rank not in self._links.ranks:
            raise InvalidValueError(f"rank {rank} is of another host", valid=self._links.ranks)
        return self._links.ranks.index(rank)

    def disconnect(self, channel: Channel) -> None:
        """Remove a channel, if there is one, and what is in flight on it."""
        made, number = self._channels.pop(channel, (None, 0))
        if made is not None:
            self._executor.remove_channel(number)
            made.close()

    def channels(self) -> dict[Channel, int]:
        """Return the executor's numbers of all channels."""
        return {channel: number for channel, (_, number) in self._channels.items()}

    def stats(self) -> Mapping[str, int]:
        """Return the port's counters."""
        counters: Mapping[str, Any] = dict(self._links.domain.stats(self._port))
        return counters

    def reset_stats(self) -> None:
        """Set these counters to zero."""
        self._links.domain.reset_stats(self._port)
