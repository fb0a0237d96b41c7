"""From a rank's part of a job to what the engine runs, over the host's channels and the memory of peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.engine import _core
from weft.traffic.collectives import collective_named
from weft.traffic.jobs.classes import KindNumber, Slots
from weft.traffic.jobs.fast_forward import RepeatedParts
from weft.traffic.jobs.rank_job import PeerPaths, RankCall, RankJob
from weft.traffic.lane_schedule import Schedule
from weft.traffic.messages import AS_LENGTHS, Payload
from weft.traffic.native_schedule import Peers, build_native_schedule, look_up
from weft.traffic.schedule_nodes import DATA, SINK, Channel
from weft.traffic.schedules import CollectiveSpec

STRIPE_BYTES = 64 * 1024
"""Messages between ranks of different hosts are striped over the planes from this size on."""


class SharedParts:
    """Objects that ranks of a job share: the engine's operations, and schedules of collectives in group ranks."""

    def __init__(self) -> None:
        self._schedules: dict[tuple[str, str, CollectiveSpec, int, bool], Schedule] = {}
        # With the slots, whose identity is their own as long as they are kept.
        self._operations: dict[int, tuple[Slots, _core.JobOperations]] = {}

    def schedule(self, call: RankCall) -> Schedule:
        """Return the schedule of a call; without data, of lengths."""
        has_data = call.data is not None
        key = (call.collective, call.algorithm, call.spec, call.group_rank, has_data)
        if (known := self._schedules.get(key)) is None:
            collective = collective_named(call.collective)
            known = collective.schedule(call.algorithm, call.spec, call.group_rank)
            self._schedules[key] = known = known if has_data else known.of_lengths()
        return known

    def operations(self, slots: Slots, number_of: KindNumber, *, calls_apart: bool = False) -> _core.JobOperations:
        """Return operations as the engine has them (`Slots.engine_columns`).

        Raises ValueError for ones that it cannot run.
        """
        if (known := self._operations.get(id(slots))) is None:
            columns = slots.engine_columns(number_of, calls_apart=calls_apart)
            known = self._operations[id(slots)] = (slots, _core.JobOperations(**columns))
        return known[1]


def channels_of(part: RankJob, shared: SharedParts) -> Iterator[Channel]:
    """Yield all channels of a rank's part, those to its peers first; some more than once."""
    for peer in part.peers:
        for channel in peer.channels:
            yield from channel.with_clearances()
    for call in part.calls:
        yield from call_channels(call, shared)


def call_channels(call: RankCall, shared: SharedParts) -> Iterator[Channel]:
    """Yield the fabric's channels of a rank in a call."""
    return map(call.channel, shared.schedule(call).channels())


def written_ranks(part: RankJob, shared: SharedParts) -> list[int]:
    """Return the fabric's ranks that a rank may write to, each once."""
    peers = (paths.channels[0].peer for paths in part.peers)
    members = (call.ranks[peer] for call in part.calls for peer in shared.schedule(call).written_peers())
    return list(dict.fromkeys((*peers, *members)))


def sink_bytes(part: RankJob, operations: _core.JobOperations, shared: SharedParts) -> int:
    """Return the size of the largest message that peers write to a rank, or read from it."""
    sinks = (shared.schedule(call).buffer_bytes[SINK] for call in part.calls if call.data is None)
    return max((operations.largest_received_bytes, part.read_bytes, *sinks))


def buffers_of(call: RankCall, schedule: Schedule, data: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the buffers of a call with data: its part of the rank's bytes of all, and scratch memory, by name."""
    buffers = {name: np.zeros(size, np.uint8) for name, size in schedule.buffer_bytes.items() if name != DATA}
    end = call.offset_bytes + schedule.buffer_bytes[DATA]
    return {DATA: data[call.offset_bytes : end], **buffers}


def reduced_lengths(schedule: Schedule) -> dict[str, NDArray[Any]]:
    """Return the buffers of a call of lengths: zeros for what the network reduces, which is always data."""
    return {DATA: np.zeros(schedule.buffer_bytes[DATA], np.uint8)} if schedule.planes_aggregated() else {}


def buffer_name(call: RankCall, name: str) -> str:
    """Return what peers call a buffer of a call with data."""
    return f"{call.data} {name}"


def bind_job(
    part: RankJob,
    operations: _core.JobOperations,
    shared: SharedParts,
    channels: Mapping[Channel, int],
    memory: Peers,
    payload: Payload,
    buffers: Sequence[Mapping[str, NDArray[Any]]],
    aggregators: Callable[[int | None], Mapping[int, int]],
    repeated: RepeatedParts | None = None,
    run: int = 0,
) -> _core.BoundJob:
    """Return what the engine runs, over the executor's channels, the memory of peers and each call's buffers.

    `aggregators` are the executor's numbers for an aggregation job, by plane. With `repeated`, fast-forward may repeat
    operations of this `run` of the executor's.

    Raises ValueError, naming it, for a channel, a peer's memory or an aggregation job that is missing.
    """
    return _core.BoundJob(
        operations,
        peers=[_bind_paths(paths, channels, memory) for paths in part.peers],
        calls=[
            _bind_call(
                call,
                shared.schedule(call),
                own,
                channels,
                memory,
                payload,
                aggregators(call.aggregation_job),
            )
            for call, own in zip(part.calls, buffers, strict=True)
        ],
        as_length=payload == AS_LENGTHS,
        run_tag=part.run_tag,
        compute_scale=part.compute_scale,
        communication_share=part.communication_share,
        stripe_bytes=STRIPE_BYTES,
        fast_forward=None if repeated is None else repeated.fast_forward,
        run=run,
        call_groups=[] if repeated is None else repeated.calls,
        peer_groups=[] if repeated is None else repeated.peers,
    )


def _bind_paths(paths: PeerPaths, channels: Mapping[Channel, int], memory: Peers) -> list[tuple[int, int, int, int]]:
    peer = paths.channels[0].peer
    sink = look_up(memory.get(peer, {}), SINK, f"rank {peer}'s buffer")
    numbers = map(partial(look_up, channels, what="channel"), paths.channels)
    return [
        (number, sink.virtual_address, sink.rkey, end) for number, end in zip(numbers, paths.end_shares, strict=True)
    ]


def _bind_call(
    call: RankCall,
    schedule: Schedule,
    buffers: Mapping[str, NDArray[Any]],
    channels: Mapping[Channel, int],
    memory: Peers,
    payload: Payload,
    aggregators: Mapping[int, int],
) -> _core.RunnableSchedule:
    own = {channel: look_up(channels, call.channel(channel), "channel") for channel in schedule.channels()}
    members = {peer: memory.get(call.ranks[peer], {}) for peer in schedule.written_peers()}
    if call.data is not None:
        names = {buffer_name(call, name): name for name in schedule.buffer_bytes}
        members = {
            peer: {names[name]: far for name, far in of_peer.items() if name in names}
            for peer, of_peer in members.items()
        }
    return build_native_schedule(schedule, buffers, own, aggregators, members, payload)
