"""READs as steps of schedules."""

from __future__ import annotations

import numpy as np
import pytest
from point_to_point import PointToPoint

from weft.engine import Engine, _core
from weft.traffic.schedule_nodes import Channel

SIZE = 50_000


def connected(**options):
    network = PointToPoint(Engine(seed=3), 2, **options)
    network.connect(0, 1, 0)
    host = network.hosts[0]
    return network, host, host.channels[Channel(0, 1, "collective")]


def run(network, host, schedule) -> dict:
    number = host.executor.start(schedule, 0)
    network.engine.run()
    return host.executor.status(number)


@pytest.mark.parametrize("loss", [0.0, 0.02])
def test_a_step_reads_and_those_after_it_find_what_was_read(loss):
    network, host, channel = connected(loss=loss)
    there = np.random.default_rng(1).integers(0, 2**31, SIZE // 4).astype(np.int32)
    memory = network.hosts[1].nic.register_memory(there, remote_read=True)
    here, sums = np.zeros_like(there), np.ones_like(there)
    schedule = _core.Schedule()
    target, result = schedule.add_buffer(here), schedule.add_buffer(sums)
    half = SIZE // 2
    reads = [schedule.add_read(channel, (target, at, half), remote_address=at, rkey=memory.rkey) for at in (0, half)]
    schedule.add_reduce((result, 0, SIZE), (target, 0, SIZE), dtype="int32", operation="sum", after=reads)
    assert run(network, host, schedule)["state"] == "finished"
    assert np.array_equal(here, there)
    assert np.array_equal(sums, there + 1)


@pytest.mark.parametrize("add", ["add_zeros", "add_lengths"])
def test_what_is_read_may_be_discarded(add):
    network, host, channel = connected()
    rkey = network.hosts[1].nic.register_sink(SIZE).rkey
    schedule = _core.Schedule()
    schedule.add_read(channel, (getattr(schedule, add)(SIZE), 0, SIZE), remote_address=0, rkey=rkey)
    assert run(network, host, schedule)["state"] == "finished"
    assert host.queue_pairs[Channel(0, 1, "collective")].stats()["data_bytes_received"] == SIZE


def test_a_refused_read_fails_the_run():
    network, host, channel = connected()
    schedule = _core.Schedule()
    schedule.add_read(channel, (schedule.add_zeros(8), 0, 8), remote_address=0, rkey=0xBAD)
    status = run(network, host, schedule)
    assert (status["state"], status["error"]) == ("failed", "node 0: remote_access_error (fault: local)")


def test_a_range_beyond_its_buffer_is_refused():
    schedule = _core.Schedule()
    with pytest.raises(ValueError, match=r"node 0 names bytes 4\+5 of a buffer of 8"):
        schedule.add_read(0, (schedule.add_zeros(8), 4, 5), remote_address=0, rkey=0)


@pytest.mark.parametrize("received", [0, 1])
def test_reads_that_a_lost_plane_kept_are_done_over_others(received):
    """The peer counts messages that arrive, no READs: one between two WRITEs is always done again."""
    network = PointToPoint(Engine(seed=3), 2)
    for plane in (0, 1):
        network.connect(0, 1, plane)
    host, peer = network.hosts
    lost, other = (host.channels[Channel(plane, 1, "collective")] for plane in (0, 1))
    there, here = np.arange(2000, dtype=np.uint8), np.zeros(1000, np.uint8)
    memory = peer.nic.register_memory(there, remote_read=True)
    schedule = _core.Schedule()
    zeros = schedule.add_zeros(1000)
    write = {"remote_address": 1000, "rkey": memory.rkey}
    schedule.add_write(lost, (zeros, 0, 1000), immediate=0, **write)
    schedule.add_read(lost, (schedule.add_buffer(here), 0, 1000), remote_address=0, rkey=memory.rkey)
    schedule.add_write(lost, (zeros, 0, 1000), immediate=1, **write)
    number = host.executor.start(schedule, 0)
    network.engine.run_for(1)
    host.executor.suspend(lost)
    host.executor.detour(lost, [other], received)
    network.engine.run()
    assert host.executor.status(number)["state"] == "finished"
    assert np.array_equal(here, there[:1000])
    assert host.queue_pairs[Channel(1, 1, "collective")].stats()["data_packets_received"] == 1
    assert peer.queue_pairs[Channel(1, 0, "collective")].stats()["data_packets_received"] == 3 - received
