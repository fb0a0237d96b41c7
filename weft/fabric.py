"""A fabric to run collectives and traffic on, from Python: what scripts, tests and the commands use."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.errors import ControllerError
from topologies import FabricSpec
from traffic.aggregation_format import Operation
from traffic.control import EndpointGroup, RunOutcome
from traffic.patterns import MAX_FLOW_BYTES, Flow, incast, permutation
from traffic.schedule_nodes import DataType
from traffic.schedules import CollectiveSpec
from weft.endpoints import default_slot_count, path_round_trip_ps
from weft.environment import with_clock
from weft.errors import BadInputError, did_you_mean
from weft.lab import Progress, make_lab
from weft.observation import drop_totals, lateness_of, longest_int_path, plane_results
from weft.options import FabricOptions
from weft.results import CollectiveResult, FlowsResult, RunResult
from weft.scenario import ALGORITHMS
from weft.told_errors import told_as_weft_errors
from weft.verification import verify_all_reduce_sum

JOB_ID = 1


@dataclass(frozen=True)
class CollectiveRun:
    """A collective that has run: every rank's result (arrays of the inputs' shape and dtype) and the figures."""

    buffers: list[NDArray[Any]]
    result: CollectiveResult


class Fabric:
    """A running fabric. Use as a context manager; leaving it leaves nothing behind.

    ```
    with Fabric(topologies.leaf_spine(planes=2, leaves=4, spines=2), seed=1) as fabric:
        run = fabric.collective("allreduce", buffers, algorithm="in-network")
    ```

    Args:
        topology: what to build.
        progress: told, in words, what is being done.
        options: as keyword arguments, the fields of `FabricOptions`.

    Raises, on entering:
        EnvironmentLacksError: the machine cannot run it. BadInputError: the P4 program is wrong.
    """

    def __init__(self, topology: FabricSpec, *, progress: Progress = lambda _: None, **options: Any) -> None:
        self.topology = topology
        try:
            self.options = FabricOptions(**options)
        except TypeError as error:
            raise BadInputError(
                f"{error}; valid options: {', '.join(FabricOptions.__dataclass_fields__)}"
            ) from None
        self.options = with_clock(self.options)
        self.lab = make_lab(topology, self.options, progress)
        self.hosts: EndpointGroup
        self.flows: list[FlowsResult] = []
        self.collectives: list[CollectiveResult] = []
        self._progress = progress
        self._joined = False
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Fabric:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.lab)
            self._progress("starting the hosts' endpoints")
            self.hosts = stack.enter_context(self.lab.hosts())
            # What was dropped or late while the switches had no program yet says nothing about the fabric.
            self.lab.reset_switch_stats()
            self.hosts.reset_stats()
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    @property
    def slot_count(self) -> int:
        """Slots of the aggregation job: the option, or two bandwidth-delay products."""
        return self.options.slots or default_slot_count(self.topology, self.options.ip_version)

    @told_as_weft_errors()
    def collective(
        self,
        collective: str,
        buffers: Sequence[NDArray[Any]],
        algorithm: str = "ring",
        *,
        data: str = "given",
        timeout_s: float = 300.0,
    ) -> CollectiveRun:
        """Run a collective over all hosts and verify its result against NumPy.

        Args:
            collective: "allreduce", a sum.
            buffers: one array per host, all of one shape, int32 or float32; they are not changed.
            algorithm: "ring" or "in-network".
            data: what the buffers are, for the result's table.
            timeout_s: seconds after which the run has failed: real ones, or of the virtual clock.

        Raises:
            BadInputError: unknown names, or buffers that do not fit together.
            CheckFailedError: the run failed or did not end in time.
        """
        if collective != "allreduce":
            raise BadInputError(
                f"unknown collective '{collective}'; {did_you_mean(collective, ['allreduce'])}"
            )
        if algorithm not in ALGORITHMS:
            raise BadInputError(f"unknown algorithm '{algorithm}'; {did_you_mean(algorithm, ALGORITHMS)}")
        inputs = self._check_buffers(buffers)
        if algorithm == "in-network":
            self._join_job()
        spec = CollectiveSpec(
            rank_count=len(inputs),
            element_count=inputs[0].size,
            dtype=DataType(inputs[0].dtype.name),
            operation=Operation.SUM,
            plane_rates_bps=tuple(nic.link.rate_bps for nic in self.topology.hosts[0].nics),
        )
        before = self._retransmissions()
        aggregated_before = self._aggregated_packets() if algorithm == "in-network" else 0
        outcome, outputs = self._exchange(spec, algorithm, inputs, timeout_s)
        verdict = verify_all_reduce_sum([each.ravel() for each in inputs], outputs, algorithm)
        figures = CollectiveResult(
            collective=collective,
            algorithm=algorithm,
            size_bytes=inputs[0].nbytes,
            count=inputs[0].size,
            dtype=inputs[0].dtype.name,
            operation="sum",
            ranks=len(inputs),
            time_ps=outcome.duration_ps,
            wrong=verdict.wrong,
            identical=verdict.identical,
            largest_error=verdict.largest_error,
            error_bound=verdict.bound,
            packets_aggregated=(
                self._aggregated_packets() - aggregated_before if algorithm == "in-network" else 0
            ),
            retransmissions=self._retransmissions() - before,
            data=data,
        )
        self.collectives.append(figures)
        return CollectiveRun([output.reshape(inputs[0].shape) for output in outputs], figures)

    @told_as_weft_errors()
    def incast(
        self, receiver: str, bytes_per_sender: int, plane: int = 0, timeout_s: float = 300.0
    ) -> FlowsResult:
        """Have every other host write to one at the same time, in one plane.

        Raises:
            BadInputError: unknown host or plane, no other host, or a size that no flow can have.
            CheckFailedError: the run failed or did not end in time.
        """
        self._require_other_hosts("an incast")
        target = self.topology.host(receiver).index
        self.topology.host(receiver).nic(plane)
        senders = [host.index for host in self.topology.hosts]
        flows = incast(target, senders, bytes_per_sender, plane)
        return self._run_flows(f"incast on {receiver}, plane {plane}", flows, timeout_s)

    @told_as_weft_errors()
    def permutation(self, bytes_per_host: int, timeout_s: float = 300.0) -> FlowsResult:
        """Have every host write to one other, drawn from the seed, in every plane; raises as `incast`."""
        self._require_other_hosts("a permutation")
        flows = [
            flow
            for plane in range(self.topology.planes)
            for flow in permutation(len(self.topology.hosts), bytes_per_host, plane, self.options.seed)
        ]
        return self._run_flows("permutation", flows, timeout_s)

    def capture(self, host: str, plane: int, path: Path | None) -> None:
        """Record what a host's RoCEv2 endpoint sends and receives in a plane into a pcap file; None ends it.

        The file has nanosecond stamps of emulated time.
        """
        spec = self.topology.host(host)
        spec.nic(plane)
        self.hosts.capture(spec.index, plane, path)

    @told_as_weft_errors()
    def capture_port(self, switch: str, port: int, path: Path | None) -> None:
        """Record what an embedded switch's port sends and receives into a pcap file; None ends it.

        A port of an internal link records what it sends. The file has nanosecond stamps of emulated time.

        Raises:
            BadInputError: no such switch or port. ChildError: the file cannot be written.
            EnvironmentLacksError: the fabric runs on BMv2.
        """
        self.topology.switch(switch).port(port)
        self.lab.capture_port(switch, port, path)

    @told_as_weft_errors()
    def summary(self) -> RunResult:
        """Return everything found so far, with the counters of all switches and hosts."""
        counters = self.lab.controller.read_counters()
        switches = self.lab.switch_stats()
        endpoints = self.hosts.stats()
        path = longest_int_path(self.topology, endpoints, coarse=self.options.target == "bmv2")
        lateness = None
        if self.options.clock == "real":
            rtt_ps = path_round_trip_ps(self.topology, self.lab.frame_bytes)
            lateness = lateness_of(switches, endpoints, rtt_ps, self.options.dilation)
        return RunResult(
            made_by={
                **self.options.as_dict(),
                "p4_hash": self.lab.program.p4_hash,
                "fabric": dict(self.topology.parameters),
                "slots": self.slot_count,
            },
            collectives=list(self.collectives),
            flows=list(self.flows),
            planes=plane_results(self.topology, counters, switches),
            int_paths=[path] if path is not None else [],
            drops=drop_totals(counters, switches, endpoints),
            retransmissions=_retransmissions(endpoints),
            cnps=sum(endpoint["totals"]["cnps_received"] for endpoint in endpoints),
            lateness=lateness,
        )

    def _run_flows(self, pattern: str, flows: list[Flow], timeout_s: float) -> FlowsResult:
        for flow in flows:
            if not 0 < flow.size_bytes <= MAX_FLOW_BYTES:
                raise BadInputError(f"a flow of {flow.size_bytes} B (valid: 1 to {MAX_FLOW_BYTES})")
        before = self._retransmissions()
        group = self.hosts
        run = group.prepare_traffic(flows, telemetry=self.options.int_telemetry)
        outcome = group.run(run, timeout_s)
        result = FlowsResult(
            pattern=pattern,
            flows=len(flows),
            bytes_delivered=sum(flow.size_bytes for flow in flows),
            time_ps=outcome.duration_ps,
            retransmissions=self._retransmissions() - before,
        )
        self.flows.append(result)
        return result

    def _require_other_hosts(self, what: str) -> None:
        if len(self.topology.hosts) < 2:
            raise BadInputError(f"{what} needs 2 hosts or more; the fabric has 1")

    def _check_buffers(self, buffers: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        hosts = len(self.topology.hosts)
        if len(buffers) != hosts:
            raise BadInputError(f"{len(buffers)} buffers for {hosts} hosts; there must be one for each")
        arrays = [np.ascontiguousarray(each) for each in buffers]
        first = arrays[0]
        if first.dtype not in (np.int32, np.float32):
            raise BadInputError(f"buffers of {first.dtype} cannot be reduced (valid: int32, float32)")
        for rank, array in enumerate(arrays):
            if array.dtype != first.dtype or array.shape != first.shape:
                raise BadInputError(
                    f"buffer {rank} is {array.dtype}{array.shape}, buffer 0 {first.dtype}{first.shape}; "
                    "they must be alike"
                )
            if not np.all(np.isfinite(array)):
                raise BadInputError(
                    f"buffer {rank} holds NaN or infinity, which block floating point cannot carry"
                )
        if first.size == 0:
            raise BadInputError("buffers are empty; there must be at least one element")
        return arrays

    def _exchange(
        self, spec: CollectiveSpec, algorithm: str, inputs: list[NDArray[Any]], timeout_s: float
    ) -> tuple[RunOutcome, list[NDArray[Any]]]:
        """Run a collective over files that the hosts map, and return every rank's flat result."""
        group = self.hosts
        with tempfile.TemporaryDirectory(dir=self.lab.directory) as directory:
            files = [Path(directory, f"rank{rank}.bin") for rank in range(len(inputs))]
            results = [file.with_suffix(".result") for file in files]
            for file, array in zip(files, inputs, strict=True):
                array.tofile(file)
            run = group.prepare_collective(
                spec, algorithm, files, results, telemetry=self.options.int_telemetry
            )
            try:
                outcome = group.run(run, timeout_s)
            except BaseException:
                # The job's slots hold half a reduction: the next one starts in a new epoch. Should the switches be
                # gone, too, the error to tell is the first.
                with contextlib.suppress(ControllerError):
                    self._leave_job()
                raise
            return outcome, [np.fromfile(result, inputs[0].dtype) for result in results]

    def _join_job(self) -> None:
        if self._joined:
            return
        hosts = [host.name for host in self.topology.hosts]
        memberships = self.lab.controller.add_job(
            JOB_ID, hosts, self.slot_count, ip_version=self.options.ip_version
        )
        self.hosts.join(
            {
                rank: [membership.to_dict() for membership in memberships[name]]
                for rank, name in enumerate(hosts)
            }
        )
        self._joined = True

    def _leave_job(self) -> None:
        if self._joined:
            self.lab.controller.remove_job(JOB_ID)
            self._joined = False

    def _retransmissions(self) -> int:
        return _retransmissions(self.hosts.stats())

    def _aggregated_packets(self) -> int:
        counters = self.lab.controller.read_counters()
        return sum(each.aggregated_packets for each in counters.values())


def _retransmissions(endpoint_stats: Sequence[dict[str, Any]]) -> int:
    return sum(
        endpoint["totals"]["retransmitted_packets"]
        + sum(
            plane["aggregation"]["retransmitted_packets"]
            for plane in endpoint["planes"]
            if plane["aggregation"]
        )
        for endpoint in endpoint_stats
    )
