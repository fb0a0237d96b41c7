"""Runs of an endpoint: from the message that describes one to its buffers, its schedule and its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.engine import _core
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import collective_named
from weft.traffic.host import Host
from weft.traffic.host_flows import HostFlows
from weft.traffic.lane_schedule import LaneSchedule, Schedule
from weft.traffic.messages import (
    AS_BYTES,
    PAYLOADS,
    Message,
    MessageError,
    take,
    take_list,
    take_optional,
)
from weft.traffic.native_schedule import RemoteBuffer, build_native_schedule
from weft.traffic.patterns import Flow, flow_schedule
from weft.traffic.schedule_nodes import DATA, MAX_RUN_TAG, SINK, ZEROS, DataType, RankSchedule, Write
from weft.traffic.schedules import DEFAULT_PIECE_BYTES, CollectiveSpec
from weft.traffic.training import Layer, TrainingStep, training_step_schedule


@dataclass
class _Run:
    schedule: Schedule
    buffers: dict[str, npt.NDArray[Any]]
    payload: str
    memory: dict[str, _core.MemoryRegion] = field(default_factory=dict)
    flows_by_node: dict[int, int] | None = None
    native_run: int | None = None


class HostRuns:
    """The runs of a host by their numbers, which the runner chooses alike on all hosts."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._runs: dict[int, _Run] = {}
        self._flows: dict[int, HostFlows] = {}

    def prepare_collective(self, message: Message) -> dict[str, Any]:
        """Map the buffers of a collective and register them. Returns where peers may write to."""
        spec = _collective_spec(message)
        schedule = _made_by_the_runner(message)
        if schedule is None:
            collective = collective_named(take(message, "collective", str, "allreduce"))
            schedule = collective.schedule(take(message, "algorithm", str), spec, self._rank(message))
        return self._prepare_with_data(message, schedule, spec)

    def prepare_training_step(self, message: Message) -> dict[str, Any]:
        """As `prepare_collective`, for a step; `layers` are [gradient_count, forward_ps, backward_ps] each."""
        spec, schedule = _collective_spec(message), _made_by_the_runner(message)
        if schedule is not None:
            return self._prepare_with_data(message, schedule, spec)
        step = TrainingStep(
            layers=tuple(_layer(item) for item in take_list(message, "layers", list)),
            bucket_bytes=take(message, "bucket_bytes", int),
            optimizer_ps=take(message, "optimizer_ps", int, 0),
        )
        schedule = training_step_schedule(step, take(message, "algorithm", str), spec, self._rank(message))
        return self._prepare_with_data(message, schedule, spec)

    def _prepare_with_data(
        self, message: Message, schedule: Schedule, spec: CollectiveSpec
    ) -> dict[str, Any]:
        if isinstance(source := message.get("buffer"), np.ndarray):  # of the same process
            return self._prepare(message, schedule, {DATA: source})
        source = take_optional(message, "buffer", str)
        if source is None:
            return self._prepare(message, schedule.of_lengths(), {})
        data = _map_data(spec, Path(source), take_optional(message, "result", str))
        return self._prepare(message, schedule, {DATA: data})

    def prepare_traffic(self, message: Message) -> dict[str, Any]:
        """Prepare to send and receive flows. Each item of `flows` has the fields of patterns.Flow and its number."""
        flows = {
            take(flow, "number", int): Flow(
                source=take(flow, "source", int),
                destination=take(flow, "destination", int),
                size_bytes=take(flow, "size_bytes", int),
                plane=take(flow, "plane", int, 0),
                start_ps=take(flow, "start_ps", int, 0),
            )
            for flow in take_list(message, "flows", dict)
        }
        rank = self._rank(message)
        schedule = flow_schedule(flows, rank, _run_tag(message))
        answer = self._prepare(message, schedule, {})
        nodes = [number for number, node in enumerate(schedule.nodes) if isinstance(node, Write)]
        sent = [number for number, flow in flows.items() if flow.source == rank]
        self._runs[answer["run"]].flows_by_node = dict(zip(nodes, sent, strict=True))
        return answer

    def prepare_flows(self, message: Message) -> dict[str, Any]:
        """Prepare a workload of flows, as `HostFlows` reads them. Returns where peers may write to."""
        number = self._new_number(message)
        flows = self._flows[number] = HostFlows(self._host, message)
        return {"run": number, "memory": flows.memory()}

    def flow_records(self, message: Message) -> dict[str, Any]:
        """Return columns of the flows that a run of traffic, or of a workload, has sent and that have ended."""
        number = take(message, "run", int)
        if (flows := self._flows.get(number)) is not None:
            return {"run": number, "records": flows.records()}
        run = self._run(message)
        if run.flows_by_node is None:
            raise ValueError(f"run {number} is no run of flows")
        return {"run": number, "records": self._write_records(run, run.flows_by_node)}

    def _write_records(self, run: _Run, flows_by_node: Mapping[int, int]) -> dict[str, list[int]]:
        if run.native_run is None:
            return {}
        writes = self._host.executor.writes(run.native_run)
        return {
            "flow": [flows_by_node[node] for node in writes["node"].tolist()],
            "started_ps": writes["posted_ps"].tolist(),
            "finished_ps": writes["completed_ps"].tolist(),
            "retransmitted_packets": writes["retransmitted_packets"].tolist(),
        }

    def _new_number(self, message: Message) -> int:
        number = take(message, "run", int)
        if number in self._runs or number in self._flows:
            raise ValueError(f"run {number} exists already (release it first)")
        return number

    def _rank(self, message: Message) -> int:
        return take(message, "rank", int, self._host.config.rank)

    def _prepare(
        self, message: Message, schedule: Schedule, buffers: dict[str, npt.NDArray[Any]]
    ) -> dict[str, Any]:
        number = self._new_number(message)
        run = _Run(schedule, buffers, _parse_payload(take(message, "payload", str, AS_BYTES)))
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
        return {
            "run": number,
            "memory": {
                name: {"virtual_address": region.virtual_address, "rkey": region.rkey}
                for name, region in run.memory.items()
            },
        }

    def start(self, message: Message) -> dict[str, Any]:
        """Start a prepared run at `start_ps`, given all peers' `memory` by rank."""
        if (flows := self._flows.get(take(message, "run", int))) is not None:
            flows.start(message)
            return {"run": message["run"], "started": True}
        run = self._run(message)
        if run.native_run is not None:
            raise ValueError(f"run {message['run']} has been started already")
        memory = take(message, "peers", dict, {})
        peers = {int(rank): _remote_buffers(take(memory, rank, dict)) for rank in memory}
        native = build_native_schedule(
            run.schedule, run.buffers, self._host.channels(), self._host.aggregators(), peers, run.payload
        )
        run.native_run = self._host.executor.start(
            native,
            take(message, "start_ps", int, 0),
            run=message["run"],
            keep_writes=run.flows_by_node is not None,
        )
        return {"run": message["run"], "started": True}

    def status(self, message: Message) -> dict[str, Any]:
        """Return the state of a run; "prepared" before it is started."""
        if (flows := self._flows.get(take(message, "run", int))) is not None:
            return {"run": message["run"], **_without_error_key(flows.status())}
        run = self._run(message)
        if run.native_run is None:
            return {"run": message["run"], "state": "prepared"}
        return {"run": message["run"], **_without_error_key(self._host.executor.status(run.native_run))}

    def release(self, message: Message) -> dict[str, Any]:
        """Release a run, cancelling it if it has not ended. Nothing reads or writes its buffers afterwards.

        Unless it has finished, its connections and aggregation jobs go, too: their queue pairs may still have
        requests on buffers whose files the runner is free to truncate.
        """
        if (flows := self._flows.pop(take(message, "run", int), None)) is not None:
            flows.release()
            return {"run": message["run"], "released": True}
        run = self._run(message)
        del self._runs[message["run"]]
        for region in run.memory.values():
            region.deregister()
        if run.native_run is not None:
            self._host.executor.cancel(run.native_run)
            if self._host.executor.status(run.native_run)["state"] != "finished":
                self._disconnect(run.schedule)
            self._host.executor.forget(run.native_run)
        return {"run": message["run"], "released": True}

    def _disconnect(self, schedule: Schedule) -> None:
        for channel in schedule.channels():
            self._host.disconnect(channel)
        for plane in schedule.planes_aggregated():
            self._host.leave(plane)

    def _run(self, message: Message) -> _Run:
        number = take(message, "run", int)
        if number not in self._runs:
            known = ", ".join(map(str, sorted(self._runs))) or "none"
            raise ValueError(f"no run {number} (valid: {known})")
        return self._runs[number]


def _made_by_the_runner(message: Message) -> Schedule | None:
    """Return the schedule that a runner in the same process has made; None where the host makes its own."""
    made = message.get("schedule")
    return made if isinstance(made, LaneSchedule | RankSchedule) else None


def _remote_buffers(memory: Message) -> dict[str, RemoteBuffer]:
    """Read what a peer's answer to `collective` or `traffic` has as `memory`."""
    regions = {name: take(memory, name, dict) for name in memory}
    return {
        name: RemoteBuffer(take(region, "virtual_address", int), take(region, "rkey", int))
        for name, region in regions.items()
    }


def _without_error_key(status: Mapping[str, Any]) -> dict[str, Any]:
    """An answer with `error` means that the command failed; why a run failed is its `reason`."""
    fields: dict[str, Any] = dict(status)
    fields["reason"] = fields.pop("error", "")
    return fields


def _run_tag(message: Message) -> int:
    return take(message, "run", int) % (MAX_RUN_TAG + 1)


def _collective_spec(message: Message) -> CollectiveSpec:
    return CollectiveSpec(
        rank_count=take(message, "rank_count", int),
        element_count=take(message, "element_count", int),
        dtype=_parse_data_type(take(message, "dtype", str)),
        operation=_parse_operation(take(message, "operation", str, "sum")),
        plane_rates_bps=tuple(take_list(message, "plane_rates_bps", int)),
        piece_bytes=take(message, "piece_bytes", int, DEFAULT_PIECE_BYTES),
        run_tag=_run_tag(message),
        root=take(message, "root", int, 0),
        ranks_per_host=take(message, "ranks_per_host", int, 1),
        rank_stride=take(message, "rank_stride", int, 1),
    )


def _layer(item: list[Any]) -> Layer:
    if len(item) != len(fields(Layer)) or not all(type(value) is int for value in item):
        raise MessageError(f"layer {item!r} (valid: gradient_count, forward_ps, backward_ps)")
    return Layer(*item)


def _parse_data_type(text: str) -> DataType:
    try:
        return DataType(text)
    except ValueError:
        raise MessageError(f"dtype {text!r} (valid: {', '.join(DataType)})") from None


def _parse_payload(text: str) -> str:
    if text not in PAYLOADS:
        raise MessageError(f"payload {text!r} (valid: {', '.join(PAYLOADS)})")
    return text


def _parse_operation(text: str) -> Operation:
    names = {operation.name.lower(): operation for operation in Operation}
    if text not in names:
        raise MessageError(f"operation {text!r} (valid: {', '.join(names)})")
    return names[text]


def _map_data(spec: CollectiveSpec, source: Path, result: str | None) -> npt.NDArray[Any]:
    """Map the rank's buffer for work in place: `source` itself, or the file `result` with a copy of it."""
    shape = (spec.element_count,)
    if spec.element_count == 0:
        return np.empty(0, spec.dtype.value)
    wanted_bytes = spec.element_count * 4
    if source.stat().st_size < wanted_bytes:
        raise ValueError(f"{source} has {source.stat().st_size} bytes (valid: at least {wanted_bytes})")
    if result is None:
        return np.memmap(source, spec.dtype.value, "r+", shape=shape)
    data = np.memmap(result, spec.dtype.value, "w+", shape=shape)
    data[:] = np.memmap(source, spec.dtype.value, "r", shape=shape)
    return data
