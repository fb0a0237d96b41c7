"""The v1model packet path (behavioral-model docs/simple_switch.md), without queues.

Packets pass ingress immediately and egress in FIFO order.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.engine import _core
from weft.switch.backend import Digest, Replica
from weft.switch.bmv2json import Checksum
from weft.switch.oracle.calculations import calculate
from weft.switch.oracle.expressions import Environment, boolean, integer
from weft.switch.oracle.objects import OracleObjects
from weft.switch.oracle.parser import ParserRun, deparse
from weft.switch.oracle.pipeline import run_pipeline
from weft.switch.oracle.primitives import PacketAbortedError, run_primitives
from weft.switch.oracle.state import PacketState, Requests
from weft.switch.oracle.tracing import add_event, report
from weft.switch.trace import events
from weft.switch.trace.places import ChecksumVerified, updated_place

NORMAL, INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICATED, RESUBMITTED = 0, 1, 2, 4, 5, 6
"""Values of `standard_metadata.instance_type`."""
_ABI = _core.switch_abi()
PASS_BUDGET, LOOP_BUDGET = _ABI["kPassBudget"], _ABI["kLoopBudget"]
"""Most passes through a pipeline, and backward jumps, of a received packet and its copies.

The limits are the same as in the native switch. Packets that need more are dropped and counted.
"""


@dataclass(frozen=True, slots=True)
class Timing:
    """Clock and queue metadata of a packet, in the target's units.

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
    """A packet that leaves by a port, with the class in which it was queued."""

    port: int
    data: bytes
    priority: int = 0


@dataclass(slots=True)
class _IngressJob:
    data: bytes
    port: int
    instance_type: int
    pass_budget: int = PASS_BUDGET
    loop_budget: int = LOOP_BUDGET
    source: PacketState | None = None
    field_list: int = 0
    trace: events.CopyTrace | None = None
    timestamp: int = 0


@dataclass(slots=True)
class _EgressJob:
    packet: PacketState
    port: int
    priority: int


class DataPath:
    """The path of one received packet and its copies."""

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
        self._arrivals: deque[_IngressJob] = deque()
        self._departures: deque[_EgressJob] = deque()
        self._outputs: list[Output] = []

    def run(self, port: int, data: bytes, trace: events.CopyTrace | None = None) -> list[Output]:
        """Return all packets that leave because of this one, in order.

        Their events are added to `trace`.
        """
        timestamp = self._timing.ingress_timestamp
        self._arrivals.append(_IngressJob(data, port, NORMAL, trace=trace, timestamp=timestamp))
        while self._arrivals or self._departures:
            try:
                if self._arrivals:
                    self._run_ingress(self._arrivals.popleft())
                else:
                    self._run_egress(self._departures.popleft())
            except PacketAbortedError as aborted:
                self._drops[aborted.reason] += 1
        return self._outputs

    # ingress

    def _parse(self, job: _IngressJob) -> PacketState:
        packet = PacketState(self._program, len(job.data))
        packet.trace = job.trace
        packet.pass_budget, packet.loop_budget = job.pass_budget, job.loop_budget
        packet.received_port = job.port
        if job.instance_type == NORMAL:
            packet.set_intrinsic("standard_metadata.ingress_port", job.port)
            packet.set_intrinsic("intrinsic_metadata.ingress_global_timestamp", job.timestamp)
        if job.source is not None:
            # as in BMv2: only the list's fields are preserved, not even the ingress port
            packet.copy_field_list(job.source, job.field_list)
        packet.set_intrinsic("standard_metadata.packet_length", packet.length_bytes)
        packet.set_intrinsic("standard_metadata.instance_type", job.instance_type)
        parser = next(iter(self._program.parsers.values()))
        error = ParserRun(parser, packet, job.data, self._objects).run()
        packet.set_intrinsic("standard_metadata.parser_error", error)
        return packet

    def _verify_checksums(self, packet: PacketState) -> None:
        wrong = False
        for checksum in self._program.checksums.values():
            if checksum.verify and self._applies(checksum, packet):
                value = calculate(self._program.calculations[checksum.calculation], packet)
                holds = packet.get(checksum.target) == value
                report(packet, ChecksumVerified(checksum.name), (int(holds),))
                wrong |= not holds
        packet.set_intrinsic("standard_metadata.checksum_error", int(wrong))

    def _applies(self, checksum: Checksum, packet: PacketState) -> bool:
        return checksum.condition is None or boolean(checksum.condition, Environment(packet, self._objects))

    def _run_ingress(self, job: _IngressJob) -> None:
        if job.pass_budget == 0:
            self._drops["pass_limit"] += 1
            if job.trace is not None:
                job.trace.add(events.Dropped("pass_limit"))
            return
        job.pass_budget -= 1
        if job.trace is not None:
            job.trace.add(events.Received(job.port, job.instance_type, job.data))
        packet = self._parse(job)
        self._verify_checksums(packet)
        run_pipeline(self._program.pipelines["ingress"], packet, self._objects)
        requests, packet.requests = packet.requests, Requests()
        if requests.clone_session is not None:
            self._clone_ingress(job, packet, requests)
        if requests.digest_list:
            self._send_digest(packet, requests.digest_list)
        if requests.resubmit_list:
            self._arrivals.append(self._again(job.data, job.port, RESUBMITTED, packet, requests.resubmit_list))
            return
        group = packet.get_intrinsic("intrinsic_metadata.mcast_grp")
        egress_spec = packet.get_intrinsic("standard_metadata.egress_spec")
        if group:
            packet.set_intrinsic("standard_metadata.instance_type", REPLICATED)
            replicas = self._objects.multicast_groups.get(group, ())
            add_event(packet, events.Multicast(group, len(replicas)))
            packet.truncated_bytes = None  # as in BMv2, whose copies are whole
            self._replicate(packet, replicas)
        elif egress_spec == self._objects.drop_port:
            self._drop(packet, "program_ingress")
        else:
            packet.set_intrinsic("standard_metadata.instance_type", NORMAL)
            self._enqueue(packet, egress_spec)

    def _clone_ingress(self, job: _IngressJob, packet: PacketState, requests: Requests) -> None:
        assert requests.clone_session is not None
        session = self._objects.clone_sessions.get(requests.clone_session)
        if session is None:
            self._drops["unknown_clone_session"] += 1
            add_event(packet, events.NoCloneSession(requests.clone_session))
            return
        packet.pass_budget //= 2
        again = _IngressJob(job.data, job.port, NORMAL, packet.pass_budget, packet.loop_budget)
        again.trace = _copied(packet, INGRESS_CLONE)
        clone = self._parse(again)
        clone.clear_metadata()
        clone.copy_field_list(packet, requests.clone_field_list)
        clone.set_intrinsic("standard_metadata.instance_type", INGRESS_CLONE)
        clone.truncated_bytes = session.packet_length_bytes or None
        self._replicate(clone, session.replicas, session.class_of_service)

    def _send_digest(self, packet: PacketState, list_id: int) -> None:
        add_event(packet, events.DigestSent(list_id))
        env = Environment(packet, self._objects)
        values = []
        for element in self._program.learn_lists[list_id].elements:
            width_bits = getattr(element, "width_bits", None)
            value = integer(element, env)
            values.append(value if width_bits is None else value & ((1 << width_bits) - 1))
        self._emit_digest(Digest(list_id, tuple(values)))

    # between ingress and egress

    def _again(self, data: bytes, port: int, instance_type: int, packet: PacketState, field_list: int) -> _IngressJob:
        trace = _copied(packet, instance_type)
        return _IngressJob(data, port, instance_type, packet.pass_budget, packet.loop_budget, packet, field_list, trace)

    def _replicate(self, packet: PacketState, replicas: Sequence[Replica], priority: int | None = None) -> None:
        if not replicas:
            self._drop(packet, "empty_multicast_group")
            return
        # copies share the remaining budget, so that a program that multiplies packets terminates
        packet.pass_budget //= len(replicas)
        for replica in replicas:
            copy = packet.copy(with_metadata=True)
            copy.truncated_bytes = packet.truncated_bytes
            if len(replicas) > 1:
                copy.trace = _copied(packet, REPLICATED)
            copy.set_intrinsic("intrinsic_metadata.egress_rid", replica.instance)
            self._enqueue(copy, replica.port, priority)

    def _enqueue(self, packet: PacketState, port: int, priority: int | None = None) -> None:
        if priority is None:
            priority = packet.get_intrinsic("intrinsic_metadata.priority") or packet.get_intrinsic(
                "standard_metadata.priority"
            )
        add_event(packet, events.Enqueued(port, priority))
        self._departures.append(_EgressJob(packet, port, priority))

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
        # any port but the drop port: egress drops by setting that
        packet.set_intrinsic("standard_metadata.egress_spec", self._objects.drop_port + 1)
        packet.set_intrinsic("standard_metadata.packet_length", packet.length_bytes)
        add_event(
            packet,
            events.EgressStarted(
                job.port,
                packet.get_intrinsic("intrinsic_metadata.egress_rid"),
                packet.get_intrinsic("standard_metadata.instance_type"),
            ),
        )
        run_pipeline(self._program.pipelines["egress"], packet, self._objects)
        requests, packet.requests = packet.requests, Requests()
        if requests.clone_session is not None:
            self._clone_egress(packet, requests)
        if packet.get_intrinsic("standard_metadata.egress_spec") == self._objects.drop_port:
            self._drop(packet, "program_egress")
            return
        data = self._deparse(packet)
        if requests.recirculate_list:
            self._arrivals.append(
                self._again(data, packet.received_port, RECIRCULATED, packet, requests.recirculate_list)
            )
        else:
            # BMv2 recirculates the whole packet, so truncation comes last.
            data = data[: packet.truncated_bytes]
            add_event(packet, events.Sent(job.port, data))
            self._outputs.append(Output(job.port, data, job.priority))

    def _drop(self, packet: PacketState, reason: str) -> None:
        self._drops[reason] += 1
        add_event(packet, events.Dropped(reason))

    def _clone_egress(self, packet: PacketState, requests: Requests) -> None:
        assert requests.clone_session is not None
        session = self._objects.clone_sessions.get(requests.clone_session)
        if session is None:
            self._drops["unknown_clone_session"] += 1
            add_event(packet, events.NoCloneSession(requests.clone_session))
            return
        if packet.pass_budget == 0:
            self._drop(packet, "pass_limit")
            return
        packet.pass_budget = (packet.pass_budget - 1) // 2
        clone = packet.copy(with_metadata=False)
        clone.trace = _copied(packet, EGRESS_CLONE)
        clone.copy_field_list(packet, requests.clone_field_list)
        clone.set_intrinsic("standard_metadata.instance_type", EGRESS_CLONE)
        clone.truncated_bytes = session.packet_length_bytes or None
        self._replicate(clone, session.replicas, session.class_of_service)

    def _deparse(self, packet: PacketState) -> bytes:
        deparser = next(iter(self._program.deparsers.values()))
        env = Environment(packet, self._objects)
        run_primitives(deparser.primitives, env, self._objects)
        for checksum in self._program.checksums.values():
            if checksum.update and self._applies(checksum, packet):
                calculation = self._program.calculations[checksum.calculation]
                value = calculate(calculation, packet)
                packet.set(checksum.target, value)
                report(packet, updated_place(checksum), (value,))
        return deparse(deparser, packet)


def _copied(packet: PacketState, instance_type: int) -> events.CopyTrace | None:
    """Return the trace of a copy, as part of the original's trace."""
    if packet.trace is None:
        return None
    copy = events.CopyTrace()
    add_event(packet, events.Copied(instance_type, copy))
    return copy
