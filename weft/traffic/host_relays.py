"""Messages that change rails inside hosts: what a rank sends on for others, and what others send on to it.

A rank hands a message to the rank of its host that is on the receiver's rail, over scale-up links. That one writes it
to the receiver's memory by a queue pair of its own NIC, as NCCL's PXN does. So a connection between rails has two
queue pairs: for each direction one from the relay to the receiver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.engine import _core
from weft.traffic.commands.connections import Connection, Outgoing, RelayedConnection
from weft.traffic.schedule_nodes import Channel
from weft.traffic.transports.kind import QueuePair

if TYPE_CHECKING:
    from weft.traffic.host import Host


@dataclass(frozen=True)
class _Relayed:
    relay: _core.ScaleUpRelay
    queue_pair: QueuePair


@dataclass(frozen=True)
class _Received:
    queue_pair: QueuePair
    channel: int


class HostRelays:
    """A host's relays, and its queue pairs to other hosts' relays."""

    def __init__(self, host: Host) -> None:
        self._host = host
        # By the rank that they serve and its channel.
        self._relayed: dict[tuple[int, Channel], _Relayed] = {}
        self._received: dict[Channel, _Received] = {}

    def connect(self, relayed: RelayedConnection) -> None:
        """Send on what another rank of the host sends over a channel, in place of a relay before. Raises ValueError."""
        key = relayed.source, relayed.connection.channel
        self._end(key)
        relay = self._host.scale_up_port().relay(
            relayed.source, relayed.source_number, relayed.number, self._latencies_ps(key[1])[0]
        )
        queue_pair = self._host.make_queue_pair(relayed.connection, relay)
        self._host.count_queue_pair(queue_pair)
        relay.send_by(queue_pair)
        self._relayed[key] = _Relayed(relay, queue_pair)

    def receive(self, connection: Connection, outgoing: Outgoing) -> None:
        """Make a connection that sends by a relay of the host and receives from the peer's. Raises ValueError."""
        channel, executor = connection.channel, self._host.executor
        inside_ps, between_ps = self._latencies_ps(channel)
        number = self._host.scale_up_port().connect(
            channel, outgoing.number, outgoing.relay_number, inside_ps, outgoing.relay
        )
        queue_pair = self._host.make_queue_pair(connection, executor)
        self._host.count_queue_pair(queue_pair)
        over = executor.add_channel(queue_pair, between_ps)
        if self._host.inside is not None:
            # The relay that sends to this rank is the one with its number.
            self._host.inside.set_copies(executor, over, self._host.config.rank, connection.plane)
        executor.receive_over(number, over)
        self._received[channel] = _Received(queue_pair, over)

    def leave(self, channel: Channel) -> None:
        """Remove what receives for a connection, if there is anything."""
        received = self._received.pop(channel, None)
        if received is not None:
            self._host.executor.remove_channel(received.channel)
            self._host.close_queue_pair(received.queue_pair)

    def disconnect(self, label: str | None) -> None:
        """End the relays of a label, or all; what is under way there is abandoned."""
        for key in [key for key in self._relayed if label in (None, key[1].label)]:
            self._end(key)

    def _end(self, key: tuple[int, Channel]) -> None:
        relayed = self._relayed.pop(key, None)
        if relayed is not None:
            relayed.relay.close()
            self._host.close_queue_pair(relayed.queue_pair)

    def _latencies_ps(self, channel: Channel) -> tuple[int, int]:
        """Return how long after its arrival a channel's protocol sees a message within a host, and from another."""
        settings = self._host.config.protocols
        inside_ps, between_ps = (settings.step_latency_ps(channel.protocol, scale_up=each) for each in (True, False))
        return inside_ps, between_ps
