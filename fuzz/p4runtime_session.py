"""One P4Runtime server with one device, and a client that holds it to the specification."""

from __future__ import annotations

import queue
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import U128, p4r, p4r_grpc, rpc_code, rpc_status
from google.protobuf import text_format
from google.protobuf.message import Message

from fuzz.read_back import canonical, difference, expectations
from fuzz.target import Finding
from weft.switch.backend import SwitchBackend
from weft.switch.p4runtime.device import Device
from weft.switch.p4runtime.service import Server

CPU_PORT = 510
_TIMEOUT_S = 60
_STREAM_TIMEOUT_S = 3600
_COMMIT = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
_CODE_NAMES = {code.value[0]: code.name for code in grpc.StatusCode}
_FORBIDDEN = frozenset({int(rpc_code.UNKNOWN), int(rpc_code.INTERNAL), int(rpc_code.DEADLINE_EXCEEDED)})
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


@dataclass(frozen=True, slots=True)
class Answer:
    """The code of an answer, those of the elements of a batch, and how many entities or messages came."""

    code: str
    details: tuple[int, ...] = ()
    count: int = 0

    def codes(self) -> list[str]:
        """All codes by name."""
        return [self.code, *(_CODE_NAMES.get(code, str(code)) for code in self.details if code)]

    def comparable(self) -> tuple[str, tuple[bool, ...], int]:
        """What the two switches have in common; which check fails first may differ."""
        return self.code, tuple(code == 0 for code in self.details), self.count


def _end(channel: grpc.Channel, server: Server) -> None:
    channel.close()
    server.stop()


class ServerUnderTest:
    """A server that gets a fresh device for every case; it ends with this, or with the process."""

    def __init__(self, socket: Path, make_backend: Callable[..., SwitchBackend]) -> None:
        self._backend = make_backend(cpu_port=CPU_PORT)
        self._devices: dict[int, Device] = {1: Device(1, self._backend, CPU_PORT)}
        self._server = Server(self._devices, f"unix:{socket}")
        self._server.start()
        self._channel = grpc.insecure_channel(self._server.address, options=_OPTIONS)
        weakref.finalize(self, _end, self._channel, self._server)
        self._stub: Any = p4r_grpc.P4RuntimeStub(self._channel)

    def run(self, config: p4r.ForwardingPipelineConfig, requests: Sequence[tuple[str, Message]]) -> list[Answer]:
        """Send all requests as the primary controller. Raises Finding."""
        self._devices[1] = Device(1, self._backend, CPU_PORT)
        stream = _Stream(self._stub)
        answers = []
        try:
            stream.exchange(_arbitration())
            self._stub.SetForwardingPipelineConfig(
                p4r.SetForwardingPipelineConfigRequest(
                    device_id=1, election_id=U128.encode(1), action=_COMMIT, config=config
                ),
                timeout=_TIMEOUT_S,
            )
            for method, request in requests:
                if method == "StreamChannel":
                    answer = stream.exchange(request)
                    if stream.ended:
                        stream = _Stream(self._stub)
                        stream.exchange(_arbitration())
                else:
                    answer = self._call(method, request)
                    if method == "Write" and answer.code == "OK":
                        self._read_back(list(request.updates))
                answers.append(answer)
        finally:
            stream.close()
        self._require_alive()
        return answers

    def _call(self, method: str, request: Message) -> Answer:
        try:
            response = getattr(self._stub, method)(request, timeout=_TIMEOUT_S)
            if method != "Read":
                return Answer("OK")
            return Answer("OK", count=sum(len(each.entities) for each in response))
        except grpc.RpcError as error:
            return _refusal(method, request, error)

    def _read_back(self, updates: list[p4r.Update]) -> None:
        for query, sent in expectations(updates):
            found = self._read(query)
            if sent is None:
                if found:
                    raise Finding(f"deleted, but read back: {text_format.MessageToString(found[0])}")
                continue
            if len(found) != 1:
                raise Finding(f"written, but {len(found)} are read back: {text_format.MessageToString(sent)}")
            problem = difference(canonical(sent), canonical(found[0]))
            if problem is not None:
                raise Finding(f"{problem}; written: {text_format.MessageToString(sent)}")

    def _read(self, query: p4r.Entity) -> list[p4r.Entity]:
        try:
            responses = self._stub.Read(p4r.ReadRequest(device_id=1, entities=[query]), timeout=_TIMEOUT_S)
            return [entity for response in responses for entity in response.entities]
        except grpc.RpcError as error:
            text = text_format.MessageToString(query)
            raise Finding(f"what was written cannot be read: {error.details()}; {text}") from error

    def _require_alive(self) -> None:
        self._stub.Capabilities(p4r.CapabilitiesRequest(), timeout=_TIMEOUT_S)
        kinds = [field.name for field in p4r.Entity.DESCRIPTOR.fields if field.name != "extern_entry"]
        for kind in kinds:
            query = p4r.Entity()
            getattr(query, kind).SetInParent()
            if kind != "packet_replication_engine_entry":
                self._read(query)


def _arbitration() -> p4r.StreamMessageRequest:
    update = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))
    return p4r.StreamMessageRequest(arbitration=update)


def _refusal(method: str, request: Message, error: grpc.RpcError) -> Answer:
    code = error.code()
    text = text_format.MessageToString(request)[:500]
    details: tuple[int, ...] = ()
    if code is grpc.StatusCode.UNKNOWN and method in ("Write", "Read"):
        metadata = dict(error.trailing_metadata() or ())
        if "grpc-status-details-bin" not in metadata:
            raise Finding(f"{method} answers UNKNOWN without details: {error.details()}; {text}")
        details = _detail_codes(metadata["grpc-status-details-bin"])
        elements = request.updates if method == "Write" else request.entities
        if len(details) != len(elements) or not any(details) or _FORBIDDEN.intersection(details):
            raise Finding(f"{method} of {len(elements)} answers {details}: {error.details()}; {text}")
    elif int(code.value[0]) in _FORBIDDEN:
        raise Finding(f"{method} answers {code.name}: {error.details()}; {text}")
    return Answer(code.name, details)


def _detail_codes(data: bytes) -> tuple[int, ...]:
    codes = []
    for detail in rpc_status.Status.FromString(data).details:
        error = p4r.Error()
        detail.Unpack(error)
        codes.append(error.canonical_code)
    return tuple(codes)


class _Stream:
    """A controller's stream. What answers a message comes before what answers the arbitration update behind it."""

    def __init__(self, stub: Any) -> None:
        self._requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        self._responses = stub.StreamChannel(iter(self._requests.get, None), timeout=_STREAM_TIMEOUT_S)
        self.ended = False

    def exchange(self, message: Message) -> Answer:
        """Send, and count the errors that come until a further arbitration update is answered."""
        assert isinstance(message, p4r.StreamMessageRequest)
        self._requests.put(message)
        awaited = 1
        if message.WhichOneof("update") == "arbitration":
            awaited += 1
        self._requests.put(_arbitration())
        errors = 0
        try:
            while awaited:
                response = next(self._responses)
                kind = response.WhichOneof("update")
                awaited -= kind == "arbitration"
                if kind == "error":
                    errors += 1
                    if response.error.canonical_code in _FORBIDDEN:
                        raise Finding(f"the stream answers {response.error.message}")
        except grpc.RpcError as error:
            self.ended = True
            self.close()  # the thread that takes requests waits for the next one
            return _refusal("StreamChannel", message, error)
        except StopIteration:
            raise Finding("the server ended the stream without a status") from None
        return Answer("OK", count=errors)

    def close(self) -> None:
        """End the stream."""
        self._requests.put(None)
