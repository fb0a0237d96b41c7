"""What the runner sends to each endpoint is in proportion to what that endpoint does."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from weft.traffic.control import EndpointGroup, RunError
from weft.traffic.host_config import HostConfig, NicConfig
from weft.traffic.messages import AS_LENGTHS
from weft.traffic.patterns import Flow, permutation

RANKS = 50


class Recorder:
    """An endpoint that accepts every command."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.messages: list[dict[str, Any]] = []
        self.run_state = "finished"
        self._answers: deque[dict[str, Any]] = deque()

    def send(self, command: dict[str, Any]) -> None:
        self.messages.append(command)
        answer: dict[str, Any] = {}
        if command.get("command") == "traffic":
            answer = {"memory": {"sink": {"virtual_address": self.rank, "rkey": self.rank}}}
        elif command.get("command") == "wait":
            answer = {"state": self.run_state, "started_ps": 5, "finished_ps": 10 + self.rank}
        self._answers.append(answer)

    def read_answer(self, timeout_s: float, number: int | None = None) -> dict[str, Any]:
        return self._answers.popleft()

    def commands(self, command: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if message.get("command") == command]


class StandingClock:
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
    hosts = [HostConfig(f"h{rank}", rank, 0, 1.0, (nic,)) for rank in range(RANKS)]
    return EndpointGroup(recorders, hosts, clock=StandingClock())


def test_each_rank_gets_its_own_flows_and_peers(group, recorders):
    flows = permutation(RANKS, 1000, seed=3)
    run = group.prepare_traffic(flows, payload=AS_LENGTHS)
    group.start(run)
    for recorder in recorders:
        (prepared,) = recorder.commands("traffic")
        assert prepared["payload"] == AS_LENGTHS
        assert {flow["number"] for flow in prepared["flows"]} == {
            number for number, flow in enumerate(flows) if recorder.rank in (flow.source, flow.destination)
        }
        (peer,) = (flow.destination for flow in flows if flow.source == recorder.rank)
        (started,) = recorder.commands("start")
        assert started["peers"] == {str(peer): {"sink": {"virtual_address": peer, "rkey": peer}}}
        (connected,) = recorder.commands("connect")
        assert len(connected["connections"]) == 2


def test_ranks_without_flows_are_not_asked(group, recorders):
    outcome = group.run(group.prepare_traffic([Flow(3, 7, 1000), Flow(3, 9, 1000)]))
    assert outcome.duration_ps == 10 + 9 - 5
    asked = [recorder.rank for recorder in recorders if recorder.messages]
    assert asked == [3, 7, 9]


def test_a_failure_ends_the_wait_for_all_others(group, recorders):
    recorders[3].run_state = "running"
    recorders[7].run_state = "failed"
    with pytest.raises(RunError, match=r"failed: h3: running .*; h7: failed"):
        group.run(group.prepare_traffic([Flow(3, 7, 1000)]), timeout_s=3600)
    assert len(recorders[3].commands("wait")) == 1
    assert recorders[3].commands("release")


def test_a_run_is_waited_for_until_its_time_is_up(group, recorders):
    recorders[3].run_state = "running"
    with pytest.raises(RunError, match="did not finish within 60 s: h3"):
        group.run(group.prepare_traffic([Flow(3, 7, 1000)]), timeout_s=60)
    assert sum(wait["timeout_s"] for wait in recorders[3].commands("wait")) == 60
    assert len(recorders[7].commands("wait")) == 1
