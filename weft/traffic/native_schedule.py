"""From a rank's schedule to one that the engine runs, over the rank's buffers, channels and peers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from weft.engine import _core
from weft.errors import InvalidValueError
from weft.traffic import schedule_nodes as nodes
from weft.traffic.lane_schedule import LaneSchedule, Schedule
from weft.traffic.messages import AS_BYTES, AS_LENGTHS


@dataclass(frozen=True, slots=True)
class RemoteBuffer:
    """A peer's registered buffer."""

    virtual_address: int
    rkey: int


Peers = Mapping[int, Mapping[str, RemoteBuffer]]
"""Registered buffers by rank and name."""


class _Builder:
    def __init__(
        self,
        buffers: Mapping[str, npt.NDArray[Any]],
        channels: Mapping[nodes.Channel, int],
        aggregators: Mapping[int, int],
        peers: Peers,
    ) -> None:
        self.channels, self.aggregators, self.peers = channels, aggregators, peers
        self.native = _core.Schedule()
        self.numbers = {name: self.native.add_buffer(array) for name, array in buffers.items()}

    def add_zeros(self, length_bytes: int) -> None:
        self.numbers[nodes.ZEROS] = self.native.add_zeros(length_bytes)

    def add_lengths(self, length_bytes: int) -> None:
        self.numbers[nodes.ZEROS] = self.native.add_lengths(length_bytes)

    def span(self, span: nodes.Span) -> tuple[int, int, int]:
        number = look_up(self.numbers, span.buffer, "buffer")
        return number, span.offset_bytes, span.length_bytes

    def add(self, node: nodes.Node, after: tuple[int, ...]) -> int:
        order = list(after)
        match node:
            case nodes.Write(channel, source, destination, immediate):
                far = look_up(self.peers.get(channel.peer, {}), destination.buffer, f"rank {channel.peer}'s buffer")
                return self.native.add_write(
                    look_up(self.channels, channel, "channel"),
                    self.span(source),
                    remote_address=far.virtual_address + destination.offset_bytes,
                    rkey=far.rkey,
                    immediate=immediate,
                    after=order,
                )
            case nodes.WaitReceive(channel, immediate):
                return self.native.add_wait_receive(look_up(self.channels, channel, "channel"), immediate, after=order)
            case nodes.Reduce(destination, source, dtype, operation):
                return self.native.add_reduce(
                    self.span(destination),
                    self.span(source),
                    dtype=dtype.value,
                    operation=operation.combined_by.name.lower(),
                    after=order,
                )
            case nodes.Copy(destination, source):
                return self.native.add_copy(self.span(destination), self.span(source), after=order)
            case nodes.Aggregate(plane, span, dtype, operation):
                return self.native.add_aggregate(
                    look_up(self.aggregators, plane, "aggregation job on plane"),
                    self.span(span),
                    dtype=dtype.value,
                    operation=operation.combined_by.name.lower(),
                    after=order,
                )
            case nodes.Delay(duration_ps):
                return self.native.add_delay(duration_ps, after=order)


def build_native_schedule(
    schedule: Schedule,
    buffers: Mapping[str, npt.NDArray[Any]],
    channels: Mapping[nodes.Channel, int],
    aggregators: Mapping[int, int],
    peers: Peers,
    payload: str = AS_BYTES,
) -> _core.RunnableSchedule:
    """Return the schedule over the rank's arrays, executor channels, aggregators by plane, and peers' memory.

    With the payload AS_LENGTHS zeros travel as their number.

    Raises ValueError naming a buffer, channel, plane or peer's buffer that the schedule needs and lacks.
    """
    if isinstance(schedule, LaneSchedule):
        return _bind_lanes(schedule, buffers, channels, aggregators, peers, payload)
    builder = _Builder(buffers, channels, aggregators, peers)
    if nodes.ZEROS in schedule.buffer_bytes:
        add = builder.add_lengths if payload == AS_LENGTHS else builder.add_zeros
        add(schedule.buffer_bytes[nodes.ZEROS])
    for node, after in zip(schedule.nodes, schedule.after, strict=True):
        builder.add(node, after)
    return builder.native


def _bind_lanes(
    schedule: LaneSchedule,
    buffers: Mapping[str, npt.NDArray[Any]],
    channels: Mapping[nodes.Channel, int],
    aggregators: Mapping[int, int],
    peers: Peers,
    payload: str,
) -> _core.BoundLanes:
    has_scratch = nodes.SCRATCH in schedule.buffer_bytes
    bound = []
    for number, channel in enumerate(schedule.named_channels):
        memory = (0, 0, 0, 0)
        if number in schedule.written:
            far = peers.get(channel.peer, {})
            whose = f"rank {channel.peer}'s buffer"
            data = look_up(far, nodes.DATA if schedule.has_data else nodes.SINK, whose)
            scratch = look_up(far, nodes.SCRATCH, whose) if schedule.has_data and has_scratch else data
            memory = (data.virtual_address, data.rkey, scratch.virtual_address, scratch.rkey)
        bound.append((look_up(channels, channel, "channel"), *memory))
    planes = schedule.planes_aggregated()
    for plane in planes:
        look_up(aggregators, plane, "aggregation job on plane")
    zeros = "lengths" if payload == AS_LENGTHS else "zeros"
    return _core.BoundLanes(
        schedule.native,
        payload="data" if schedule.has_data else zeros,
        data=buffers.get(nodes.DATA),
        scratch=buffers.get(nodes.SCRATCH),
        channels=bound,
        aggregators=[aggregators.get(plane) for plane in range(max(planes, default=-1) + 1)],
    )


def look_up(table: Mapping[Any, Any], key: object, what: str) -> Any:
    """Return what a table has for a key. Raises ValueError, which says what of it there is."""
    try:
        return table[key]
    except KeyError:
        raise InvalidValueError(f"no {what} {key}", valid=(str(known) for known in table)) from None
