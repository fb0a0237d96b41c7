"""From a rank's part of a job to what the engine runs, over the host's channels and the memory of peers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from weft.engine import _core
from weft.traffic.collectives import collective_named
from weft.traffic.jobs.operations import Operations
from weft.traffic.jobs.rank_job import PeerPaths, RankCall, RankJob
from weft.traffic.lane_schedule import Schedule
from weft.traffic.messages import AS_LENGTHS, Payload
from weft.traffic.native_schedule import Peers, build_native_schedule, look_up
from weft.traffic.schedule_nodes import SINK, Channel
from weft.traffic.schedules import CollectiveSpec

STRIPE_BYTES = 64 * 1024
"""Messages between ranks of different hosts are striped over the planes from this size on."""


class SharedParts:
    """What ranks of a job share, made once: the engine's operations, and schedules of collectives in group ranks."""

    def __init__(self) -> None:
        self._schedules: dict[tuple[str, str, CollectiveSpec, int], Schedule] = {}
        # With the description, whose identity is its own as long as it is kept.
        self._operations: dict[int, tuple[Operations, _core.JobOperations]] = {}

    def schedule(self, call: RankCall) -> Schedule:
        """Return the schedule of a call, of lengths."""
        key = (call.collective, call.algorithm, call.spec, call.group_rank)
        if (known := self._schedules.get(key)) is None:
            collective = collective_named(call.collective)
            known = collective.schedule(call.algorithm, call.spec, call.group_rank).of_lengths()
            self._schedules[key] = known
        return known

    def operations(self, described: Operations) -> _core.JobOperations:
        """Return operations as the engine has them. Raises ValueError for ones that it cannot run."""
        if (known := self._operations.get(id(described))) is None:
            known = (described, _core.JobOperations(**described.engine_columns()))
            self._operations[id(described)] = known
        return known[1]


def channels_of(part: RankJob, shared: SharedParts) -> Iterator[Channel]:
    """Yield all channels of a rank's part, those to its peers first; some more than once."""
    for peer in part.peers:
        yield from peer.channels
    for call in part.calls:
        yield from map(call.channel, shared.schedule(call).channels())


def written_ranks(part: RankJob, shared: SharedParts) -> list[int]:
    """Return the fabric's ranks to whose memory a rank may write, each once."""
    peers = (paths.channels[0].peer for paths in part.peers)
    members = (call.ranks[peer] for call in part.calls for peer in shared.schedule(call).written_peers())
    return list(dict.fromkeys((*peers, *members)))


def sink_bytes(part: RankJob, operations: _core.JobOperations, shared: SharedParts) -> int:
    """Return the size of the largest message that peers write to a rank."""
    sinks = (shared.schedule(call).buffer_bytes[SINK] for call in part.calls)
    return max((operations.largest_received_bytes, *sinks))


def bind_job(
    part: RankJob,
    operations: _core.JobOperations,
    shared: SharedParts,
    channels: Mapping[Channel, int],
    memory: Peers,
    payload: Payload,
) -> _core.BoundJob:
    """Return what the engine runs, over the executor's channels and the sinks of peers.

    Raises ValueError, naming it, for a channel or a sink that is missing.
    """
    return _core.BoundJob(
        operations,
        peers=[_bind_paths(paths, channels, memory) for paths in part.peers],
        calls=[_bind_call(call, shared.schedule(call), channels, memory, payload) for call in part.calls],
        as_length=payload == AS_LENGTHS,
        run_tag=part.run_tag,
        compute_scale=part.compute_scale,
        stripe_bytes=STRIPE_BYTES,
    )


def _bind_paths(
    paths: PeerPaths, channels: Mapping[Channel, int], memory: Peers
) -> list[tuple[int, int, int, int]]:
    peer = paths.channels[0].peer
    sink = look_up(memory.get(peer, {}), SINK, f"rank {peer}'s buffer")
    numbers = map(partial(look_up, channels, what="channel"), paths.channels)
    return [
        (number, sink.virtual_address, sink.rkey, end)
        for number, end in zip(numbers, paths.end_shares, strict=True)
    ]


def _bind_call(
    call: RankCall, schedule: Schedule, channels: Mapping[Channel, int], memory: Peers, payload: Payload
) -> _core.RunnableSchedule:
    own = {channel: look_up(channels, call.channel(channel), "channel") for channel in schedule.channels()}
    members = {peer: memory.get(call.ranks[peer], {}) for peer in schedule.written_peers()}
    return build_native_schedule(schedule, {}, own, {}, members, payload)
