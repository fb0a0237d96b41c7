"""The runner's side of the endpoints: configure them, connect them, run collectives and traffic, collect figures."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar, Unpack

from weft.errors import InvalidValueError
from weft.traffic.answers import (
    ApplicationRecords,
    EndedFlows,
    ParameterRecords,
    Prepared,
    ServiceRecords,
    TcpRecords,
    TransportInForce,
)
from weft.traffic.collectives import collective_named
from weft.traffic.commands.aggregation import Join, Leave, Membership
from weft.traffic.commands.applications import AskApplicationRecords, PrepareApplications
from weft.traffic.commands.base import Command
from weft.traffic.commands.collectives import PrepareCollective, PrepareTrainingStep, Provided
from weft.traffic.commands.collector import Collect, SaveCollected
from weft.traffic.commands.counters import AskStats, AskTransport, Capture, ResetStats, SaveRecorded
from weft.traffic.commands.flows import PrepareFlows, PrepareTraffic
from weft.traffic.commands.parameters import (
    AskParameterRecords,
    ParameterPart,
    ParameterRequests,
    PrepareParameters,
)
from weft.traffic.commands.services import AskServiceRecords, PrepareService, ServicePart, ServiceRequests
from weft.traffic.commands.tcp import AskTcpRecords, PrepareTcpFlows, TcpEnd
from weft.traffic.connections import Connections, DirectWays, Ways
from weft.traffic.endpoint_calls import EndpointCalls, HostEndpoint
from weft.traffic.host_config import HostConfig
from weft.traffic.host_reductions import longest_repetition_ps
from weft.traffic.host_stats import HostStats
from weft.traffic.job_runs import JobArguments, JobRuns
from weft.traffic.jobs.fast_forward import FastForwardGroups
from weft.traffic.jobs.placing import PlacedRanks
from weft.traffic.jobs.times import RankTimes
from weft.traffic.lane_schedule import Schedule
from weft.traffic.mapped_data import RankBuffer
from weft.traffic.messages import AS_BYTES, Payload
from weft.traffic.moved_streams import StoppedStreams
from weft.traffic.parted_hosts import PartedHosts
from weft.traffic.patterns import Flow, flow_schedule, flows_by_rank
from weft.traffic.plane_detours import Losses, PlaneDetours
from weft.traffic.prepared_runs import PreparedRun, PreparedRuns, RunOutcome
from weft.traffic.programs.base import Program
from weft.traffic.run_clock import RunClock, WallClock
from weft.traffic.schedule_nodes import MAX_RUN_TAG
from weft.traffic.schedules import CollectiveSpec, peers_of
from weft.traffic.sent_bytes import SentBytes
from weft.traffic.traffic_kinds import TrafficKinds
from weft.traffic.training import TrainingStep, training_step_schedule

MOST_TCP_FLOWS = 4096
"""Most TCP flows of a run."""
_FIRST_TCP_PORT = 5001
_TCP_PORTS = 40_000
A = TypeVar("A")


class EndpointGroup:
    """All endpoints of a fabric, by rank. Commands go to all of them before any answer is read.

    Connections use `ip_version`; jobs bring theirs. `clock` is the hosts' wall clock unless given. Endpoints in this
    process (`shares_memory`) are given schedules as they are; others make the same ones.
    `ways` says how two ranks' NICs of a number reach each other, before they are connected. `losses` says which planes
    are lost (runs go on over others, see `PlaneDetours`) and which hosts (runs without them end with an error).
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
        ways: Ways | None = None,
        losses: Callable[[], Losses] | None = None,
        repeated: FastForwardGroups | None = None,
    ) -> None:
        if ip_version not in (4, 6):
            raise InvalidValueError(f"IP version {ip_version}", valid="4, 6")
        if [host.rank for host in hosts] != list(range(len(endpoints))):
            raise ValueError(f"hosts of ranks {[host.rank for host in hosts]} for {len(endpoints)} endpoints")
        self._clock = clock or (WallClock(hosts[0].epoch_ns, hosts[0].dilation) if hosts else WallClock(0, 1.0))
        self._hosts = list(hosts)
        self._calls = EndpointCalls(endpoints, answer_timeout_s)
        self._connections = Connections(self._calls, self._hosts, ip_version, ways or DirectWays())
        self._detours = PlaneDetours(losses, self._connections, self._calls)
        self._runs = PreparedRuns(
            self._calls,
            self._connections,
            self._detours,
            losses,
            self._clock,
            [host.name for host in self._hosts],
        )
        self._jobs = JobRuns(self._calls, self._connections, self._runs, shares_memory=shares_memory, repeated=repeated)
        self.sent: SentBytes | None = None
        """Counts what prepared runs are going to send; None: nobody asks."""
        self.repeated = repeated
        """Groups of ranks with operations that fast-forward may repeat; None if nothing is."""
        self._ip_version = ip_version
        self._shares_memory = shares_memory
        self._next_run = 1
        # Hosts that have known neighbours since forget them with their connections.
        self._ran_applications = False

    def follow_parted(self, parted: Callable[[], PartedHosts | None]) -> None:
        """Have runs that cannot end fail: `parted` says which hosts links keep apart for good, None for none.

        The method's object is not kept: otherwise hosts in an error's traceback would keep a fabric that was left.
        """
        method = weakref.WeakMethod(parted)

        def ask() -> PartedHosts | None:
            known = method()
            return known() if known is not None else None

        self._runs.parted = ask

    @property
    def traffic_kinds(self) -> TrafficKinds:
        """The numbers by which ports count what jobs send."""
        return self._jobs.kinds

    def longest_repetition_ps(self) -> int:
        """Return the longest time after which a worker of a reduction in the network repeats what has no result."""
        return max(map(longest_repetition_ps, self._hosts))

    @property
    def dilation(self) -> float:
        """How much slower than real time the hosts' clocks go."""
        return self._hosts[0].dilation

    def now_ps(self) -> int:
        """Return the emulated time that all endpoints agree on."""
        return self._clock.now_ps()

    def disconnect(self, first_number: int | None = None) -> None:
        """Have all ranks drop their connections; runs create them again, with no memory of what the old ones learned.

        Queue pairs are numbered from FIRST_QUEUE_PAIR + `first_number` on again, and the paths that follow from their
        numbers repeat. That is for a fabric in which nothing is under way to a queue pair of the same number; None: the
        numbers go on.
        """
        self._connections.disconnect(first_number, all_hosts=self._ran_applications)
        self._ran_applications = False
        self._detours.clear()

    def ask_hosts(self, commands: Mapping[int, Command[A]]) -> dict[int, A]:
        """Have hosts carry out a command each, by the hosts' indices, and return their answers."""
        return self._calls.of_hosts(commands)

    def host_of(self, rank: int) -> int:
        """Return the index of the host that has a rank."""
        return self._calls.host_of(rank)

    def exchange_ranks(self, rank: int, other: int) -> None:
        """Have the hosts of two ranks exchange them; all connections are made anew."""
        self.disconnect()
        self._calls.exchange_ranks(rank, other)

    def join(self, memberships: Mapping[int, Sequence[Membership]]) -> None:
        """Have ranks join aggregation jobs."""
        self._calls.all({rank: Join(tuple(jobs)) for rank, jobs in memberships.items()})

    def leave(self, keep: Iterable[int] = ()) -> None:
        """Have all hosts leave their aggregation jobs, but those to keep."""
        self._calls.each(Leave(tuple(range(len(self._hosts[0].nics))), tuple(keep)))

    def stop_streams(self, job_id: int, ranks: Sequence[int]) -> StoppedStreams:
        """Have ranks stop their streams of an aggregation job, which has other trees."""
        return StoppedStreams(self._calls, job_id, ranks)

    def follow_trees(self, follow: Callable[[], bool]) -> None:
        """Have `follow` called while runs are waited for, whenever something has failed; as with `follow_parted`.

        It returns whether reductions go on without trees, and `follow` is to be called all the more often.
        """
        method = weakref.WeakMethod(follow)

        def ask() -> bool:
            known = method()
            return known() if known is not None else False

        self._runs.follow_trees = ask

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
        aggregation_jobs: Sequence[tuple[int, ...]] = (),
    ) -> int:
        """Connect the ranks as the algorithm needs and have them map and register their buffers; returns the run.

        The ranks are 0 to spec.rank_count-1; `spec.run_tag` is ignored. Buffers are files, or arrays if the endpoints
        are in this process. Without `results` they are changed in place; without `buffers` zeros stand for data, which
        travel as `payload` says. `aggregation_jobs` are those that each rank has joined for it, one a tree, if the
        network reduces.
        """
        found = collective_named(collective)
        return self._prepare_over_data(
            partial(PrepareCollective, algorithm=algorithm, collective=found.reference),
            lambda spec, rank: found.schedule(algorithm, spec, rank),
            spec,
            buffers,
            results,
            telemetry,
            payload,
            aggregation_jobs,
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
        aggregation_jobs: Sequence[tuple[int, ...]] = (),
    ) -> int:
        """As `prepare_collective`, for a training step; the buffers hold its gradients."""
        return self._prepare_over_data(
            partial(PrepareTrainingStep, algorithm=algorithm, step=step),
            lambda spec, rank: training_step_schedule(step, algorithm, spec, rank),
            spec,
            buffers,
            results,
            telemetry,
            payload,
            aggregation_jobs,
        )

    def _prepare_over_data(
        self,
        command: Callable[..., Command[Prepared]],
        schedule_of: Callable[[CollectiveSpec, int], Schedule],
        spec: CollectiveSpec,
        buffers: Sequence[RankBuffer],
        results: Sequence[Path] | None,
        telemetry: bool,
        payload: Payload,
        aggregation_jobs: Sequence[tuple[int, ...]],
    ) -> int:
        """Connect the ranks as their schedules need, and give each its command, made with the fields of its data."""
        spec = self._next_tagged(spec)
        schedules = [schedule_of(spec, rank) for rank in range(spec.rank_count)]
        number = self._connect_for_run(schedules, telemetry)
        return self._prepare(
            number,
            schedules,
            [
                command(
                    run=number,
                    spec=spec,
                    buffer=_file(buffers, rank),
                    result=_file(results, rank),
                    payload=payload,
                    rank=self._rank_unless_own(rank),
                    aggregation_jobs=aggregation_jobs[rank] if aggregation_jobs else (),
                    provided=self._provided(schedule, buffers, rank),
                )
                for rank, schedule in enumerate(schedules)
            ],
        )

    def prepare_traffic(self, flows: Sequence[Flow], *, telemetry: bool = True, payload: Payload = AS_BYTES) -> int:
        """Connect the ranks as the flows need, and have those that take part make ready; returns the run.

        The flows are of zeros, which travel as `payload` says.
        """
        by_rank = flows_by_rank(flows)
        tells_receivers = self._hosts[0].transport.kind.tells_receivers
        schedules = [flow_schedule(own, rank, tells_receivers=tells_receivers) for rank, own in sorted(by_rank.items())]
        number = self._connect_for_run(schedules, telemetry)
        return self._prepare(
            number,
            schedules,
            [
                PrepareTraffic(number, by_rank[each.rank], payload, self._rank_unless_own(each.rank))
                for each in schedules
            ],
            flows,
        )

    def prepare_workload(self, flows: Sequence[Flow], *, telemetry: bool = True, payload: Payload = AS_BYTES) -> int:
        """Have the ranks make ready for many flows, each over a queue pair of its own; returns the run.

        The flows are of zeros, which travel as `payload` says. Raises ValueError for a flow of several queue pairs.
        """
        if divided := next((flow for flow in flows if flow.queue_pairs != 1), None):
            raise InvalidValueError(f"a workload's flow over {divided.queue_pairs} queue pairs", valid="1")
        number = self._new_run_number()
        sent, received = self._connections.of_workload(flows)
        # A spare, or a host that is lost, has none.
        ranks = [host.rank for host in self._hosts if sent[host.rank] or received[host.rank]]
        more_planes = {rank: self._connections.planes_of_peers(rank, sent[rank], received[rank]) for rank in ranks}
        answers = self._calls.all(
            {
                rank: PrepareFlows(
                    number, tuple(sent[rank]), tuple(received[rank]), telemetry, payload, more_planes[rank]
                )
                for rank in ranks
            }
        )
        if self.sent is not None:
            self.sent.add_flows(flows)
        memory = {rank: answer.memory for rank, answer in answers.items()}
        written_peers = {rank: sorted({flow.peer for flow in sent[rank]}) for rank in ranks}
        return self._runs.add(number, PreparedRun(ranks, memory, written_peers, [], flows))

    def prepare_service(self, parts: Mapping[int, ServicePart], requests: ServiceRequests) -> int:
        """Have ranks make requests to a service of switches ready, each with its part in a group; returns the run."""
        number = self._new_run_number()
        answers = self._calls.all({rank: PrepareService(number, part, requests) for rank, part in parts.items()})
        memory = {rank: answer.memory for rank, answer in answers.items()}
        return self._runs.add(number, PreparedRun(list(parts), memory, {rank: [] for rank in parts}, []))

    def prepare_parameters(self, parts: Mapping[int, ParameterPart], requests: ParameterRequests) -> int:
        """Have ranks make a parameter store and its clients ready, each with its part in a group; returns the run."""
        number = self._new_run_number()
        clients = len(parts) - 1
        answers = self._calls.all(
            {rank: PrepareParameters(number, part, requests, clients) for rank, part in parts.items()}
        )
        memory = {rank: answer.memory for rank, answer in answers.items()}
        return self._runs.add(number, PreparedRun(list(parts), memory, {rank: [] for rank in parts}, []))

    def prepare_applications(self, programs: Sequence[Program]) -> int:
        """Have hosts of the virtual clock make programs on their IP stacks ready; returns the run."""
        number = self._new_run_number()
        self._ran_applications = True
        of_ranks: dict[int, list[Program]] = {}
        for program in programs:
            of_ranks.setdefault(program.rank, []).append(program)
        answers = self._calls.all({rank: PrepareApplications(number, tuple(own)) for rank, own in of_ranks.items()})
        memory = {rank: answer.memory for rank, answer in answers.items()}
        return self._runs.add(number, PreparedRun(list(of_ranks), memory, {rank: [] for rank in of_ranks}, []))

    def application_records(self, run: int) -> list[ApplicationRecords]:
        """Return the findings of a run's programs, by rank in the run's order."""
        return list(self._calls.all(dict.fromkeys(self._runs.ranks(run), AskApplicationRecords(run))).values())

    def parameter_records(self, run: int) -> list[ParameterRecords]:
        """Return the requests of a run with a parameter store, in order of its ranks."""
        return list(self._calls.all(dict.fromkeys(self._runs.ranks(run), AskParameterRecords(run))).values())

    def prepare_tcp_flows(self, ends: Mapping[int, Sequence[TcpEnd]], sample_interval_ps: int = 0) -> int:
        """Have ranks make their ends of TCP flows ready; returns the run.

        The ends' ports are replaced by ports that no concurrent run uses.
        """
        number = self._new_run_number()

        def port_of(flow: int) -> int:
            return _FIRST_TCP_PORT + (number * MOST_TCP_FLOWS + flow) % _TCP_PORTS

        answers = self._calls.all(
            {
                rank: PrepareTcpFlows(
                    number, tuple(replace(end, port=port_of(end.flow)) for end in own), sample_interval_ps
                )
                for rank, own in ends.items()
            }
        )
        memory = {rank: answer.memory for rank, answer in answers.items()}
        return self._runs.add(number, PreparedRun(list(ends), memory, {rank: [] for rank in ends}, []))

    def tcp_records(self, run: int) -> list[TcpRecords]:
        """Return what became of the ends of a run of TCP flows, in order of its ranks."""
        return list(self._calls.all(dict.fromkeys(self._runs.ranks(run), AskTcpRecords(run))).values())

    def service_records(self, run: int) -> list[ServiceRecords]:
        """Return when the requests of a service's run began and were answered, in order of its ranks."""
        return list(self._calls.all(dict.fromkeys(self._runs.ranks(run), AskServiceRecords(run))).values())

    def prepare_job(
        self,
        placed: PlacedRanks,
        buffers: Sequence[RankBuffer] = (),
        results: Sequence[Path] = (),
        **given: Unpack[JobArguments],
    ) -> int:
        """Connect the ranks of a job and have them make ready; returns the run.

        `buffers` are the bytes of each rank's data of all collectives (`PlacedRanks.collectives`), changed in place
        unless there are `results`. Without them collectives are of zeros, as messages always are; `payload` says how
        zeros travel. `aggregation_jobs` are those that the ranks of `PlacedRanks.reductions` have joined, in order.
        Raises JobError for what cannot be.
        """
        return self._jobs.prepare(self._new_run_number(), placed, buffers, results, self.sent, **given)

    def operation_times(self, run: int) -> list[RankTimes]:
        """Return when the operations of a job's run started and were done, in order of the job's ranks."""
        return self._jobs.operation_times(run)

    def _provided(self, schedule: Schedule, buffers: Sequence[RankBuffer], rank: int) -> Provided | None:
        """Return what a rank is handed as it is; None where endpoints make and map their own."""
        data = buffers[rank] if buffers else None
        array = None if isinstance(data, Path) else data
        if self._shares_memory:
            return Provided(schedule, array)
        if array is not None:
            raise InvalidValueError("an array is no data for an endpoint in another process", valid="a file")
        return None

    def _rank_unless_own(self, rank: int) -> int | None:
        """Return a rank for the host that has it, None where it is the one of its configuration."""
        return None if self._calls.host_of(rank) == rank else rank

    def _new_run_number(self) -> int:
        number, self._next_run = self._next_run, self._next_run + 1
        return number

    def _next_tagged(self, spec: CollectiveSpec) -> CollectiveSpec:
        """Return the spec of the next run, as endpoints read it."""
        return replace(spec, run_tag=self._next_run % (MAX_RUN_TAG + 1))

    def _connect_for_run(self, schedules: Sequence[Schedule], telemetry: bool) -> int:
        """Connect the ranks as their schedules need; returns the number of the run."""
        self._connections.connect(schedules, telemetry)
        return self._new_run_number()

    def _prepare(
        self,
        number: int,
        schedules: Sequence[Schedule],
        commands: Sequence[Command[Prepared]],
        flows: Sequence[Flow] = (),
    ) -> int:
        if self.sent is not None:
            self.sent.add_schedules(schedules)
        ranks = [schedule.rank for schedule in schedules]
        answers = self._calls.all(dict(zip(ranks, commands, strict=True)))
        memory = {rank: answer.memory for rank, answer in answers.items()}
        written_peers = {schedule.rank: schedule.written_peers() for schedule in schedules}
        # Trees are numbered plane by plane, and then the next one of each.
        planes = len(self._hosts[0].nics)
        nics = tuple({tree % planes for schedule in schedules for tree in schedule.planes_aggregated()})
        return self._runs.add(number, PreparedRun(ranks, memory, written_peers, peers_of(schedules), flows, nics))

    def start(self, run: int, start_ps: int | None = None) -> int:
        """See `PreparedRuns.start`."""
        return self._runs.start(run, start_ps)

    def wait(self, run: int, timeout_s: float = 120.0) -> RunOutcome:
        """See `PreparedRuns.wait`."""
        return self._runs.wait(run, timeout_s)

    def steps(self, runs: Sequence[int]) -> tuple[int, int]:
        """Return the sums of `PreparedRuns.steps`."""
        done, count = zip(*map(self._runs.steps, runs), strict=True)
        return sum(done), sum(count)

    def hosts_of(self, run: int) -> list[int]:
        """Return the indices of the hosts of a run's ranks, in their order."""
        return [self._calls.host_of(rank) for rank in self._runs.ranks(run)]

    def release(self, run: int) -> None:
        """See `PreparedRuns.release`."""
        self._runs.release(run)

    def run(self, run: int, timeout_s: float = 120.0) -> RunOutcome:
        """Start a prepared run, wait for its end and release it in any case."""
        try:
            return self.run_together([(run, 0)], timeout_s)[0]
        finally:
            self.release(run)

    def run_together(self, runs: Sequence[tuple[int, int]], timeout_s: float = 120.0) -> list[RunOutcome]:
        """Start prepared runs, each so many picoseconds after a common time, and wait for all to end.

        Raises RunError if one fails, or all have not ended by the timeout.
        """
        self._runs.start_all(runs)
        deadline_s = self._clock.wait_time_s() + timeout_s
        return [
            self.wait(run, timeout_s if len(runs) == 1 else max(0.0, deadline_s - self._clock.wait_time_s()))
            for run, _ in runs
        ]

    def run_flows(self, run: int, timeout_s: float = 120.0) -> tuple[RunOutcome, EndedFlows]:
        """As `run`, of traffic or a workload; also returns its `flow_records`."""
        try:
            return self.run_together([(run, 0)], timeout_s)[0], self._runs.flow_records(run)
        finally:
            self.release(run)

    def flow_records(self, run: int) -> EndedFlows:
        """See `PreparedRuns.flow_records`."""
        return self._runs.flow_records(run)

    def stats(self) -> list[HostStats]:
        """Return every rank's counters, in order of rank."""
        return list(self._calls.each(AskStats()).values())

    def transport_in_force(self, telemetry: bool = True) -> TransportInForce:
        """Return with which settings rank 0 makes queue pairs; they are the same on all hosts of a fabric."""
        asked = AskTransport(6 if self._ip_version == 6 else 4, telemetry)
        return self._calls.all({0: asked})[0]

    def reset_stats(self) -> None:
        """Set all counters to zero."""
        self._calls.each(ResetStats())

    def capture(self, rank: int, plane: int, path: Path | None, without_shims: bool = False) -> None:
        """Record a host's plane into a pcap file, maybe without Weft's shims; None ends it."""
        self._calls.of_hosts({rank: Capture(plane, str(path) if path else None, without_shims)})

    def collect(self, rank: int, port: int) -> None:
        """Have a host keep what arrives at a UDP port from now on."""
        self._calls.of_hosts({rank: Collect(port)})

    def save_collected(self, rank: int, file: Path) -> int:
        """Have a host write what it has collected to a file (`weft.traffic.collector`); returns datagrams not kept."""
        return self._calls.of_hosts({rank: SaveCollected(str(file))})[rank].rows_lost

    def recorded(self, files: Sequence[Path]) -> list[int]:
        """Have every host write what it has recorded to a file (`Host.save_recorded`); returns rows lost by each."""
        answers = self._calls.of_hosts({host.rank: SaveRecorded(str(files[host.rank])) for host in self._hosts})
        return [answer.rows_lost for answer in answers.values()]


def _file(buffers: Sequence[RankBuffer] | None, rank: int) -> str | None:
    """Return the name of a rank's file, if there are files."""
    buffer = buffers[rank] if buffers else None
    return str(buffer) if isinstance(buffer, Path) else None
