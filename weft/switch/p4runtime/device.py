"""One switch behind P4Runtime: arbitration, pipeline, entities and stream messages, independent of gRPC.

A virtual-clock run calls a Device directly, so that packet-ins and digests repeat exactly.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from finsy.proto import p4r

from weft.quantities.units import NS_PER_S
from weft.switch.backend import (
    BackendError,
    Digest,
    IdleTimeout,
    PacketIn,
    StreamEvent,
    SwitchBackend,
)
from weft.switch.p4runtime.arbitration import Arbitration
from weft.switch.p4runtime.batches import Outcome, apply_batch
from weft.switch.p4runtime.encoded_messages import PipelineRequest, decode_update
from weft.switch.p4runtime.errors import (
    FAILED_PRECONDITION,
    NOT_FOUND,
    PERMISSION_DENIED,
    UNIMPLEMENTED,
    RequestError,
    backend_code,
    invalid,
    place,
    raise_for_batch,
)
from weft.switch.p4runtime.packet_io import decode_packet_in, encode_packet_out
from weft.switch.p4runtime.pipeline import Pipeline, bind
from weft.switch.p4runtime.preserve import check_same_names, restore, state_of
from weft.switch.p4runtime.read_answer import ReadAnswer
from weft.switch.p4runtime.roles import Role
from weft.switch.p4runtime.session import Session
from weft.switch.p4runtime.tables import EntryKey
from weft.switch.p4runtime.translation import Ports


class Client:
    """A controller's stream; `send` must not block."""

    def __init__(self, send: Callable[[p4r.StreamMessageResponse], None]) -> None:
        self.send = send


class Device:
    """The P4Runtime state of one switch. Safe to call from several threads."""

    def __init__(
        self,
        device_id: int,
        backend: SwitchBackend,
        cpu_port: int,
        clock_ns: Callable[[], int] = time.time_ns,
        port_names: Mapping[str, int] | None = None,
        port_numbers: Collection[int] | None = None,
    ) -> None:
        self.device_id = device_id
        self.backend = backend
        numbers = None if port_numbers is None else frozenset(port_numbers)
        self._ports = Ports(cpu_port, port_names or {}, numbers)
        self._clock_ns = clock_ns
        self._lock = threading.RLock()
        self._arbitration: Arbitration[Client] = Arbitration(device_id)
        self._session: Session | None = None
        self._staged: Session | None = None
        self._staged_updates: list[p4r.Update] = []

    # pipeline

    def set_pipeline(self, request: PipelineRequest) -> None:
        """SetForwardingPipelineConfig (§14)."""
        head, config = request.head, request.config
        actions = p4r.SetForwardingPipelineConfigRequest
        with self._lock:
            self._require_primary(head)
            if not self._arbitration.rights(head.role).can_push_pipeline:
                raise RequestError(PERMISSION_DENIED, "the role may not set the forwarding pipeline")
            if head.action == actions.COMMIT:
                if config is not None:
                    raise invalid("COMMIT takes no config: it realizes the saved one")
                self._commit_staged()
                return
        if head.action not in actions.Action.values() or head.action == actions.UNSPECIFIED:
            raise invalid(f"action {head.action} is none", valid=actions.Action.keys()[1:])
        if config is None:
            raise invalid("config is not set")
        pipeline = self._verify(config)  # takes a while, so others are served meanwhile
        with self._lock:
            self._require_primary(head)
            match head.action:
                case actions.VERIFY_AND_SAVE:
                    self._staged, self._staged_updates = self._load(_rehearsal(), pipeline), []
                case actions.VERIFY_AND_COMMIT:
                    self._session, self._staged = self._load(self.backend, pipeline), None
                case actions.RECONCILE_AND_COMMIT:
                    self._reconcile(pipeline)

    def _verify(self, config: bytes) -> Pipeline:
        pipeline = bind(config, self._ports)
        with place("p4_device_config"):
            self.backend.verify(pipeline.program)
        return pipeline

    def _reconcile(self, pipeline: Pipeline) -> None:
        """Run another pipeline with the current forwarding state; no packet is processed in between."""
        old = self._session
        if old is None:
            self._session, self._staged = self._load(self.backend, pipeline), None
            return
        check_same_names(old.pipeline, pipeline)
        updates = state_of(old)
        restore(self._load(_rehearsal(), pipeline), old.pipeline, updates)
        with self.backend.atomically():
            self._session, self._staged = self._load(self.backend, pipeline), None
            restore(self._session, old.pipeline, updates)

    def load(self, config: p4r.ForwardingPipelineConfig) -> None:
        """Run a pipeline from the command line instead of from a controller.

        Raises RequestError if it cannot be used.
        """
        pipeline = bind(config.SerializeToString(deterministic=True), self._ports)
        with self._lock:
            self._session = self._load(self.backend, pipeline)

    def _load(self, backend: SwitchBackend, pipeline: Pipeline) -> Session:
        with place("p4_device_config"):
            backend.load(pipeline.program, pipeline.preinitialized)
        return Session(pipeline, backend, self._ports)

    def _commit_staged(self) -> None:
        if self._staged is None:
            raise RequestError(NOT_FOUND, "no config is saved: VERIFY_AND_SAVE comes first")
        self._session = self._load(self.backend, self._staged.pipeline)
        for update in self._staged_updates:
            self._session.write(update)
        self._staged, self._staged_updates = None, []

    def get_pipeline(self, request: p4r.GetForwardingPipelineConfigRequest) -> p4r.GetForwardingPipelineConfigResponse:
        """GetForwardingPipelineConfig (§15); a saved config counts as the current one."""
        with self._lock:
            session = self._staged or self._session
        response = p4r.GetForwardingPipelineConfigResponse()
        if session is None:
            return response
        config, wanted = session.pipeline.config, request.response_type
        kinds = p4r.GetForwardingPipelineConfigRequest
        response.config.SetInParent()
        if config.HasField("cookie"):
            response.config.cookie.CopyFrom(config.cookie)
        if wanted in (kinds.ALL, kinds.P4INFO_AND_COOKIE):
            response.config.p4info.CopyFrom(config.p4info)
        if wanted in (kinds.ALL, kinds.DEVICE_CONFIG_AND_COOKIE):
            response.config.p4_device_config = config.p4_device_config
        return response

    # entities

    def _require_primary(self, request: p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest) -> None:
        election_id = request.election_id if request.HasField("election_id") else None
        self._arbitration.require_primary(request.role, election_id)

    def _require_session(self) -> Session:
        session = self._staged or self._session
        if session is None:
            raise RequestError(FAILED_PRECONDITION, "no forwarding pipeline config has been set")
        return session

    def _running(self) -> Session:
        """The session that processes packets, not one saved to be committed later."""
        if self._session is None:
            raise RequestError(FAILED_PRECONDITION, "no forwarding pipeline config runs")
        return self._session

    def write(self, request: Any) -> None:
        """Write (§12), given an `EncodedWriteRequest`.

        Raises BatchError if some updates failed; see `apply_batch` for the others.
        """
        with self._lock:
            self._require_primary(request)
            session, role = self._require_session(), self._arbitration.rights(request.role)
            outcome = apply_batch(session, request.updates, request.atomicity, role)
            if session is self._staged:
                self._keep(request.updates, outcome)
        raise_for_batch("updates", outcome)

    def _keep(self, encoded: Iterable[bytes], outcome: Outcome) -> None:
        """Keep the successful updates, to write them again when the saved config is committed."""
        for update, error in zip(encoded, outcome, strict=True):
            if error is None:
                self._staged_updates.append(decode_update(update))

    def read(self, request: p4r.ReadRequest) -> Iterator[p4r.ReadResponse]:
        """Read (§13). Raises BatchError, after all readable entities, if some queries failed."""
        answer = ReadAnswer()
        errors: list[RequestError | None] = []
        with self._lock:
            session, role = self._require_session(), self._arbitration.rights(request.role)
            for query in request.entities:
                try:
                    entities = filter(role.owns, session.read(query))
                    if session.is_of_cells(query):
                        answer.add_later(entities)
                    else:
                        answer.add(entities)
                    errors.append(None)
                except RequestError as error:
                    errors.append(error)
        yield from answer.messages()
        raise_for_batch("queries", errors)

    # streams

    def arbitrate(self, client: Client, message: p4r.MasterArbitrationUpdate) -> None:
        """Process a controller's arbitration update and notify all affected controllers."""
        with self._lock:
            for receiver, notification in self._arbitration.update(client, message):
                receiver.send(p4r.StreamMessageResponse(arbitration=notification))

    def disconnect(self, client: Client) -> None:
        """Process the end of a controller's stream."""
        with self._lock:
            for receiver, notification in self._arbitration.disconnect(client):
                receiver.send(p4r.StreamMessageResponse(arbitration=notification))

    def on_stream_message(self, client: Client, message: p4r.StreamMessageRequest) -> None:
        """Process a packet-out or a digest acknowledgement.

        Errors are reported on the stream (§16.7).
        """
        try:
            with self._lock:
                if not self._arbitration.is_primary(client):
                    raise RequestError(PERMISSION_DENIED, "only the primary controller may send this")
                self._handle_stream_message(message, self._arbitration.rights_of(client))
        except RequestError as error:
            client.send(stream_error(message, error))

    def _handle_stream_message(self, message: p4r.StreamMessageRequest, role: Role) -> None:
        match message.WhichOneof("update"):
            case "packet":
                if not role.packet_io:
                    raise RequestError(PERMISSION_DENIED, "the role may not send packets")
                data = encode_packet_out(self._running().pipeline.packet_out, message.packet)
                try:
                    self.backend.packet_out(data)
                except BackendError as error:
                    raise RequestError(backend_code(error), error) from error
            case "digest_ack":
                self._running().digests.acknowledge(message.digest_ack)
            case _:
                raise RequestError(UNIMPLEMENTED, "this kind of stream message is not supported")

    def on_event(self, event: StreamEvent) -> None:
        """Pass an event of the switch on to the primary controllers."""
        with self._lock:
            session = self._session
            if session is None:
                return
            match event:
                case PacketIn(data):
                    packet = decode_packet_in(session.pipeline.packet_in, data)
                    if packet is not None:
                        response = p4r.StreamMessageResponse(packet=packet)
                        self._send_to_primaries(response, lambda role: role.receives(packet))
                case Digest():
                    self._send_digests(session.digests.on_digest(event, self._clock_ns()))
                case IdleTimeout(table, key, priority):
                    self._send_idle_timeout(session, table, (key, priority))

    def on_time(self) -> float | None:
        """Send the digest lists that are due; return the seconds until the next one (None: none waits)."""
        with self._lock:
            if self._session is None:
                return None
            digests, now_ns = self._session.digests, self._clock_ns()
            self._send_digests(digests.on_time(now_ns))
            deadline_ns = digests.next_deadline_ns()
            return None if deadline_ns is None else max(0.0, (deadline_ns - now_ns) / NS_PER_S)

    def _send_digests(self, lists: list[p4r.DigestList]) -> None:
        for digest_list in lists:
            self._send_digest_list(digest_list)

    def _send_digest_list(self, digest_list: p4r.DigestList) -> None:
        about = p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=digest_list.digest_id))
        response = p4r.StreamMessageResponse(digest=digest_list)
        self._send_to_primaries(response, lambda role: role.owns(about))

    def _send_idle_timeout(self, session: Session, table: str, key: EntryKey) -> None:
        stored = session.tables.message_of(table, key)
        if stored is not None:
            notification = p4r.IdleTimeoutNotification(table_entry=[stored], timestamp=self._clock_ns())
            response = p4r.StreamMessageResponse(idle_timeout_notification=notification)
            about = p4r.Entity(table_entry=stored)
            self._send_to_primaries(response, lambda role: role.owns(about))

    def _send_to_primaries(self, response: p4r.StreamMessageResponse, concerns: Callable[[Role], bool]) -> None:
        for client, role in self._arbitration.primaries():
            if concerns(role):
                client.send(response)


def stream_error(message: p4r.StreamMessageRequest, error: RequestError) -> p4r.StreamMessageResponse:
    """Return the StreamError for `message`, with `details` of the message's kind."""
    answer = p4r.StreamError(canonical_code=error.code, message=error.message, space="weft")
    match message.WhichOneof("update"):
        case "packet":
            answer.packet_out.packet_out.CopyFrom(message.packet)
        case "digest_ack":
            answer.digest_list_ack.digest_list_ack.CopyFrom(message.digest_ack)
        case _:
            answer.other.other.CopyFrom(message.other)
    return p4r.StreamMessageResponse(error=answer)


def _rehearsal() -> SwitchBackend:
    """Return a switch that accepts entries in place of the device's switch."""
    # Not at the top: few controllers save or reconcile a pipeline, and imports delay every run.
    from weft.switch.oracle import OracleSwitch

    return OracleSwitch()
