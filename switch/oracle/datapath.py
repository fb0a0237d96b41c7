"""The v1model packet path (behavioral-model docs/simple_switch.md), without queues.

Copies go on in FIFO order.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from switch.backend import Digest, Replica
from switch.bmv2json import Checksum
from switch.oracle.calculations import calculate
from switch.oracle.expressions import Environment, boolean, integer
from switch.oracle.objects import OracleObjects
from switch.oracle.parser import ParserRun, deparse
from switch.oracle.pipeline import run_pipeline
from switch.oracle.primitives import AssertionFailedError, run_primitive
from switch.oracle.state import PacketState, Requests

NORMAL, INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICATED, RESUBMITTED = 0, 1, 2, 4, 5, 6
"""Values of `standard_metadata.instance_type`."""
PASS_LIMIT = 256
"""Passes through a pipeline that one received packet and its copies may make.

The rest is dropped and counted.
"""


@dataclass(frozen=True, slots=True)
class Timing:
    """What clock and queues say about a packet, in the target's units.

    `now_ns` drives meters and timeouts.
    """

    now_ns: int = 0
    ingress_timestamp: int = 0
    enqueue_timestamp: int = 0
    dequeue_time_delta: int = 0
    egress_timestamp: int = 0
    enqueue_depth: int = 0
    dequeue_depth: int = 0


@dataclass(frozen=True, slots=True)
class Output:
    """A packet that leaves by a port, in the class that it was queued in."""

    port: int
    data: bytes
    priority: int = 0


@dataclass(slots=True)
class _IngressJob:
    data: bytes
    port: int
    instance_type: int
    source: PacketState | None = None
    field_list: int = 0


@dataclass(slots=True)
class _EgressJob:
    packet: PacketState
    port: int
    priority: int


class DataPath:
    """One received packet and everything that becomes of it."""

    def __init__(
        self,
        objects: OracleObjects,
        timing: Timing,
        emit_digest: Callable[[Digest], None],
        drops: Counter[str],
    ) -> None:
        self._objects = objects
        self._program = objects.program
        self._timing = timing
        self._emit_digest = emit_digest
        self._drops = drops
        self._jobs: deque[_IngressJob | _EgressJob] = deque()
        self._outputs: list[Output] = []

    def run(self, port: int, data: bytes) -> list[Output]:
        """All packets that leave because of this one, in the order in which they leave."""
        self._jobs.append(_IngressJob(data, port, NORMAL))
        passes = 0
        while self._jobs:
            job = self._jobs.popleft()
            passes += 1
            if passes > PASS_LIMIT:
                self._drops["pass limit"] += 1
                continue
            try:
                if isinstance(job, _IngressJob):
                    self._run_ingress(job)
                else:
                    self._run_egress(job)
            except AssertionFailedError:
                self._drops["assertion failed"] += 1
        return self._outputs

    # ingress

    def _parse(self, job: _IngressJob) -> PacketState:
        packet = PacketState(self._program, len(job.data))
        packet.set_intrinsic("standard_metadata.ingress_port", job.port)
        packet.set_intrinsic("standard_metadata.packet_length", len(job.data))
        packet.set_intrinsic("standard_metadata.instance_type", job.instance_type)
        packet.set_intrinsic("intrinsic_metadata.ingress_global_timestamp", self._timing.ingress_timestamp)
        if job.source is not None:
            packet.copy_field_list(job.source, job.field_list)
            packet.set_intrinsic("standard_metadata.instance_type", job.instance_type)
        parser = next(iter(self._program.parsers.values()))
        error = ParserRun(parser, packet, job.data, self._objects).run()
        packet.set_intrinsic("standard_metadata.parser_error", error)
        packet.set_intrinsic("standard_metadata.checksum_error", int(not self._checksums_hold(packet)))
        return packet

    def _checksums_hold(self, packet: PacketState) -> bool:
        return all(
            packet.get(checksum.target) == calculate(self._program.calculations[checksum.calculation], packet)
            for checksum in self._program.checksums.values()
            if checksum.verify and self._applies(checksum, packet)
        )

    def _applies(self, checksum: Checksum, packet: PacketState) -> bool:
        return checksum.condition is None or boolean(checksum.condition, Environment(packet, self._objects))

    def _run_ingress(self, job: _IngressJob) -> None:
        packet = self._parse(job)
        run_pipeline(self._program.pipelines["ingress"], packet, self._objects)
        requests, packet.requests = packet.requests, Requests()
        if requests.clone_session is not None:
            self._clone_ingress(job, packet, requests)
        if requests.digest_list:
            self._send_digest(packet, requests.digest_list)
        if requests.resubmit_list:
            self._jobs.append(_IngressJob(job.data, job.port, RESUBMITTED, packet, requests.resubmit_list))
            return
        group = packet.get_intrinsic("intrinsic_metadata.mcast_grp")
        egress_spec = packet.get_intrinsic("standard_metadata.egress_spec")
        if group:
            packet.set_intrinsic("standard_metadata.instance_type", REPLICATED)
            replicas = self._objects.multicast_groups.get(group)
            if replicas is None:
                self._drops["unknown multicast group"] += 1
            else:
                self._replicate(packet, replicas)
        elif egress_spec == self._objects.drop_port:
            self._drops["dropped in ingress"] += 1
        else:
            packet.set_intrinsic("standard_metadata.instance_type", NORMAL)
            self._enqueue(packet, egress_spec)

    def _clone_ingress(self, job: _IngressJob, packet: PacketState, requests: Requests) -> None:
        assert requests.clone_session is not None
        session = self._objects.clone_sessions.get(requests.clone_session)
        if session is None:
            self._drops["unknown clone session"] += 1
            return
        clone = self._parse(_IngressJob(job.data, job.port, NORMAL))
        clone.copy_field_list(packet, requests.clone_field_list)
        clone.set_intrinsic("standard_metadata.instance_type", INGRESS_CLONE)
        clone.truncated_bytes = session.packet_length_bytes or None
        self._replicate(clone, session.replicas, session.class_of_service)

    def _send_digest(self, packet: PacketState, list_id: int) -> None:
        env = Environment(packet, self._objects)
        values = []
        for element in self._program.learn_lists[list_id].elements:
            width_bits = getattr(element, "width_bits", None)
            value = integer(element, env)
            values.append(value if width_bits is None else value & ((1 << width_bits) - 1))
        self._emit_digest(Digest(list_id, tuple(values)))

    # between ingress and egress

    def _replicate(
        self, packet: PacketState, replicas: Sequence[Replica], priority: int | None = None
    ) -> None:
        for replica in replicas:
            copy = packet.copy(with_metadata=True)
            copy.set_intrinsic("intrinsic_metadata.egress_rid", replica.instance)
            self._enqueue(copy, replica.port, priority)

    def _enqueue(self, packet: PacketState, port: int, priority: int | None = None) -> None:
        if priority is None:
            priority = packet.get_intrinsic("intrinsic_metadata.priority") or packet.get_intrinsic(
                "standard_metadata.priority"
            )
        self._jobs.append(_EgressJob(packet, port, priority))

    # egress

    def _run_egress(self, job: _EgressJob) -> None:
        packet, timing = job.packet, self._timing
        packet.set_intrinsic("intrinsic_metadata.egress_global_timestamp", timing.egress_timestamp)
        packet.set_intrinsic("queueing_metadata.enq_timestamp", timing.enqueue_timestamp)
        packet.set_intrinsic("queueing_metadata.enq_qdepth", timing.enqueue_depth)
        packet.set_intrinsic("queueing_metadata.deq_timedelta", timing.dequeue_time_delta)
        packet.set_intrinsic("queueing_metadata.deq_qdepth", timing.dequeue_depth)
        packet.set_intrinsic("queueing_metadata.qid", job.priority)
        packet.set_intrinsic("standard_metadata.egress_port", job.port)
        # anything but the drop port: egress drops by setting it
        packet.set_intrinsic("standard_metadata.egress_spec", self._objects.drop_port + 1)
        packet.set_intrinsic("standard_metadata.packet_length", packet.length_bytes)
        run_pipeline(self._program.pipelines["egress"], packet, self._objects)
        requests, packet.requests = packet.requests, Requests()
        if requests.clone_session is not None:
            self._clone_egress(packet, requests)
        if packet.get_intrinsic("standard_metadata.egress_spec") == self._objects.drop_port:
            self._drops["dropped in egress"] += 1
            return
        data = self._deparse(packet)
        if requests.recirculate_list:
            self._jobs.append(
                _IngressJob(data, self._ingress_port(packet), RECIRCULATED, packet, requests.recirculate_list)
            )
        else:
            self._outputs.append(Output(job.port, data, job.priority))

    def _ingress_port(self, packet: PacketState) -> int:
        return packet.get_intrinsic("standard_metadata.ingress_port")

    def _clone_egress(self, packet: PacketState, requests: Requests) -> None:
        assert requests.clone_session is not None
        session = self._objects.clone_sessions.get(requests.clone_session)
        if session is None:
            self._drops["unknown clone session"] += 1
            return
        clone = packet.copy(with_metadata=False)
        clone.copy_field_list(packet, requests.clone_field_list)
        clone.set_intrinsic("standard_metadata.instance_type", EGRESS_CLONE)
        clone.truncated_bytes = session.packet_length_bytes or None
        self._replicate(clone, session.replicas, session.class_of_service)

    def _deparse(self, packet: PacketState) -> bytes:
        deparser = next(iter(self._program.deparsers.values()))
        env = Environment(packet, self._objects)
        for call in deparser.primitives:
            run_primitive(call, env, self._objects)
        for checksum in self._program.checksums.values():
            if checksum.update and self._applies(checksum, packet):
                calculation = self._program.calculations[checksum.calculation]
                packet.set(checksum.target, calculate(calculation, packet))
        return deparse(deparser, packet)
