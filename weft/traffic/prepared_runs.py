"""Runs that endpoints have prepared: started together, waited for, released."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from weft.traffic.answers import EndedFlows, Memory, RunState
from weft.traffic.commands.counters import AskStats
from weft.traffic.commands.flows import AskFlowRecords
from weft.traffic.commands.runs import Release, Start, Wait
from weft.traffic.connections import Connections
from weft.traffic.endpoint_calls import EndpointCalls
from weft.traffic.parted_hosts import Pair, PartedHosts
from weft.traffic.patterns import Flow
from weft.traffic.plane_detours import Losses, PlaneDetours
from weft.traffic.run_clock import RunClock
from weft.traffic.schedule_nodes import Channel

_WAITING_ROUND_S = 2.0
_REDUCING_ROUND_S = 0.25
"""While runs reduce in the network: what fails is looked for in each round."""
_WITHOUT_TREES_ROUND_S = 0.01
"""While reductions go on without trees: what their workers post is looked for in each round."""
# Less than that is what rounding has left.
_LEAST_WAIT_S = 1e-9
_NO_ANSWER = "retry_exceeded"
"""How the engine says that a packet has been sent again as often as its sender may, without an answer."""
_RECORDED = [each.name for each in fields(EndedFlows)]


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
class PreparedRun:
    """A run on its ranks: their memory, the peers to which each writes, its connections, and its flows if any."""

    ranks: list[int]
    memory: dict[int, Memory]
    written_peers: dict[int, list[int]]
    connections: list[tuple[int, Channel]]
    flows: Sequence[Flow] = ()
    aggregated: tuple[int, ...] = ()
    """Numbers of the NICs over which it reduces in the network."""
    state: str = "prepared"
    steps: tuple[int, int] = (0, 0)
    heard: tuple[int, float] = (-1, 0.0)
    """Packets that its hosts had received when hosts were last found parted, and since when it has been so many."""


class PreparedRuns:
    """Runs by their numbers. `names` are the ranks' names, for errors.

    `parted` says which hosts links keep apart for good, None for none: a run between such ends with an error.
    """

    def __init__(
        self,
        calls: EndpointCalls,
        connections: Connections,
        detours: PlaneDetours,
        losses: Callable[[], Losses] | None,
        clock: RunClock,
        names: Sequence[str],
    ) -> None:
        self._calls = calls
        self._connections = connections
        self._detours = detours
        self._losses = losses
        self._clock = clock
        self._names = names
        self._runs: dict[int, PreparedRun] = {}
        self.parted: Callable[[], PartedHosts | None] = lambda: None
        self.follow_trees: Callable[[], bool] = lambda: False

    def add(self, number: int, run: PreparedRun) -> int:
        """Enter a run; returns its number."""
        self._runs[number] = run
        return number

    def has(self, run: int) -> bool:
        """Return whether a run has been entered and not been released."""
        return run in self._runs

    def ranks(self, run: int) -> list[int]:
        """Return the ranks that take part in a run."""
        return self._runs[run].ranks

    def start(self, run: int, start_ps: int | None = None) -> int:
        """Start a prepared run on all its ranks at the same emulated time; returns that time.

        None: as soon as every endpoint can have been notified.
        """
        prepared = self._runs[run]
        if start_ps is None:
            # Processes learn of the start one after the other; all begin when the last one knows.
            start_ps = self._clock.now_ps() + self._clock.start_margin_ps(len(prepared.ranks))
        prepared.state = "started"
        self._calls.all(
            {
                rank: Start(run, start_ps, {peer: prepared.memory[peer] for peer in peers})
                for rank, peers in prepared.written_peers.items()
            }
        )
        return start_ps

    def start_all(self, runs: Sequence[tuple[int, int]]) -> None:
        """Start prepared runs, each so many picoseconds after a time by which every endpoint can have been notified."""
        ranks = sum(len(self._runs[run].ranks) for run, _ in runs)
        start_ps = self._clock.now_ps() + self._clock.start_margin_ps(ranks)
        for run, after_ps in runs:
            self.start(run, start_ps + after_ps)

    def wait(self, run: int, timeout_s: float = 120.0) -> RunOutcome:
        """Wait for the end of a run on all its ranks. Raises RunError if it fails or takes longer."""
        ranks = self._runs[run].ranks
        answers: dict[int, RunState] = {}
        unfinished, left_s = list(ranks), timeout_s
        deadline_s = self._clock.wait_time_s() + timeout_s
        is_over = False
        # An endpoint answers when the run has ended there. In rounds, because otherwise a rank whose peer has failed
        # would be awaited until its timeout; each round also shows how many steps are done, and which planes are lost.
        # A round that is interrupted, because planes are lost or there again, takes no more than its time.
        while unfinished and not is_over and not _any_ended_badly(answers):
            # Each round, because a plane may be lost, or come back, at any moment of a run.
            self._detours.follow(self._connections_in_use())
            self._require_hosts(run)
            round_s = _WAITING_ROUND_S
            if any(each.aggregated for each in self._runs.values()):
                self._require_workers(run)
                round_s = _WITHOUT_TREES_ROUND_S if self.follow_trees() else _REDUCING_ROUND_S
            answers |= self._calls.all(
                dict.fromkeys(unfinished, Wait(run, min(left_s, round_s))),
                round_s + self._calls.answer_timeout_s,
            )
            self._runs[run].steps = _steps_of(answers.values())
            unfinished = [rank for rank in unfinished if answers[rank].state != "finished"]
            self._require_joined(run, unfinished)
            is_over = left_s < _LEAST_WAIT_S
            left_s = max(0.0, deadline_s - self._clock.wait_time_s())
        troubles = [
            f"{self._name(rank)}: {answer.state} after {answer.nodes_done} of {answer.node_count} steps"
            + (f": {answer.reason}" if answer.reason else "")
            for rank, answer in answers.items()
            if answer.state != "finished"
        ]
        if troubles:
            how = "failed" if _any_ended_badly(answers) else f"did not finish within {timeout_s:g} s"
            parted = self._parted(run, unfinished)
            hints = [each for each in (parted, _advice(troubles) if not parted else "") if each]
            raise RunError(f"run {run} {how}: " + "; ".join([*troubles, *hints]))
        self._runs[run].state = "finished"
        times = [(answers[rank].started_ps or 0, answers[rank].finished_ps or 0) for rank in ranks]
        return RunOutcome(run, tuple(start for start, _ in times), tuple(end for _, end in times))

    def _connections_in_use(self) -> list[tuple[int, Channel]]:
        """Return the runs that have started and not been seen to finish."""
        return [each for run in self._runs.values() if run.state == "started" for each in run.connections]

    def _require_hosts(self, run: int) -> None:
        """Raise RunError if the host of one of a run's ranks is lost."""
        lost = self._losses().hosts if self._losses is not None else ()
        gone = [self._name(rank) for rank in self._runs[run].ranks if self._calls.host_of(rank) in lost]
        if gone:
            raise RunError(f"run {run} failed: {', '.join(gone)} lost")

    def _require_workers(self, run: int) -> None:
        """Raise RunError if a rank of a run that reduces in the network has no link, and no event brings one up."""
        lost = self._losses().without_links if self._losses is not None else frozenset()
        gone = [rank for rank in self._runs[run].ranks if self._calls.host_of(rank) in lost]
        parted = self.parted() if gone and self._runs[run].aggregated else None
        if parted is not None:
            raise RunError(f"run {run} failed: {parted.cut_off([self._name(rank) for rank in gone])}")

    def _require_joined(self, run: int, ranks: Sequence[int]) -> None:
        """Raise RunError if links keep ranks apart for good, and none of these has received a packet for a round."""
        problem = self._parted(run, ranks)
        if not problem:
            return
        stats = self._calls.all(dict.fromkeys(ranks, AskStats()))
        packets = sum(plane["nic"]["received_packets"] for each in stats.values() for plane in each["planes"])
        prepared, now_s = self._runs[run], self._clock.wait_time_s()
        if packets != prepared.heard[0]:
            prepared.heard = packets, now_s
        elif now_s - prepared.heard[1] > _WAITING_ROUND_S / 2:
            raise RunError(f"run {run} failed: {problem}")

    def _parted(self, run: int, ranks: Sequence[int]) -> str:
        """Return in words which of a run's ranks that have not ended links keep apart for good; empty for none."""
        parted = self.parted() if ranks else None
        apart = parted.among(self._pairs(run, set(ranks))) if parted is not None else []
        return parted.problem(apart, self._names) if parted is not None and apart else ""

    def _pairs(self, run: int, ranks: set[int]) -> Iterator[Pair]:
        """Yield what a run's ranks still exchange: NICs and pairs of hosts.

        Of flows those that have not ended; otherwise all connections but those in lost planes, which others stand for.
        """
        prepared, host_of = self._runs[run], self._calls.host_of
        ended = set(self.flow_records(run).flow) if prepared.flows else set()
        for number, flow in enumerate(prepared.flows):
            if number not in ended:
                yield flow.plane, host_of(flow.source), host_of(flow.destination)
        losses = self._losses() if self._losses is not None else Losses()
        detoured = losses.nics if losses.nics_in_use else ()
        for nic in prepared.aggregated:
            if nic not in detoured:
                yield from ((nic, host_of(prepared.ranks[0]), host_of(rank)) for rank in ranks)
        for rank, channel in prepared.connections if not prepared.flows else ():
            if not channel.is_scale_up and channel.plane not in detoured and {rank, channel.peer} <= ranks:
                relay = self._connections.relay_of((rank, channel))
                if relay != host_of(channel.peer):
                    yield channel.plane, host_of(rank) if relay is None else relay, host_of(channel.peer)

    def _name(self, rank: int) -> str:
        return self._names[self._calls.host_of(rank)]

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
            state = self._calls.run_state(rank, run)
            if state is None:
                return prepared.steps
            states.append(state)
        return _steps_of(states)

    def flow_records(self, run: int) -> EndedFlows:
        """Return columns of a run's flows that have ended.

        Rows are in order of `flow`, the place in the list that was prepared. The run is one of `prepare_traffic` or
        `prepare_workload`.
        """
        answers = self._calls.all(dict.fromkeys(self._runs[run].ranks, AskFlowRecords(run)))
        rows = sorted(
            row
            for answer in answers.values()
            for row in zip(*(getattr(answer.records, name) for name in _RECORDED), strict=True)
        )
        return EndedFlows(*zip(*rows, strict=True)) if rows else EndedFlows()

    def release(self, run: int) -> None:
        """Have the ranks release a run and its buffers, cancelling it if it has not ended.

        Unless the run has finished, its connections are dropped, and created again for the next run that needs them.
        Aggregation jobs must then be joined again, in another epoch: the ranks' message streams may have
        diverged.
        """
        released = self._runs.pop(run)
        self._detours.release(self._connections_in_use())
        if released.state == "started":
            self._connections.forget(released.connections)
            self._detours.clear()
        self._calls.all(dict.fromkeys(released.ranks, Release(run)))


def _steps_of(states: Iterable[RunState]) -> tuple[int, int]:
    done = count = 0
    for state in states:
        done += state.nodes_done
        count += state.node_count
    return done, count


def _any_ended_badly(states: Mapping[int, RunState]) -> bool:
    return any(state.ended_badly for state in states.values())


def _advice(troubles: Iterable[str]) -> str:
    """Return advice for packets that were never answered; empty for other troubles."""
    if not any(_NO_ANSWER in each for each in troubles):
        return ""
    return (
        f"{_NO_ANSWER}: what was sent again and again was never answered. If queues overflow, set "
        "transport.congestion_control (dcqcn, hpcc, …), a larger fabric.queue_capacity or a longer "
        "transport.retransmission_timeout; if a switch's program or entries drop it, "
        "`weft trace SCENARIO --switch SWITCH --when drop` shows where"
    )
