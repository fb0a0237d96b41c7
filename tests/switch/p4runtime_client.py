"""A plain P4Runtime client for tests: raw protobufs, errors as they come over the wire."""

from __future__ import annotations

import queue
import weakref
from collections.abc import Callable, Iterator

import grpc
import pytest
from finsy.proto import U128, p4r, p4r_grpc, rpc_status
from router_program import router_config, update

TIMEOUT_S = 20


def batch_errors(error: grpc.RpcError) -> list[p4r.Error]:
    """The p4.v1.Error of each element of a failed batch."""
    metadata = dict(error.trailing_metadata())
    status = rpc_status.Status.FromString(metadata["grpc-status-details-bin"])
    errors = []
    for detail in status.details:
        unpacked = p4r.Error()
        assert detail.Unpack(unpacked)
        errors.append(unpacked)
    return errors


class P4RuntimeClient:
    """One stream, for one device and role; it ends with `close`, or when nobody holds the client any more."""

    def __init__(self, address: str, device_id: int = 1, election_id: int | None = 1, role: str = "") -> None:
        self.address = address
        self._channel = grpc.insecure_channel(address)
        self.stub = p4r_grpc.P4RuntimeStub(self._channel)
        self.device_id = device_id
        self.election_id = election_id
        self.role = role
        self._requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        self.responses = self.stub.StreamChannel(iter(self._requests.get, None), timeout=TIMEOUT_S)
        self._end = weakref.finalize(self, self._requests.put, None)

    def send(self, **update: object) -> None:
        self._requests.put(p4r.StreamMessageRequest(**update))

    def arbitrate(self, election_id: int | None = None, **more: object) -> p4r.MasterArbitrationUpdate:
        message = p4r.MasterArbitrationUpdate(device_id=self.device_id, **more)
        chosen = self.election_id if election_id is None else election_id
        if chosen is not None:
            message.election_id.CopyFrom(U128.encode(chosen))
        if self.role:
            message.role.name = self.role
        self.send(arbitration=message)
        return self.receive("arbitration").arbitration

    def receive(self, kind: str) -> p4r.StreamMessageResponse:
        response = next(self.responses)
        assert response.WhichOneof("update") == kind, response
        return response

    def set_pipeline(self, action: str = "VERIFY_AND_COMMIT", **config: object) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id, role=self.role, action=action, **config
        )
        if self.election_id is not None:
            request.election_id.CopyFrom(U128.encode(self.election_id))
        self.stub.SetForwardingPipelineConfig(request, timeout=TIMEOUT_S)

    def write_updates(self, *updates: p4r.Update, **more: object) -> None:
        request = p4r.WriteRequest(device_id=self.device_id, role=self.role, updates=updates, **more)
        if self.election_id is not None:
            request.election_id.CopyFrom(U128.encode(self.election_id))
        self.stub.Write(request, timeout=TIMEOUT_S)

    def write(self, kind: str, text: str) -> None:
        self.write_updates(update(kind, text))

    def write_error(self, kind: str, text: str) -> p4r.Error:
        """The error of an update that must fail."""
        with pytest.raises(grpc.RpcError) as caught:
            self.write(kind, text)
        assert caught.value.code() == grpc.StatusCode.UNKNOWN
        (found,) = batch_errors(caught.value)
        return found

    def read(self, *queries: p4r.Entity) -> list[p4r.Entity]:
        request = p4r.ReadRequest(device_id=self.device_id, entities=queries)
        return [found for response in self.stub.Read(request, timeout=TIMEOUT_S) for found in response.entities]

    def close(self) -> None:
        self._end()
        self._channel.close()


def connected(address: str, device_id: int = 1, **config: object) -> P4RuntimeClient:
    """A client that is primary and has set the router's pipeline."""
    client = P4RuntimeClient(address, device_id)
    client.arbitrate()
    client.set_pipeline(config=router_config())
    return client


def code_of(call: Callable[[], object]) -> grpc.StatusCode:
    """The status code of a call that must fail."""
    with pytest.raises(grpc.RpcError) as caught:
        _finish(call())
    return caught.value.code()


def _finish(result: object) -> None:
    if isinstance(result, Iterator):
        list(result)
