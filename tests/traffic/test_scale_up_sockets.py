"""Links between ranks that are processes: what arrives, never before its time, and ends that go away."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Iterator

import numpy as np
import pytest

from tests.refusals import refused
from weft.engine import Engine, Nic, _core
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.data_types import DataType
from weft.traffic.host_config import ScaleUpConfig
from weft.traffic.native_schedule import RemoteBuffer, build_native_schedule
from weft.traffic.scale_up import ScaleUpLinks, ScaleUpPort
from weft.traffic.schedule_nodes import DATA, SCALE_UP, Channel
from weft.traffic.schedules import CollectiveSpec

RATE_BPS, LATENCY_PS = 3_200_000_000_000, 500_000
PS_PER_BYTE = 8 * 10**12 / RATE_BPS
DILATION = 200.0
EPOCH_NS = 1
"""The same for all, as the runner's is."""
TURN_PS = 1_000_000
PATIENCE_TURNS = 20_000


class RankProcess:
    """What one process has of a host: an engine of its own, and the domain of its port."""

    def __init__(self, rank: int, sockets: dict[int, int], size_bytes: int) -> None:
        ranks = (rank, *sockets)
        self.rank = rank
        self.engine = Engine.real_clock(epoch_ns=EPOCH_NS, dilation=DILATION)
        config = ScaleUpConfig(tuple(sorted(ranks)), RATE_BPS, LATENCY_PS, sockets)
        self.nic = Nic(self.engine, f"h{rank}")
        self.executor = _core.ScheduleExecutor(self.engine)
        self.port = ScaleUpPort(ScaleUpLinks.to_processes(config, rank, self.engine), rank, self.nic, self.executor)
        self.data = np.full(size_bytes, rank + 1, np.uint8)
        self.memory = self.nic.register_memory(self.data, remote_read=True)
        for peer in sockets:
            self.port.connect(Channel(0, peer, SCALE_UP), 0x100 + peer, 0x100 + rank)


class HostOfProcesses:
    """Ranks that share nothing but sockets, served in turn."""

    def __init__(self, ranks: int = 2, size_bytes: int = 1 << 16) -> None:
        sockets: list[dict[int, int]] = [{} for _ in range(ranks)]
        for first, second in itertools.combinations(range(ranks), 2):
            ends = socket.socketpair()
            sockets[first][second], sockets[second][first] = (end.detach() for end in ends)
        self.processes = [RankProcess(rank, sockets[rank], size_bytes) for rank in range(ranks)]
        self.descriptors = sockets

    def schedule(self, rank: int) -> _core.Schedule:
        made = _core.Schedule()
        made.add_buffer(self.processes[rank].data)
        return made

    def write(self, schedule: _core.Schedule, rank: int, peer: int, length: int, immediate: int | None = None) -> int:
        there = self.processes[peer].memory
        return schedule.add_write(
            self.processes[rank].port.channels()[Channel(0, peer, SCALE_UP)],
            (0, 0, length),
            remote_address=there.virtual_address,
            rkey=there.rkey,
            immediate=immediate,
        )

    def read(self, schedule: _core.Schedule, rank: int, peer: int, length: int, into: int = 0) -> int:
        there = self.processes[peer].memory
        return schedule.add_read(
            self.processes[rank].port.channels()[Channel(0, peer, SCALE_UP)],
            (into, 0, length),
            remote_address=there.virtual_address,
            rkey=there.rkey,
        )

    def wait(self, schedule: _core.Schedule, rank: int, peer: int, immediate: int) -> None:
        schedule.add_wait_receive(self.processes[rank].port.channels()[Channel(0, peer, SCALE_UP)], immediate)

    def serve(self) -> Iterator[None]:
        """Serve all engines for a moment, again and again."""
        for _ in range(PATIENCE_TURNS):
            for process in self.processes:
                process.engine.run_for(TURN_PS // len(self.processes))
            yield
        raise AssertionError("what is waited for did not come")

    def run(self, schedules: dict[int, _core.Schedule]) -> dict[int, dict[str, object]]:
        runs = {rank: self.processes[rank].executor.start(schedule) for rank, schedule in schedules.items()}
        for _ in self.serve():
            states = {rank: self.processes[rank].executor.status(run) for rank, run in runs.items()}
            if all(state["state"] != "running" for state in states.values()):
                return states
        raise AssertionError("unreachable")


@pytest.mark.parametrize("size_bytes", [0, 1, 3 << 20], ids=["nothing", "a byte", "more than a socket holds"])
def test_data_arrives_whole_and_not_before_its_time(size_bytes: int) -> None:
    host = HostOfProcesses(size_bytes=4 << 20)
    sender, receiver = host.schedule(0), host.schedule(1)
    host.write(sender, 0, 1, size_bytes, immediate=7)
    host.wait(receiver, 1, 0, 7)
    started_ps = host.processes[0].engine.now_ps
    ended = host.run({0: sender, 1: receiver})
    assert [state["state"] for state in ended.values()] == ["finished", "finished"]
    least_ps = started_ps + int(size_bytes * PS_PER_BYTE) + LATENCY_PS
    assert all(state["finished_ps"] >= least_ps for state in ended.values())
    there = host.processes[1].data
    assert np.all(there[:size_bytes] == 1)
    assert np.all(there[size_bytes:] == 2)
    assert host.processes[0].port.stats()["sent_bytes"] == size_bytes
    assert host.processes[1].port.stats()["received_bytes"] == size_bytes


@pytest.mark.parametrize("size_bytes", [0, 1, 3 << 20], ids=["nothing", "a byte", "more than a socket holds"])
def test_what_is_read_comes_whole_and_not_before_its_time(size_bytes: int) -> None:
    host = HostOfProcesses(size_bytes=4 << 20)
    reader = host.schedule(0)
    host.read(reader, 0, 1, size_bytes)
    started_ps = host.processes[0].engine.now_ps
    ended = host.run({0: reader})[0]
    assert ended["state"] == "finished"
    assert int(str(ended["finished_ps"])) >= started_ps + int(size_bytes * PS_PER_BYTE) + 2 * LATENCY_PS
    here = host.processes[0].data
    assert np.all(here[:size_bytes] == 2)
    assert np.all(here[size_bytes:] == 1)
    mine, theirs = (process.port.stats() for process in host.processes)
    assert mine["received_bytes"] == theirs["sent_bytes"] == size_bytes
    assert mine["sent_bytes"] == theirs["received_bytes"] == 0
    assert mine["sent_messages"] == theirs["received_messages"] == mine["received_messages"] == 1


@pytest.mark.parametrize(
    ("collective", "up", "down"), [("allreduce", 4, 4), ("reducescatter", 4, 1), ("allgather", 1, 4)]
)
def test_processes_reduce_and_multicast_as_one_switch_does(collective: str, up: int, down: int) -> None:
    """Each process adds up the terms of its own results; the bytes that its link carries are a switch's."""
    ranks, size_bytes = 4, 1 << 20
    host = HostOfProcesses(ranks, size_bytes)
    spec = CollectiveSpec(
        ranks, size_bytes, DataType.INT8, Operation.SUM, (1,), ranks_per_host=ranks, host_reductions=True
    )
    memory = [each.memory for each in host.processes]
    peers = {rank: {DATA: RemoteBuffer(each.virtual_address, each.rkey)} for rank, each in enumerate(memory)}
    schedules = {
        rank: build_native_schedule(
            COLLECTIVE_KINDS[collective].schedule("nvls", spec, rank),
            {DATA: process.data},
            process.port.channels(),
            {},
            peers,
        )
        for rank, process in enumerate(host.processes)
    }
    inputs = [process.data.view(np.int8).copy() for process in host.processes]
    started_ps = host.processes[0].engine.now_ps
    ended = host.run(schedules)
    assert {state["state"] for state in ended.values()} == {"finished"}
    least_ps = started_ps + int(size_bytes * PS_PER_BYTE) + LATENCY_PS
    assert all(int(str(state["finished_ps"])) >= least_ps for state in ended.values())
    kind = COLLECTIVE_KINDS[collective]
    for rank, process in enumerate(host.processes):
        part = kind.result_part(spec, rank)
        expected = np.sum(kind.terms(spec, inputs, rank), axis=0, dtype=np.int8)
        assert np.array_equal(process.data.view(np.int8)[part.start : part.stop], expected[part.start : part.stop])
        stats = process.port.stats()
        assert stats["sent_bytes"] == up * size_bytes // ranks
        assert stats["received_bytes"] == down * size_bytes // ranks


def test_what_is_read_may_be_discarded_by_another_process() -> None:
    """Its bytes are a number, which takes no more of a socket than a request."""
    host = HostOfProcesses()
    schedule = _core.Schedule()
    host.read(schedule, 0, 1, 1 << 16, into=schedule.add_lengths(1 << 16))
    assert host.run({0: schedule})[0]["state"] == "finished"
    assert host.processes[0].port.stats()["received_bytes"] == 1 << 16


@pytest.mark.parametrize("closes", [0, 1], ids=["the reader", "the peer"])
def test_a_read_on_a_closed_channel_is_abandoned(closes: int) -> None:
    host = HostOfProcesses()
    reader = host.schedule(0)
    host.read(reader, 0, 1, 5000)
    run = host.processes[0].executor.start(reader)
    while host.processes[0].port.stats()["sent_messages"] == 0:
        host.processes[0].engine.run_for(TURN_PS)
    host.processes[closes].port.disconnect(Channel(0, 1 - closes, SCALE_UP))
    for _ in host.serve():
        if host.processes[0].port.stats()["abandoned_messages"] == 1:
            break
    assert host.processes[0].executor.status(run)["state"] == "running"
    assert np.all(host.processes[0].data == 1)


def test_a_read_of_a_process_that_has_ended_is_abandoned() -> None:
    host = HostOfProcesses(3)
    socket.socket(fileno=os.dup(host.descriptors[2][0])).shutdown(socket.SHUT_RDWR)
    lost, other = host.schedule(0), host.schedule(0)
    host.processes[0].engine.run_for(TURN_PS)
    host.read(lost, 0, 2, 100)
    host.processes[0].executor.start(lost)
    host.read(other, 0, 1, 100)
    assert host.run({0: other})[0]["state"] == "finished"
    assert host.processes[0].port.stats()["abandoned_messages"] == 1


def test_memory_that_may_not_be_read_is_refused() -> None:
    host = HostOfProcesses()
    reader = host.schedule(0)
    host.read(reader, 0, 1, 5000)
    host.processes[1].memory.deregister()
    status = host.run({0: reader})[0]
    assert status["state"] == "failed"
    assert "remote_access_error" in str(status["error"])
    assert host.processes[1].port.stats()["refused_messages"] == 1


def test_all_send_to_all_at_once() -> None:
    """Every socket is full both ways: nobody waits for room while others wait for it to read."""
    ranks, size_bytes = 3, 1 << 20
    host = HostOfProcesses(ranks, size_bytes)
    schedules = {rank: host.schedule(rank) for rank in range(ranks)}
    for rank, peer in itertools.permutations(range(ranks), 2):
        for immediate in range(3):
            host.write(schedules[rank], rank, peer, size_bytes, immediate=immediate)
            host.wait(schedules[rank], rank, peer, immediate)
    ended = host.run(schedules)
    assert all(state["state"] == "finished" for state in ended.values())
    for process in host.processes:
        stats = process.port.stats()
        assert stats["sent_bytes"] == stats["received_bytes"] == 3 * (ranks - 1) * size_bytes
        assert stats["abandoned_messages"] == stats["refused_messages"] == 0


def test_memory_that_is_not_registered_is_refused() -> None:
    host = HostOfProcesses()
    sender = host.schedule(0)
    host.write(sender, 0, 1, 5000)
    host.processes[1].memory.deregister()
    status = host.run({0: sender})[0]
    assert status["state"] == "failed"
    assert "remote_access_error" in str(status["error"])
    assert host.processes[1].port.stats()["refused_messages"] == 1


@pytest.mark.parametrize("closes", [0, 1], ids=["the sender", "the receiver"])
def test_a_channel_that_is_closed_abandons_what_is_under_way(closes: int) -> None:
    host = HostOfProcesses()
    sender = host.schedule(0)
    host.write(sender, 0, 1, 5000)
    run = host.processes[0].executor.start(sender)
    while host.processes[0].port.stats()["sent_messages"] == 0:
        host.processes[0].engine.run_for(TURN_PS)
    host.processes[closes].port.disconnect(Channel(0, 1 - closes, SCALE_UP))
    for _ in host.serve():
        if host.processes[0].port.stats()["abandoned_messages"] == 1:
            break
    assert host.processes[0].executor.status(run)["state"] == "running"


def test_a_process_that_has_ended_stops_nobody() -> None:
    host = HostOfProcesses(3)
    socket.socket(fileno=os.dup(host.descriptors[2][0])).shutdown(socket.SHUT_RDWR)
    lost, other = host.schedule(0), host.schedule(0)
    host.processes[0].engine.run_for(TURN_PS)
    host.write(lost, 0, 2, 100)
    host.processes[0].executor.start(lost)
    host.write(other, 0, 1, 100)
    assert host.run({0: other})[0]["state"] == "finished"
    assert host.processes[0].port.stats()["abandoned_messages"] == 1


def test_sockets_that_cannot_be_are_refused() -> None:
    engine = Engine.real_clock()
    domain = _core.ScaleUpDomain(engine, rate_bps=RATE_BPS, latency_ps=0, port_count=2)
    ends = socket.socketpair()
    number = ends[0].fileno()
    for sockets in ({}, {0: number}, {2: number}, {1: number, 2: number}):
        with pytest.raises(ValueError, match=r"valid: one to each other of 2 ports"):
            _core.ScaleUpSockets(domain, 0, sockets)
    datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).detach()
    with pytest.raises(ValueError, match="is no stream socket"):
        _core.ScaleUpSockets(domain, 0, {1: datagrams})
    os.close(datagrams)
    no_socket = os.memfd_create("no socket")
    with pytest.raises(OSError, match="scale-up socket"):
        _core.ScaleUpSockets(domain, 0, {1: no_socket})
    os.close(no_socket)
    virtual = _core.ScaleUpDomain(Engine(), rate_bps=RATE_BPS, latency_ps=0, port_count=2)
    with pytest.raises(RuntimeError, match="real clock"):
        _core.ScaleUpSockets(virtual, 0, {1: number})
    config = ScaleUpConfig((0, 1), RATE_BPS, 0, {5: number})
    with refused(ValueError, valid="to the others of 0, 1", problem="sockets of rank 0 to the ranks 5"):
        ScaleUpLinks.to_processes(config, 0, engine)
    for end in ends:
        end.close()
