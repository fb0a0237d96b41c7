"""The gRPC server for devices: one server, several device ids."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NoReturn

import grpc
from finsy.proto import p4r, p4r_grpc
from google.protobuf import message_factory

from weft.switch.p4runtime.callers import OnlyUsers
from weft.switch.p4runtime.device import Device
from weft.switch.p4runtime.encoded_messages import (
    EncodedWriteRequest,
    PipelineRequest,
    parse_pipeline_request,
    partly_parsed,
)
from weft.switch.p4runtime.errors import (
    INTERNAL,
    RESOURCE_EXHAUSTED,
    BatchError,
    RequestError,
    status_message,
    to_status,
)
from weft.switch.p4runtime.outbox import Outbox
from weft.switch.p4runtime.stream import ControllerStream, find_device
from weft.switch.p4runtime.tls import ServerTls

API_VERSION = "1.5.0"
DEFAULT_ADDRESS = "127.0.0.1:9559"
MAX_RECEIVE_BYTES = 128 * 1024 * 1024
"""Most bytes of a request; pipeline configs are large (P4Runtime §19.3.2)."""
MAX_THREADS = 512
"""Most threads; each open stream occupies one."""
MAX_STREAMS = MAX_THREADS - 64
"""Most streams; further ones are refused, so that threads are left for other calls."""
PUMP_INTERVAL_S = 0.1
"""Longest time until a pump notices that it should stop."""

_LOGGER = logging.getLogger(__name__)
_SERVICE = p4r.DESCRIPTOR.services_by_name["P4Runtime"]
_METHODS = {method.name: method for method in _SERVICE.methods}
_HANDLERS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}
_STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}


class P4RuntimeService(p4r_grpc.P4RuntimeServicer):
    """The P4Runtime service over `devices` by device id."""

    def __init__(self, devices: Mapping[int, Device]) -> None:
        self._devices = devices
        self._streams = threading.BoundedSemaphore(MAX_STREAMS)

    def Write(self, request: Any, context: grpc.ServicerContext) -> p4r.WriteResponse:
        """Apply a batch of updates, given an `EncodedWriteRequest`."""
        try:
            find_device(self._devices, request.device_id).write(request)
        except Exception as error:
            abort(context, error)
        return p4r.WriteResponse()

    def Read(self, request: p4r.ReadRequest, context: grpc.ServicerContext) -> Iterator[p4r.ReadResponse]:
        """Stream the entities that the queries select."""
        try:
            yield from find_device(self._devices, request.device_id).read(request)
        except Exception as error:
            abort(context, error)

    def SetForwardingPipelineConfig(
        self, request: PipelineRequest, context: grpc.ServicerContext
    ) -> p4r.SetForwardingPipelineConfigResponse:
        """Verify, save or realize a pipeline."""
        try:
            find_device(self._devices, request.device_id).set_pipeline(request)
        except Exception as error:
            abort(context, error)
        return p4r.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(
        self, request: p4r.GetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the pipeline that runs."""
        try:
            return find_device(self._devices, request.device_id).get_pipeline(request)
        except Exception as error:
            abort(context, error)

    def Capabilities(self, request: p4r.CapabilitiesRequest, context: grpc.ServicerContext) -> p4r.CapabilitiesResponse:
        """Return the API version."""
        try:
            if request.device_id:
                find_device(self._devices, request.device_id)
        except Exception as error:
            abort(context, error)
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def StreamChannel(
        self, request_iterator: Iterator[p4r.StreamMessageRequest], context: grpc.ServicerContext
    ) -> Iterator[p4r.StreamMessageResponse]:
        """Serve one controller until it leaves or breaks the rules of arbitration."""
        if not self._streams.acquire(blocking=False):
            abort(context, RequestError(RESOURCE_EXHAUSTED, f"{MAX_STREAMS} streams are open already"))
        if not context.add_callback(self._streams.release):
            self._streams.release()  # the call is over already
            return
        outbox = Outbox()
        reader = threading.Thread(
            target=self._read_stream, args=(request_iterator, outbox), name="p4runtime-stream", daemon=True
        )
        reader.start()
        yield from outbox
        if outbox.failure is not None:
            abort(context, outbox.failure)

    def _read_stream(self, requests: Iterable[p4r.StreamMessageRequest], outbox: Outbox) -> None:
        stream = ControllerStream(self._devices, outbox.put)
        failure: Exception | None = None
        try:
            for message in requests:
                stream.take(message)
        except RequestError as error:
            failure = error
        except grpc.RpcError:
            pass  # the controller has gone
        except Exception as error:
            failure = error  # a bug, which the controller receives as INTERNAL
        finally:
            stream.close()
            outbox.close(failure)


def parse_request(method: str, data: bytes, shared: bytes = b"") -> Any:
    """Return the request of a method, given by name; a write's updates and a pipeline's config stay bytes.

    `shared` is appended to `data`: fields that other requests have, too.
    """
    if method == "SetForwardingPipelineConfig":
        return parse_pipeline_request(data, shared)
    original = message_factory.GetMessageClass(_METHODS[method].input_type)
    if method == "Write":
        return partly_parsed(EncodedWriteRequest, original, data + shared)
    return original.FromString(data + shared)


def rpc_handler(service: P4RuntimeService) -> grpc.GenericRpcHandler:
    """Return the service for a gRPC server, like the generated code except for the request parser."""
    handlers = {}
    for name, method in _METHODS.items():
        make = _HANDLERS[method.client_streaming, method.server_streaming]
        handlers[name] = make(
            getattr(service, name),
            request_deserializer=partial(parse_request, name),
            response_serializer=message_factory.GetMessageClass(method.output_type).SerializeToString,
        )
    return grpc.method_handlers_generic_handler(_SERVICE.full_name, handlers)


def abort(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    """End a call with the status of `error`; `context.abort` raises."""
    if isinstance(error, BatchError):
        details = to_status(error).SerializeToString()
        context.set_trailing_metadata((("grpc-status-details-bin", details),))
    elif not isinstance(error, RequestError):
        error = _unforeseen(error)
    context.abort(_STATUS_CODES[error.code], status_message(error))
    raise AssertionError("abort raises")


def _unforeseen(error: Exception) -> RequestError:
    if isinstance(error, MemoryError):
        return RequestError(RESOURCE_EXHAUSTED, "the switch has not enough memory for this")
    _LOGGER.error("internal error", exc_info=error)
    return RequestError(INTERNAL, f"internal error: {error!r}")


class EventPump(threading.Thread):
    """Passes the events of one switch on to its Device."""

    def __init__(self, device: Device) -> None:
        super().__init__(name=f"p4runtime-events-{device.device_id}", daemon=True)
        self._device = device
        self._stopping = threading.Event()

    def run(self) -> None:
        """Wait for events and for digest deadlines until stopped."""
        wait_s: float | None = None
        while not self._stopping.is_set():
            timeout_s = PUMP_INTERVAL_S if wait_s is None else min(wait_s, PUMP_INTERVAL_S)
            try:
                event = self._device.backend.wait_stream_event(timeout_s)
                if event is not None:
                    self._device.on_event(event)
                wait_s = self._device.on_time()
            except Exception:
                # one bad event must not silence the device permanently
                _LOGGER.exception("device %d: an event of the switch was lost", self._device.device_id)
                self._stopping.wait(PUMP_INTERVAL_S)

    def stop(self) -> None:
        """Let the thread end soon."""
        self._stopping.set()


def _why_not(address: str) -> str:
    """Return the kernel's reason for refusing an address, which gRPC does not report; "" if unknown."""
    if address.startswith("unix:"):
        return _why_no_socket(address.removeprefix("unix:"))
    host, _, port = address.rpartition(":")
    try:
        family, kind, protocol, _, resolved = socket.getaddrinfo(
            host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as trial:
            trial.bind(resolved)
    except OSError as error:
        return error.strerror or ""
    return ""


def _why_no_socket(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as trial:
        try:
            trial.bind(path)
        except OSError as error:
            return error.strerror or str(error)
    os.unlink(path)
    return ""


class Server:
    """A gRPC server; `address` has the port actually bound, which answers from `start` on."""

    def __init__(
        self,
        devices: Mapping[int, Device],
        address: str = DEFAULT_ADDRESS,
        tls: ServerTls | None = None,
        other_services: Sequence[grpc.GenericRpcHandler] = (),
        more_addresses: Sequence[str] = (),
        more_for_users: Collection[int] | None = None,
    ) -> None:
        """Listen on an address, with TLS if configured, and on further addresses without TLS.

        Only processes of the users in `more_for_users` may call the latter; None: all users of this machine.

        Raises:
            OSError: listening on an address failed.
        """
        self._pumps = [EventPump(device) for device in devices.values()]
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="p4runtime")
        self._server = grpc.server(
            self._threads,
            options=[("grpc.max_receive_message_length", MAX_RECEIVE_BYTES), ("grpc.so_reuseport", 0)],
            interceptors=[] if more_for_users is None else [OnlyUsers(more_for_users, more_addresses)],
        )
        self._server.add_generic_rpc_handlers((rpc_handler(P4RuntimeService(devices)), *other_services))
        is_socket = address.startswith("unix:")
        # Only a socket's owner may use it, as P4Runtime has no authentication.
        umask = os.umask(0o177) if is_socket else None
        try:
            if tls is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, tls.credentials())
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}: {_why_not(address) or error}") from error
        finally:
            if umask is not None:
                os.umask(umask)
        host = address.rpartition(":")[0]
        self.address = address if is_socket else f"{host}:{port}"
        for each in more_addresses:
            try:
                self._server.add_insecure_port(each)
            except RuntimeError as error:
                raise OSError(f"cannot listen on {each}: {_why_not(each) or error}") from error

    def start(self) -> None:
        """Start serving."""
        for pump in self._pumps:
            pump.start()
        self._server.start()

    def stop(self) -> None:
        """End all streams and stop serving."""
        for pump in self._pumps:
            pump.stop()
        self._server.stop(grace=None).wait()
        self._threads.shutdown(wait=False)  # gRPC does not stop it; do not wait for a call that hangs
        for pump in self._pumps:
            if pump.ident is not None:
                pump.join()
