"""Runs of an endpoint: from the command that describes one to its buffers, its schedule and its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.engine import _core
from weft.errors import InvalidValueError
from weft.traffic.answers import (
    ApplicationRecords,
    Done,
    EndedFlows,
    FlowRecords,
    OperationTimes,
    ParameterRecords,
    Prepared,
    RunState,
    ServiceRecords,
    TcpRecords,
)
from weft.traffic.collectives import collective_named
from weft.traffic.commands.applications import AskApplicationRecords, PrepareApplications
from weft.traffic.commands.collectives import PrepareCollective, PrepareTrainingStep
from weft.traffic.commands.flows import PrepareFlows, PrepareTraffic
from weft.traffic.commands.jobs import AskOperationTimes, PrepareJob
from weft.traffic.commands.parameters import AskParameterRecords, PrepareParameters
from weft.traffic.commands.runs import Start
from weft.traffic.commands.services import AskServiceRecords, PrepareService
from weft.traffic.commands.tcp import AskTcpRecords, PrepareTcpFlows
from weft.traffic.host import Host
from weft.traffic.host_applications import HostApplications
from weft.traffic.host_flows import HostFlows
from weft.traffic.host_jobs import HostJob
from weft.traffic.host_parameters import HostParameters
from weft.traffic.host_services import HostService
from weft.traffic.host_tcp import HostTcpFlows
from weft.traffic.lane_schedule import Schedule
from weft.traffic.mapped_data import map_data
from weft.traffic.messages import Payload
from weft.traffic.native_schedule import RemoteBuffer, build_native_schedule
from weft.traffic.patterns import Flow, flow_schedule
from weft.traffic.schedule_nodes import DATA, MAX_RUN_TAG, SINK, ZEROS, Write
from weft.traffic.training import training_step_schedule


@dataclass
class _Run:
    schedule: Schedule
    buffers: dict[str, npt.NDArray[Any]]
    payload: Payload
    memory: dict[str, _core.MemoryRegion] = field(default_factory=dict)
    flows_by_node: dict[int, int] | None = None
    copies_ps: dict[int, int] = field(default_factory=dict)
    aggregation_jobs: tuple[int, ...] = ()
    native_run: int | None = None


class HostRuns:
    """The runs of a host by their numbers, which the runner chooses alike on all hosts."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._runs: dict[int, _Run] = {}
        self._flows: dict[int, HostFlows] = {}
        self._jobs: dict[int, HostJob] = {}
        self._services: dict[int, HostService] = {}
        self._parameters: dict[int, HostParameters] = {}
        self._tcp: dict[int, HostTcpFlows] = {}
        self._applications: dict[int, HostApplications] = {}

    def prepare_collective(self, command: PrepareCollective) -> Prepared:
        """Map the buffers of a collective and register them. Returns where peers may write to."""
        if command.provided is not None:
            schedule = command.provided.schedule
        else:
            collective = collective_named(command.collective)
            schedule = collective.schedule(command.algorithm, command.spec, self._rank(command.rank))
        return self._prepare_with_data(command, schedule)

    def prepare_training_step(self, command: PrepareTrainingStep) -> Prepared:
        """As `prepare_collective`, for a step."""
        if command.provided is not None:
            schedule = command.provided.schedule
        else:
            rank = self._rank(command.rank)
            schedule = training_step_schedule(command.step, command.algorithm, command.spec, rank)
        return self._prepare_with_data(command, schedule)

    def _prepare_with_data(self, command: PrepareCollective | PrepareTrainingStep, schedule: Schedule) -> Prepared:
        buffers = {}
        if command.provided is not None and command.provided.data is not None:
            buffers[DATA] = command.provided.data
        elif command.buffer is not None:
            spec = command.spec
            buffers[DATA] = map_data(spec.dtype.storage, spec.element_count, Path(command.buffer), command.result)
        else:
            schedule = schedule.of_lengths()
        prepared = self._prepare(command.run, command.payload, schedule, buffers)
        self._runs[command.run].aggregation_jobs = command.aggregation_jobs
        return prepared

    def prepare_traffic(self, command: PrepareTraffic) -> Prepared:
        """Prepare to send and receive flows."""
        rank = self._rank(command.rank)
        tells_receivers = self._host.config.transport.kind.tells_receivers
        run_tag = command.run % (MAX_RUN_TAG + 1)
        schedule = flow_schedule(command.flows, rank, run_tag, tells_receivers=tells_receivers)
        prepared = self._prepare(command.run, command.payload, schedule, {})
        nodes = [number for number, node in enumerate(schedule.nodes) if isinstance(node, Write)]
        sent = [
            number for number, flow in command.flows.items() if flow.source == rank for _ in range(flow.queue_pairs)
        ]
        run = self._runs[command.run]
        run.flows_by_node = dict(zip(nodes, sent, strict=True))
        run.copies_ps = self._copies_ps(run.flows_by_node, command.flows)
        return prepared

    def _copies_ps(self, flows_by_node: Mapping[int, int], flows: Mapping[int, Flow]) -> dict[int, int]:
        """Return how much later writes are acknowledged because they are copied to host memory first, by node."""
        own = self._host.inside.own_copies if self._host.inside is not None else {}
        found = {}
        for node, number in flows_by_node.items():
            flow = flows[number]
            if flow.plane in own:
                found[node] = own[flow.plane].alone_ps(-(-flow.size_bytes // flow.queue_pairs))
        return found

    def prepare_flows(self, command: PrepareFlows) -> Prepared:
        """Prepare a workload of flows. Returns where peers may write to."""
        self._require_new(command.run)
        flows = self._flows[command.run] = HostFlows(self._host, command)
        return Prepared(command.run, flows.memory())

    def prepare_job(self, command: PrepareJob) -> Prepared:
        """Prepare a rank's part of a job. Returns where peers may write to."""
        self._require_new(command.run)
        job = self._jobs[command.run] = HostJob(self._host, command)
        return Prepared(command.run, job.memory())

    def prepare_service(self, command: PrepareService) -> Prepared:
        """Prepare requests to a service of switches."""
        self._require_new(command.run)
        service = self._services[command.run] = HostService(self._host, command)
        return Prepared(command.run, service.memory())

    def service_records(self, command: AskServiceRecords) -> ServiceRecords:
        """Return columns of the requests of a run of a service."""
        if command.run not in self._services:
            raise ValueError(f"run {command.run} is no run of a service")
        return self._services[command.run].records()

    def prepare_parameters(self, command: PrepareParameters) -> Prepared:
        """Prepare requests to a parameter store, or the store."""
        self._require_new(command.run)
        parameters = self._parameters[command.run] = HostParameters(self._host, command)
        return Prepared(command.run, parameters.memory())

    def parameter_records(self, command: AskParameterRecords) -> ParameterRecords:
        """Return columns of the requests of a run with a parameter store."""
        if command.run not in self._parameters:
            raise ValueError(f"run {command.run} has no parameter store")
        return self._parameters[command.run].records()

    def prepare_tcp_flows(self, command: PrepareTcpFlows) -> Prepared:
        """Prepare ends of TCP flows."""
        self._require_new(command.run)
        flows = self._tcp[command.run] = HostTcpFlows(self._host, command)
        return Prepared(command.run, flows.memory())

    def tcp_records(self, command: AskTcpRecords) -> TcpRecords:
        """Return what became of the ends of TCP flows of a run."""
        if command.run not in self._tcp:
            raise ValueError(f"run {command.run} has no TCP flows")
        return self._tcp[command.run].records()

    def prepare_applications(self, command: PrepareApplications) -> Prepared:
        """Prepare programs on the host's own IP stack. Raises ValueError if it has none."""
        self._require_new(command.run)
        programs = self._applications[command.run] = HostApplications(self._host, command)
        return Prepared(command.run, programs.memory())

    def application_records(self, command: AskApplicationRecords) -> ApplicationRecords:
        """Return what the programs of a run have found."""
        if command.run not in self._applications:
            raise ValueError(f"run {command.run} has no programs")
        return self._applications[command.run].records()

    def operation_times(self, command: AskOperationTimes) -> OperationTimes:
        """Return when the operations of a job's run started and were done."""
        if command.run not in self._jobs:
            raise ValueError(f"run {command.run} is no run of a job")
        return self._jobs[command.run].operation_times(command.path)

    def _native(
        self, number: int
    ) -> HostFlows | HostJob | HostService | HostParameters | HostTcpFlows | HostApplications | None:
        """Return a run that is no schedule of this class."""
        return next((runs[number] for runs in self._native_runs() if number in runs), None)

    def _native_runs(
        self,
    ) -> Iterator[
        dict[int, HostFlows]
        | dict[int, HostJob]
        | dict[int, HostService]
        | dict[int, HostParameters]
        | dict[int, HostTcpFlows]
        | dict[int, HostApplications]
    ]:
        yield from (self._flows, self._jobs, self._services, self._parameters, self._tcp, self._applications)

    def flow_records(self, number: int) -> FlowRecords:
        """Return columns of the flows that a run of traffic, or of a workload, has sent and that have ended."""
        if (flows := self._flows.get(number)) is not None:
            return FlowRecords(number, flows.records())
        run = self._run(number)
        if run.flows_by_node is None:
            raise ValueError(f"run {number} is no run of flows")
        return FlowRecords(number, self._write_records(run, run.flows_by_node))

    def _write_records(self, run: _Run, flows_by_node: Mapping[int, int]) -> EndedFlows:
        if run.native_run is None:
            return EndedFlows()
        writes = self._host.executor.writes(run.native_run)
        nodes = writes["node"].tolist()
        copies_ps = [run.copies_ps.get(node, 0) for node in nodes]
        return flows_of_writes(
            flows_by_node,
            zip(
                nodes,
                writes["posted_ps"].tolist(),
                (writes["completed_ps"] + np.array(copies_ps, np.int64)).tolist(),
                writes["retransmitted_packets"].tolist(),
                strict=True,
            ),
        )

    def _require_new(self, number: int) -> None:
        if number in self._runs or self._native(number) is not None:
            raise ValueError(f"run {number} exists already (release it first)")

    def _rank(self, given: int | None) -> int:
        return self._host.config.rank if given is None else given

    def _prepare(
        self, number: int, payload: Payload, schedule: Schedule, buffers: dict[str, npt.NDArray[Any]]
    ) -> Prepared:
        self._require_new(number)
        run = _Run(schedule, buffers, payload)
        for name, size_bytes in schedule.buffer_bytes.items():
            if name == ZEROS:
                continue
            if name == SINK:
                if size_bytes:
                    run.memory[SINK] = self._host.nic.register_sink(size_bytes)
                continue
            if name not in buffers:
                buffers[name] = np.zeros(size_bytes, np.uint8)
            run.memory[name] = self._host.nic.register_memory(buffers[name])
        self._runs[number] = run
        return Prepared(
            number,
            {name: RemoteBuffer(region.virtual_address, region.rkey) for name, region in run.memory.items()},
        )

    def start(self, command: Start) -> Done:
        """Start a prepared run at its time, given the memory of all peers that it writes to."""
        if (native := self._native(command.run)) is not None:
            native.start(command)
            return Done()
        run = self._run(command.run)
        if run.native_run is not None:
            raise ValueError(f"run {command.run} has been started already")
        schedule = build_native_schedule(
            run.schedule,
            run.buffers,
            self._host.channels(),
            self._host.reductions.aggregators(run.aggregation_jobs),
            command.peers,
            run.payload,
        )
        run.native_run = self._host.executor.start(
            schedule, command.start_ps, run=command.run, keep_writes=run.flows_by_node is not None
        )
        return Done()

    def state(self, number: int) -> RunState:
        """Return how far a run is; "prepared" before it is started."""
        if (native := self._native(number)) is not None:
            status = native.status()
        else:
            run = self._run(number)
            status = None if run.native_run is None else self._host.executor.status(run.native_run)
        if status is None:
            return RunState(number, "prepared")
        return RunState(
            run=number,
            state=status["state"],
            started_ps=status["started_ps"],
            finished_ps=status["finished_ps"],
            nodes_done=status["nodes_done"],
            node_count=status["node_count"],
            reason=status["error"],
        )

    def release(self, number: int) -> Done:
        """Release a run, cancelling it if it has not ended. Nothing reads or writes its buffers afterwards.

        Unless it has finished, its connections and aggregation jobs go, too: their queue pairs may still have
        requests on buffers, and the runner may truncate the buffers' files.
        """
        if (native := self._native(number)) is not None:
            for runs in self._native_runs():
                runs.pop(number, None)
            native.release()
            return Done()
        run = self._run(number)
        del self._runs[number]
        for region in run.memory.values():
            region.deregister()
        if run.native_run is not None:
            self._host.executor.cancel(run.native_run)
            if self._host.executor.status(run.native_run)["state"] != "finished":
                self._disconnect(run)
            self._host.executor.forget(run.native_run)
        return Done()

    def _disconnect(self, run: _Run) -> None:
        for channel in run.schedule.channels():
            self._host.disconnect(channel)
        self._host.reductions.leave_everywhere(run.aggregation_jobs)

    def _run(self, number: int) -> _Run:
        if number not in self._runs:
            raise InvalidValueError(f"no run {number}", valid=sorted(self._runs))
        return self._runs[number]


def flows_of_writes(flows_by_node: Mapping[int, int], writes: Iterable[tuple[int, int, int, int]]) -> EndedFlows:
    """Return the flows with all writes done, from the first write's start to the last one's end.

    Args:
        flows_by_node: the flow of each write; several where it is divided among queue pairs.
        writes: for each that is done: node, when it was posted and completed (ps), packets sent again.
    """
    of_flow: dict[int, list[tuple[int, int, int]]] = {}
    for node, *row in writes:
        of_flow.setdefault(flows_by_node[node], []).append((row[0], row[1], row[2]))
    wanted = Counter(flows_by_node.values())
    ended = {flow: rows for flow, rows in of_flow.items() if len(rows) == wanted[flow]}
    return EndedFlows(
        flow=tuple(ended),
        started_ps=tuple(min(posted for posted, _, _ in rows) for rows in ended.values()),
        finished_ps=tuple(max(completed for _, completed, _ in rows) for rows in ended.values()),
        retransmitted_packets=tuple(sum(again for _, _, again in rows) for rows in ended.values()),
    )
