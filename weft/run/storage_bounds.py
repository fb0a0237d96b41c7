"""Closed forms for bounds on the throughput of storage commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.jobs.storage.commands import COMMAND_BYTES, RESPONSE_BYTES, StorageNodes
from weft.quantities.units import PS_PER_S
from weft.recording.ideal_times import READ_REQUEST, READ_RESPONSE, WRITE
from weft.run.message_times import MessageTimes, ServiceNetwork, Way, read_ps


@dataclass(frozen=True)
class CommandLoad:
    """Commands of one kind: number of clients, outstanding commands of each, size and direction."""

    clients: int
    queue_depth: int
    block_bytes: int
    is_read: bool


def throughput_bounds(load: CommandLoad, nodes: StorageNodes, network: ServiceNetwork) -> dict[str, float]:
    """Return the bytes/s that queue depth, links, devices and copies allow; the smallest bounds a run.

    The bound of the queue depth is outstanding commands times their size over the round trip of a single command
    (Little's law); READs by which nodes fetch written data have the same bound. Cut-through switching leaves both out;
    the bounds by links and by READs are left out if a client shares a host with a node, where nothing limits READs.
    """
    accesses = nodes.device.accesses(reads=load.is_read)
    device = accesses.bytes_per_s(load.block_bytes) * nodes.devices * nodes.count
    found = {}
    if network.has_round_trips:
        in_flight = load.queue_depth * load.block_bytes
        round_trips = network.means(lambda way: 1 / round_trip_ps(load, nodes, way))
        found["queue depth"] = in_flight * PS_PER_S * sum(round_trips)
        if network.first is not None and not load.is_read and load.block_bytes > nodes.in_capsule_bytes:
            pairs = network.reads_of_a_pair(load.block_bytes) * nodes.count
            reads = network.means(lambda way: 1 / read_ps(load.block_bytes, way))
            found["reads under way"] = pairs * load.block_bytes * PS_PER_S * sum(reads)
    if network.first is not None:
        ends = min(load.clients, nodes.count)
        share = load.block_bytes / _bytes_on_link(load, nodes, network.first)
        found["link"] = ends * network.first.nic_rate_bps / 8 * share
    found["device"] = device
    if nodes.host_copy is not None:
        copy_ps = nodes.host_copy.duration_ps(load.block_bytes)
        found["host copy"] = load.clients * load.block_bytes * PS_PER_S / copy_ps
    return found


def round_trip_ps(load: CommandLoad, nodes: StorageNodes, network: Way) -> int:
    """Return the latency of a single command."""
    size_bytes = load.block_bytes
    accesses = nodes.device.accesses(reads=load.is_read)
    total = accesses.latency + accesses.transfer_ps(size_bytes)
    if nodes.host_copy is not None:
        total += nodes.host_copy.duration_ps(size_bytes)
    one_way: Callable[..., int] = network.one_way_ps
    if load.is_read:
        # The response directly follows the data: at the end of the path it is behind by its serialisation time.
        behind = network.sent_ps(network.wire_bytes(RESPONSE_BYTES, WRITE))
        return total + one_way(COMMAND_BYTES, WRITE) + one_way(size_bytes, WRITE) + behind
    total += one_way(RESPONSE_BYTES, WRITE)
    if size_bytes <= nodes.in_capsule_bytes:
        return total + one_way(COMMAND_BYTES + size_bytes, WRITE)
    # The READ request leaves after the capsule's acknowledgement.
    total += network.sent_ps(network.acknowledgement_bytes)
    return total + sum(
        one_way(size, kind) for size, kind in ((COMMAND_BYTES, WRITE), (0, READ_REQUEST), (size_bytes, READ_RESPONSE))
    )


def _bytes_on_link(load: CommandLoad, nodes: StorageNodes, network: MessageTimes) -> int:
    """Return the bytes of a command on a link in the direction of its data."""
    wire, answer = network.wire_bytes, network.acknowledgement_bytes
    if load.is_read:
        return wire(load.block_bytes, WRITE) + wire(RESPONSE_BYTES, WRITE) + answer
    if load.block_bytes <= nodes.in_capsule_bytes:
        return wire(COMMAND_BYTES + load.block_bytes, WRITE) + answer
    return wire(COMMAND_BYTES, WRITE) + wire(load.block_bytes, READ_RESPONSE) + answer
