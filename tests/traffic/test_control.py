"""What the runner sends to each endpoint is in proportion to what that endpoint does."""

from __future__ import annotations

from itertools import count
from typing import Any, Literal, TypeVar, cast

import numpy as np
import pytest

from tests.refusals import refused
from weft.traffic.aggregation_format import Operation
from weft.traffic.answers import Done, Prepared, RunState
from weft.traffic.commands.base import Command
from weft.traffic.commands.connections import Connect
from weft.traffic.commands.flows import PrepareTraffic
from weft.traffic.commands.runs import Release, Start, Wait
from weft.traffic.control import EndpointGroup
from weft.traffic.data_types import DataType
from weft.traffic.host_config import HostConfig, NicConfig
from weft.traffic.messages import AS_LENGTHS
from weft.traffic.native_schedule import RemoteBuffer
from weft.traffic.patterns import Flow, permutation
from weft.traffic.prepared_runs import RunError
from weft.traffic.schedule_nodes import SINK
from weft.traffic.schedules import CollectiveSpec

A = TypeVar("A")
C = TypeVar("C")
RunEnd = Literal["running", "finished", "failed"]
RANKS = 50


class Recorder:
    """An endpoint that accepts every command."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.commands: list[Command[Any]] = []
        self.run_ends: RunEnd = "finished"

    def send(self, command: Command[Any], number: int) -> None:
        self.commands.append(command)

    def read_answer(self, command: Command[A], number: int, timeout_s: float) -> A:
        answer: object = Done()
        if isinstance(command, PrepareTraffic):
            answer = Prepared(command.run, {SINK: RemoteBuffer(self.rank, self.rank)})
        elif isinstance(command, Wait):
            answer = RunState(command.run, self.run_ends, 5, 10 + self.rank)
        return cast(A, answer)

    def run_state(self, run: int) -> RunState | None:
        return None

    def received(self, kind: type[C]) -> list[C]:
        return [command for command in self.commands if isinstance(command, kind)]


class StandingClock:
    def __init__(self) -> None:
        self._waits = count(0.0, 2.0)

    def wait_time_s(self) -> float:
        return next(self._waits)

    def now_ps(self) -> int:
        return 0

    def start_margin_ps(self, ranks: int) -> int:
        return 0


@pytest.fixture
def recorders() -> list[Recorder]:
    return [Recorder(rank) for rank in range(RANKS)]


@pytest.fixture
def group(recorders: list[Recorder]) -> EndpointGroup:
    nic = NicConfig("eth0", "02:00:00:00:00:01", "10.0.0.1", "02:00:00:00:00:02", 10**9, 10**6)
    hosts = [HostConfig(f"h{rank}", rank, 0, (nic,)) for rank in range(RANKS)]
    return EndpointGroup(recorders, hosts, clock=StandingClock())


def test_each_rank_gets_its_own_flows_and_peers(group, recorders):
    flows = permutation(RANKS, 1000, seed=3)
    run = group.prepare_traffic(flows, payload=AS_LENGTHS)
    group.start(run)
    for recorder in recorders:
        (prepared,) = recorder.received(PrepareTraffic)
        assert prepared.payload == AS_LENGTHS
        assert prepared.flows == {
            number: flow for number, flow in enumerate(flows) if recorder.rank in (flow.source, flow.destination)
        }
        (peer,) = (flow.destination for flow in flows if flow.source == recorder.rank)
        (started,) = recorder.received(Start)
        assert started.peers == {peer: {SINK: RemoteBuffer(peer, peer)}}
        (connected,) = recorder.received(Connect)
        assert len(connected.connections) == 2


def test_ranks_without_flows_are_not_asked(group, recorders):
    outcome = group.run(group.prepare_traffic([Flow(3, 7, 1000), Flow(3, 9, 1000)]))
    assert outcome.duration_ps == 10 + 9 - 5
    asked = [recorder.rank for recorder in recorders if recorder.commands]
    assert asked == [3, 7, 9]


def test_a_failure_ends_the_wait_for_all_others(group, recorders):
    recorders[3].run_ends = "running"
    recorders[7].run_ends = "failed"
    with pytest.raises(RunError, match=r"failed: h3: running .*; h7: failed"):
        group.run(group.prepare_traffic([Flow(3, 7, 1000)]), timeout_s=3600)
    assert len(recorders[3].received(Wait)) == 1
    assert recorders[3].received(Release)


def test_a_run_is_waited_for_until_its_time_is_up(group, recorders):
    recorders[3].run_ends = "running"
    with pytest.raises(RunError, match="did not finish within 60 s: h3"):
        group.run(group.prepare_traffic([Flow(3, 7, 1000)]), timeout_s=60)
    assert sum(wait.timeout_s for wait in recorders[3].received(Wait)) == 60
    assert len(recorders[7].received(Wait)) == 1


def test_arrays_are_refused_where_hosts_are_other_processes(group):
    spec = CollectiveSpec(RANKS, 8, DataType.INT32, Operation.SUM, (10**9,))
    arrays = [np.zeros(8, np.int32) for _ in range(RANKS)]
    with refused(ValueError, valid="a file", problem="an array is no data for an"):
        group.prepare_collective(spec, "ring", arrays)
