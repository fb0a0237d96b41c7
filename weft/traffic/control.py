"""The runner's side of the endpoints: configure them, connect them, run collectives and traffic, collect figures."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy.typing as npt

from weft.traffic.answers import EndedFlows, Memory, Prepared, RunState, TransportInForce
from weft.traffic.collectives import collective_named
from weft.traffic.commands import (
    AskFlowRecords,
    AskStats,
    AskTransport,
    Capture,
    Command,
    Connect,
    Connection,
    Disconnect,
    Join,
    Leave,
    Membership,
    PrepareCollective,
    PrepareFlows,
    PrepareTraffic,
    PrepareTrainingStep,
    Provided,
    Release,
    ResetStats,
    SaveRecorded,
    Start,
    Wait,
    WorkloadFlow,
)
from weft.traffic.host_config import HostConfig
from weft.traffic.host_stats import HostStats
from weft.traffic.lane_schedule import Schedule
from weft.traffic.messages import AS_BYTES, Payload
from weft.traffic.patterns import Flow, flow_schedule, flows_by_rank
from weft.traffic.schedule_nodes import MAX_RUN_TAG, Channel
from weft.traffic.schedules import CollectiveSpec, peers_of
from weft.traffic.training import TrainingStep, training_step_schedule

A = TypeVar("A")
FIRST_QUEUE_PAIR = 0x100
_PSN_BITS = 24
RankBuffer = Path | npt.NDArray[Any]
"""A rank's data: a file that its endpoint maps, or an array of this process."""
_WAITING_ROUND_S = 2.0
_RECORDED = [each.name for each in fields(EndedFlows)]


class HostEndpoint(Protocol):
    """A host that carries out commands: a process in its own namespace, or an object of this process."""

    def send(self, command: Command[Any], number: int) -> None:
        """Send a command; `number` is that of its answer."""

    def read_answer(self, command: Command[A], number: int, timeout_s: float) -> A:
        """Return the answer to a command that was sent, dropping those before it.

        Raises if the endpoint is gone or late, or has refused the command.
        """

    def run_state(self, run: int) -> RunState | None:
        """Return how far a run is, from any thread; None where it takes a command to learn that."""


class RunClock(Protocol):
    """The emulated time of all endpoints, as the runner sees it."""

    def now_ps(self) -> int:
        """Return the time."""

    def start_margin_ps(self, ranks: int) -> int:
        """Return how far ahead a common start must lie for so many endpoints to be notified in time."""


@dataclass(frozen=True)
class WallClock:
    """Time that passes while commands are on their way."""

    epoch_ns: int
    dilation: float

    def now_ps(self) -> int:
        """See RunClock."""
        return self._emulated_ps(time.monotonic_ns() - self.epoch_ns)

    def start_margin_ps(self, ranks: int) -> int:
        """See RunClock."""
        return self._emulated_ps(10_000_000 + 1_000_000 * ranks)

    def _emulated_ps(self, real_ns: int) -> int:
        return int(real_ns * 1000 / self.dilation)


class RunError(RuntimeError):
    """A run failed or did not end in time; the message says on which hosts, and why."""


@dataclass(frozen=True)
class RunOutcome:
    """When each rank that took part started and ended a run, in emulated time, in order of rank."""

    run: int
    started_ps: tuple[int, ...]
    finished_ps: tuple[int, ...]

    @property
    def duration_ps(self) -> int:
        """From the first rank's start to the last one's end."""
        return max(self.finished_ps, default=0) - min(self.started_ps, default=0)


@dataclass
class _PreparedRun:
    ranks: list[int]
    memory: dict[int, Memory]
    written_peers: dict[int, list[int]]
    connections: list[tuple[int, Channel]]
    state: str = "prepared"
    steps: tuple[int, int] = (0, 0)


class EndpointGroup:
    """All endpoints of a fabric, by rank. Commands go to all of them before any answer is read.

    `ip_version` is that of the connections; jobs bring theirs. `clock` is the hosts' wall clock unless given. Endpoints
    that are in this process (`shares_memory`) are given schedules as they are; others make the same ones.
    `require_path` is called with two ranks and the number of their NICs before they are connected, and raises an error
    if nothing joins them.
    Errors of `HostEndpoint.read_answer` pass through; RunError is about runs.
    """

    def __init__(
        self,
        endpoints: Sequence[HostEndpoint],
        hosts: Sequence[HostConfig],
        answer_timeout_s: float = 30.0,
        ip_version: int = 4,
        clock: RunClock | None = None,
        *,
        shares_memory: bool = False,
        require_path: Callable[[int, int, int], None] = lambda source, destination, nic: None,
    ) -> None:
        if ip_version not in (4, 6):
            raise ValueError(f"IP version {ip_version} (valid: 4, 6)")
        if [host.rank for host in hosts] != list(range(len(endpoints))):
            raise ValueError(f"hosts of ranks {[host.rank for host in hosts]} for {len(endpoints)} endpoints")
        self._endpoints = list(endpoints)
        self._hosts = list(hosts)
        self._answer_timeout_s = answer_timeout_s
        self._ip_version = ip_version
        self._clock = clock or (
            WallClock(hosts[0].epoch_ns, hosts[0].dilation) if hosts else WallClock(0, 1.0)
        )
        self._connected: dict[tuple[int, Channel], bool] = {}
        self._next_queue_pair = [count(FIRST_QUEUE_PAIR) for _ in hosts]
        self._psn = random.Random(hosts[0].seed if hosts else 0)
        self._shares_memory = shares_memory
        self._require_path = require_path
        self._next_run = 1
        self._command_numbers = count(1)
        self._runs: dict[int, _PreparedRun] = {}

    def now_ps(self) -> int:
        """Return the emulated time that all endpoints agree on."""
        return self._clock.now_ps()

    def disconnect(self, first_number: int | None = None) -> None:
        """Have all ranks drop their connections; runs create them again, with no memory of what the old ones learned.

        Queue pairs are numbered from FIRST_QUEUE_PAIR + `first_number` on again, and the paths that follow from their
        numbers repeat. That is for a fabric in which nothing is under way to a queue pair of the same number; None: the
        numbers go on.
        """
        if self._connected:
            self._call_each(Disconnect())
        self._connected.clear()
        if first_number is not None:
            self._next_queue_pair = [count(FIRST_QUEUE_PAIR + first_number) for _ in self._hosts]

    def join(self, memberships: Mapping[int, Sequence[Membership]]) -> None:
        """Have ranks join aggregation jobs."""
        self._call_all({rank: Join(tuple(jobs)) for rank, jobs in memberships.items()})

    def leave(self, planes: Sequence[int]) -> None:
        """Have all ranks leave the jobs of these planes."""
        self._call_each(Leave(tuple(planes)))

    def prepare_collective(
        self,
        spec: CollectiveSpec,
        algorithm: str,
        buffers: Sequence[RankBuffer],
        results: Sequence[Path] | None = None,
        *,
        collective: str = "allreduce",
        telemetry: bool = True,
        payload: Payload = AS_BYTES,
    ) -> int:
        """Connect the ranks as the algorithm needs and have them map and register their buffers; returns the run.

        The ranks are 0 to spec.rank_count-1; `spec.run_tag` is ignored. Buffers are files, or arrays if the endpoints
        are in this process. Without `results` they are changed in place; without `buffers` zeros stand for data, which
        travel as `payload` says.
        """
        found = collective_named(collective)
        spec = self._next_tagged(spec)
        schedules = [found.schedule(algorithm, spec, rank) for rank in range(spec.rank_count)]
        number = self._connect_for_run(schedules, telemetry)
        return self._prepare(
            number,
            schedules,
            [
                PrepareCollective(
                    run=number,
                    spec=spec,
                    algorithm=algorithm,
                    buffer=_file(buffers, rank),
                    result=_file(results, rank),
                    payload=payload,
                    provided=self._provided(schedule, buffers, rank),
                    collective=found.reference,
                )
                for rank, schedule in enumerate(schedules)
            ],
        )

    def prepare_training_step(
        self,
        step: TrainingStep,
        algorithm: str,
        spec: CollectiveSpec,
        buffers: Sequence[RankBuffer],
        results: Sequence[Path] | None = None,
        *,
        telemetry: bool = True,
        payload: Payload = AS_BYTES,
    ) -> int:
        """As `prepare_collective`, for a training step whose gradients the buffers are."""
        spec = self._next_tagged(spec)
        schedules = [training_step_schedule(step, algorithm, spec, rank) for rank in range(spec.rank_count)]
        number = self._connect_for_run(schedules, telemetry)
        return self._prepare(
            number,
            schedules,
            [
                PrepareTrainingStep(
                    step=step,
                    run=number,
                    spec=spec,
                    algorithm=algorithm,
                    buffer=_file(buffers, rank),
                    result=_file(results, rank),
                    payload=payload,
                    provided=self._provided(schedule, buffers, rank),
                )
                for rank, schedule in enumerate(schedules)
            ],
        )

    def prepare_traffic(
        self, flows: Sequence[Flow], *, telemetry: bool = True, payload: Payload = AS_BYTES
    ) -> int:
        """Connect the ranks as the flows need, and have those that take part make ready; returns the run.

        The flows are of zeros, which travel as `payload` says.
        """
        by_rank = flows_by_rank(flows)
        schedules = [flow_schedule(own, rank) for rank, own in sorted(by_rank.items())]
        number = self._connect_for_run(schedules, telemetry)
        return self._prepare(
            number,
            schedules,
            [PrepareTraffic(number, by_rank[each.rank], payload) for each in schedules],
        )

    def prepare_workload(
        self, flows: Sequence[Flow], *, telemetry: bool = True, payload: Payload = AS_BYTES
    ) -> int:
        """Have the ranks make ready for many flows, each over a queue pair of its own; returns the run.

        The flows are of zeros, which travel as `payload` says. Raises ValueError for a flow of several queue pairs.
        """
        if divided := next((flow for flow in flows if flow.queue_pairs != 1), None):
            raise ValueError(f"a workload's flow over {divided.queue_pairs} queue pairs (valid: 1)")
        number = self._new_run_number()
        sent: list[list[WorkloadFlow]] = [[] for _ in self._hosts]
        received: list[list[WorkloadFlow]] = [[] for _ in self._hosts]
        for index, flow in enumerate(flows):
            self._require_path(flow.source, flow.destination, flow.plane)
            ends = [(flow.source, flow.destination), (flow.destination, flow.source)]
            pairs = [next(self._next_queue_pair[own]) for own, _ in ends]
            for side, ((own, peer), items) in enumerate(zip(ends, (sent, received), strict=True)):
                items[own].append(
                    WorkloadFlow(
                        index,
                        flow.start_ps,
                        flow.plane,
                        flow.size_bytes,
                        peer,
                        self._address(Channel(flow.plane, peer)),
                        pairs[side],
                        pairs[1 - side],
                    )
                )
        ranks = [host.rank for host in self._hosts]
        answers = self._call_all(
            {
                rank: PrepareFlows(number, tuple(sent[rank]), tuple(received[rank]), telemetry, payload)
                for rank in ranks
            }
        )
        memory = {rank: answer.memory for rank, answer in answers.items()}
        written_peers = {rank: sorted({flow.peer for flow in sent[rank]}) for rank in ranks}
        self._runs[number] = _PreparedRun(ranks, memory, written_peers, [])
        return number

    def flow_records(self, run: int) -> EndedFlows:
        """Return columns of a run's flows that have ended.

        Rows are in order of `flow`, the place in the list that was prepared. The run is one of `prepare_traffic` or
        `prepare_workload`.
        """
        answers = self._call_all(dict.fromkeys(self._runs[run].ranks, AskFlowRecords(run)))
        rows = sorted(
            row
            for answer in answers.values()
            for row in zip(*(getattr(answer.records, name) for name in _RECORDED), strict=True)
        )
        return EndedFlows(*zip(*rows, strict=True)) if rows else EndedFlows()

    def _provided(self, schedule: Schedule, buffers: Sequence[RankBuffer], rank: int) -> Provided | None:
        """Return what a rank is handed as it is; None where endpoints make and map their own."""
        data = buffers[rank] if buffers else None
        array = None if isinstance(data, Path) else data
        if self._shares_memory:
            return Provided(schedule, array)
        if array is not None:
            raise ValueError("an array is no data for an endpoint in another process (valid: a file)")
        return None

    def _new_run_number(self) -> int:
        number, self._next_run = self._next_run, self._next_run + 1
        return number

    def _next_tagged(self, spec: CollectiveSpec) -> CollectiveSpec:
        """Return the spec of the next run, as endpoints read it."""
        return replace(spec, run_tag=self._next_run % (MAX_RUN_TAG + 1))

    def _connect_for_run(self, schedules: Sequence[Schedule], telemetry: bool) -> int:
        """Connect the ranks as their schedules need; returns the number of the run."""
        self._connect(schedules, telemetry)
        return self._new_run_number()

    def _prepare(
        self, number: int, schedules: Sequence[Schedule], commands: Sequence[Command[Prepared]]
    ) -> int:
        ranks = [schedule.rank for schedule in schedules]
        answers = self._call_all(dict(zip(ranks, commands, strict=True)))
        memory = {rank: answer.memory for rank, answer in answers.items()}
        written_peers = {schedule.rank: schedule.written_peers() for schedule in schedules}
        self._runs[number] = _PreparedRun(ranks, memory, written_peers, peers_of(schedules))
        return number

    def _connect(self, schedules: Sequence[Schedule], telemetry: bool) -> None:
        """Make the connections that the schedules name and that are not there yet, both ends at once."""
        before = dict(self._connected)
        ends: dict[int, list[Connection]] = {}
        try:
            for rank, channel in peers_of(schedules):
                if self._connected.get((rank, channel)) != telemetry:
                    self._require_path(rank, channel.peer, channel.plane)
                    self._connect_ends(rank, channel, telemetry, ends)
            self._call_all({rank: Connect(tuple(connections)) for rank, connections in ends.items()})
        except BaseException:
            # Refused or interrupted: connections that may be missing are created again.
            self._connected = before
            raise

    def _connect_ends(
        self, rank: int, channel: Channel, telemetry: bool, connections: dict[int, list[Connection]]
    ) -> None:
        back = Channel(channel.plane, rank, channel.label)
        ends = [(rank, channel), (channel.peer, back)]
        queue_pairs = [next(self._next_queue_pair[own]) for own, _ in ends]
        psns = [self._psn.getrandbits(_PSN_BITS) for _ in ends]
        for side, (own, towards) in enumerate(ends):
            connections.setdefault(own, []).append(
                Connection(
                    plane=towards.plane,
                    peer=towards.peer,
                    queue_pair=queue_pairs[side],
                    remote_queue_pair=queue_pairs[1 - side],
                    destination_ip=self._address(towards),
                    label=towards.label,
                    initial_psn=psns[side],
                    remote_initial_psn=psns[1 - side],
                    telemetry=telemetry,
                )
            )
            self._connected[own, towards] = telemetry

    def _address(self, channel: Channel) -> str:
        host = self._hosts[channel.peer]
        nic = host.nics[channel.plane]
        address = nic.ipv6 if self._ip_version == 6 else nic.ipv4
        if address is None:
            raise ValueError(f"{host.name} has no IPv6 address on plane {channel.plane}")
        return address

    def start(self, run: int, start_ps: int | None = None) -> int:
        """Start a prepared run on all its ranks at the same emulated time; returns that time.

        None: as soon as every endpoint can have been notified.
        """
        prepared = self._runs[run]
        if start_ps is None:
            start_ps = self._clock.now_ps() + self._clock.start_margin_ps(len(prepared.ranks))
        prepared.state = "started"
        self._call_all(
            {
                rank: Start(run, start_ps, {peer: prepared.memory[peer] for peer in peers})
                for rank, peers in prepared.written_peers.items()
            }
        )
        return start_ps

    def wait(self, run: int, timeout_s: float = 120.0) -> RunOutcome:
        """Wait for the end of a run on all its ranks. Raises RunError if it fails or takes longer."""
        ranks = self._runs[run].ranks
        answers: dict[int, RunState] = {}
        unfinished, left_s = list(ranks), timeout_s
        # An endpoint answers when the run has ended there. In rounds, because otherwise a rank whose peer has failed
        # would be awaited until its timeout; each round also shows how many steps are done.
        while unfinished and left_s >= 0.0 and not _any_ended_badly(answers):
            answers |= self._call_all(
                dict.fromkeys(unfinished, Wait(run, min(left_s, _WAITING_ROUND_S))),
                _WAITING_ROUND_S + self._answer_timeout_s,
            )
            self._runs[run].steps = _steps_of(answers.values())
            unfinished = [rank for rank in unfinished if answers[rank].state != "finished"]
            left_s -= _WAITING_ROUND_S
        troubles = [
            f"{self._hosts[rank].name}: {answer.state} after {answer.nodes_done} of {answer.node_count} steps"
            + (f": {answer.reason}" if answer.reason else "")
            for rank, answer in answers.items()
            if answer.state != "finished"
        ]
        if troubles:
            how = "failed" if _any_ended_badly(answers) else f"did not finish within {timeout_s:g} s"
            raise RunError(f"run {run} {how}: " + "; ".join(troubles))
        self._runs[run].state = "finished"
        times = [(answers[rank].started_ps or 0, answers[rank].finished_ps or 0) for rank in ranks]
        return RunOutcome(run, tuple(start for start, _ in times), tuple(end for _, end in times))

    def steps(self, run: int) -> tuple[int, int]:
        """Return how many of a run's steps (or ends of flows) are done, and how many there are, of all ranks.

        An endpoint that can say so at once is asked; of others it is what they answered to the last wait. To be called
        from any thread while `wait` waits.
        """
        prepared = self._runs.get(run)
        if prepared is None:
            return 0, 0
        states = []
        for rank in prepared.ranks:
            state = self._endpoints[rank].run_state(run)
            if state is None:
                return prepared.steps
            states.append(state)
        return _steps_of(states)

    def release(self, run: int) -> None:
        """Have the ranks release a run and its buffers, cancelling it if it has not ended.

        Unless the run has finished, its connections are dropped, and created again for the next run that needs them.
        Aggregation jobs must then be joined again, in another epoch: the ranks' message streams may have
        diverged.
        """
        released = self._runs.pop(run)
        if released.state == "started":
            for connection in released.connections:
                self._connected.pop(connection, None)
        self._call_all(dict.fromkeys(released.ranks, Release(run)))

    def run(self, run: int, timeout_s: float = 120.0) -> RunOutcome:
        """Start a prepared run, wait for its end and release it in any case."""
        try:
            self.start(run)
            return self.wait(run, timeout_s)
        finally:
            self.release(run)

    def run_flows(self, run: int, timeout_s: float = 120.0) -> tuple[RunOutcome, EndedFlows]:
        """As `run`, of traffic or a workload; also returns its `flow_records`."""
        try:
            self.start(run)
            return self.wait(run, timeout_s), self.flow_records(run)
        finally:
            self.release(run)

    def stats(self) -> list[HostStats]:
        """Return every rank's counters, in order of rank."""
        return list(self._call_each(AskStats()).values())

    def transport_in_force(self, telemetry: bool = True) -> TransportInForce:
        """Return with which settings rank 0 makes queue pairs; they are the same on all hosts of a fabric."""
        asked = AskTransport(6 if self._ip_version == 6 else 4, telemetry)
        return self._call_all({0: asked})[0]

    def reset_stats(self) -> None:
        """Set all counters to zero."""
        self._call_each(ResetStats())

    def capture(self, rank: int, plane: int, path: Path | None) -> None:
        """Record a host's plane into a pcap file; None ends it."""
        self._call_all({rank: Capture(plane, str(path) if path else None)})

    def recorded(self, files: Sequence[Path]) -> list[int]:
        """Have every host write what it has recorded to a file (`Host.save_recorded`); returns rows lost by each."""
        answers = self._call_all({host.rank: SaveRecorded(str(files[host.rank])) for host in self._hosts})
        return [answer.rows_lost for answer in answers.values()]

    def _call_each(self, command: Command[A]) -> dict[int, A]:
        return self._call_all({host.rank: command for host in self._hosts})

    def _call_all(self, commands: Mapping[int, Command[A]], timeout_s: float | None = None) -> dict[int, A]:
        """Send to all ranks named, then read all answers, so that one refusal leaves no answer unread.

        Answers that an interrupted call has left unread are dropped by the next call.
        """
        number = next(self._command_numbers)
        for rank, command in commands.items():
            self._endpoints[rank].send(command, number)
        answers: dict[int, A] = {}
        first_error: Exception | None = None
        for rank, command in commands.items():
            try:
                answers[rank] = self._endpoints[rank].read_answer(
                    command, number, timeout_s or self._answer_timeout_s
                )
            except Exception as error:  # kept, and raised when all answers are read
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        return answers


def _steps_of(states: Iterable[RunState]) -> tuple[int, int]:
    done = count = 0
    for state in states:
        done += state.nodes_done
        count += state.node_count
    return done, count


def _any_ended_badly(states: Mapping[int, RunState]) -> bool:
    return any(state.ended_badly for state in states.values())


def _file(buffers: Sequence[RankBuffer] | None, rank: int) -> str | None:
    """Return the name of a rank's file, if there are files."""
    buffer = buffers[rank] if buffers else None
    return str(buffer) if isinstance(buffer, Path) else None
