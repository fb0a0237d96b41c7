"""The gNMI service: Capabilities, Get and Subscribe; Set is refused.

Each Subscribe call occupies a thread of the server, and gRPC keeps that thread until the client has taken the last
message. So a slow client holds up only its own call, with one message in memory.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, NoReturn, TypeVar

import grpc
from finsy.proto import gnmi

from weft.quantities.units import NS_PER_S
from weft.switch.daemon.calls import abort
from weft.switch.daemon.port_service import PortBoard
from weft.switch.daemon.wired_switches import WiredSwitch
from weft.switch.gnmi.errors import GnmiError
from weft.switch.gnmi.notifications import ENCODINGS, Reader, check_encoding, notifications, targets
from weft.switch.gnmi.paths import Selection, select
from weft.switch.gnmi.subscriptions import MAX_SUBSCRIPTIONS, Schedule, schedules

SERVICE = "gnmi.gNMI"
MAX_SUBSCRIBERS = 16
"""Most Subscribe calls at a time: each occupies a thread of the server, which P4Runtime needs, too."""
MAX_READ_VALUES = 100_000
"""Most values in an answer to Get."""
MODELS = (
    ("openconfig-interfaces", "3.5.0"),
    ("openconfig-p4rt", "0.4.0"),
    ("openconfig-qos", "0.7.0"),
)
"""The public models and the versions that the leaves were compared with."""
_Answer = TypeVar("_Answer")


def handler(switches: Mapping[int, WiredSwitch], board: PortBoard) -> grpc.GenericRpcHandler:
    """Return a handler with which a gRPC server serves gNMI for switches and the states of their ports."""
    service = _Service(switches, board)
    methods = {
        "Capabilities": grpc.unary_unary_rpc_method_handler(
            _unary(service.capabilities),
            gnmi.CapabilityRequest.FromString,
            gnmi.CapabilityResponse.SerializeToString,
        ),
        "Get": grpc.unary_unary_rpc_method_handler(
            _unary(service.get), gnmi.GetRequest.FromString, gnmi.GetResponse.SerializeToString
        ),
        "Set": grpc.unary_unary_rpc_method_handler(
            _unary(service.set), gnmi.SetRequest.FromString, gnmi.SetResponse.SerializeToString
        ),
        "Subscribe": grpc.stream_stream_rpc_method_handler(
            service.subscribe, gnmi.SubscribeRequest.FromString, gnmi.SubscribeResponse.SerializeToString
        ),
    }
    return grpc.method_handlers_generic_handler(SERVICE, methods)


def _unary(serve: Callable[[Any], _Answer]) -> Callable[[Any, grpc.ServicerContext], _Answer]:
    @wraps(serve)
    def answer(request: Any, context: grpc.ServicerContext) -> _Answer:
        try:
            return serve(request)
        except GnmiError as error:
            abort(context, error.code, str(error))

    return answer


class _Service:
    def __init__(self, switches: Mapping[int, WiredSwitch], board: PortBoard) -> None:
        self._switches = switches
        self._board = board
        self._reader = Reader(board.states)
        self._free = threading.BoundedSemaphore(MAX_SUBSCRIBERS)

    def capabilities(self, request: gnmi.CapabilityRequest) -> gnmi.CapabilityResponse:
        _refuse_extensions(request.extension)
        return gnmi.CapabilityResponse(
            supported_models=[
                gnmi.ModelData(name=name, organization="OpenConfig working group", version=version)
                for name, version in MODELS
            ],
            supported_encodings=ENCODINGS,
            gNMI_version=gnmi.DESCRIPTOR.GetOptions().Extensions[gnmi.gnmi_service],
        )

    def set(self, _request: gnmi.SetRequest) -> NoReturn:
        raise GnmiError(
            "Set is not supported: P4Runtime writes tables, and weft controller changes links",
            code=grpc.StatusCode.UNIMPLEMENTED,
        )

    def get(self, request: gnmi.GetRequest) -> gnmi.GetResponse:
        _refuse_extensions(request.extension)
        _refuse_models(request.use_models)
        check_encoding(request.encoding)
        if request.type not in gnmi.GetRequest.DataType.values():
            raise GnmiError(f"unknown type {request.type}", valid=gnmi.GetRequest.DataType.keys())
        if len(request.path) > MAX_SUBSCRIPTIONS:
            raise GnmiError(f"{len(request.path)} paths", valid=f"at most {MAX_SUBSCRIPTIONS}")
        chosen = targets(self._switches.values(), request.prefix.target)
        paths = [select(path, request.prefix) for path in request.path or [gnmi.Path()]]
        answer = gnmi.GetResponse()
        left = MAX_READ_VALUES
        for selections in paths:
            if request.type == gnmi.GetRequest.CONFIG:  # no leaf is configuration
                selections = ()
            found = False
            for wired in chosen:
                reads = self._reader.read(wired, selections)
                found |= bool(reads)
                left -= len(reads)
                if left < 0:
                    raise GnmiError(
                        f"the answer has more than {MAX_READ_VALUES} values: name fewer, or Subscribe with ONCE",
                        code=grpc.StatusCode.RESOURCE_EXHAUSTED,
                    )
                answer.notification.extend(notifications(reads, request.encoding, _label(request.prefix, wired)))
            if selections and not found:
                raise GnmiError(
                    f"nothing has the path {selections[0].leaf}{_keys(selections[0])}", code=grpc.StatusCode.NOT_FOUND
                )
        return answer

    def subscribe(
        self, requests: Iterator[gnmi.SubscribeRequest], context: grpc.ServicerContext
    ) -> Iterator[gnmi.SubscribeResponse]:
        # Before the first message: a client that never sends one occupies a thread, too.
        if not self._free.acquire(blocking=False):
            abort(context, grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MAX_SUBSCRIBERS} clients have subscribed already")
        call = _Call(self._reader, self._board, self._switches)
        try:
            if context.add_callback(call.end):
                yield from call.serve(requests)
        except GnmiError as error:
            abort(context, error.code, str(error))
        except grpc.RpcError:
            return  # the client has gone while the next request was awaited
        finally:
            call.close()
            self._free.release()


class _Call:
    """One Subscribe call."""

    def __init__(self, reader: Reader, board: PortBoard, switches: Mapping[int, WiredSwitch]) -> None:
        self._reader = reader
        self._board = board
        self._switches = switches
        self._wake = threading.Event()
        self._news = False
        self._ended = False

    def end(self) -> None:
        """Stop: the client has gone, or the server stops."""
        self._ended = True
        self._wake.set()

    def _notice(self) -> None:
        self._news = True
        self._wake.set()

    def close(self) -> None:
        """Free everything."""
        self._board.unlisten(self._notice)

    def serve(self, requests: Iterator[gnmi.SubscribeRequest]) -> Iterator[gnmi.SubscribeResponse]:
        """Yield the answers until the call ends. Raises GnmiError if a request is refused."""
        first = next(requests, None)
        if first is None:
            return
        _refuse_extensions(first.extension)
        if first.WhichOneof("request") != "subscribe":
            raise GnmiError("the first message of a call is a subscription list")
        asked = first.subscribe
        if asked.mode not in gnmi.SubscriptionList.Mode.values():
            raise GnmiError(f"unknown mode {asked.mode}", valid=gnmi.SubscriptionList.Mode.keys())
        _refuse_models(asked.use_models)
        check_encoding(asked.encoding)
        self._asked = asked
        # On the wire JSON is the same as no encoding. finsy, whose Switch subscribes to ports, gives none, and takes
        # only scalars, which Stratum sends; other clients take a leaf either way.
        self._encoding = gnmi.PROTO if asked.encoding == gnmi.JSON else asked.encoding
        self._chosen = targets(self._switches.values(), asked.prefix.target)
        is_stream = asked.mode == gnmi.SubscriptionList.STREAM
        plan = schedules(asked.subscription, asked.prefix, is_stream)
        if is_stream:
            self._board.listen(self._notice)  # before the first reading, so that no change is missed
        yield from self._all(plan, is_silent=asked.updates_only)
        yield gnmi.SubscribeResponse(sync_response=True)
        if is_stream:
            yield from self._stream(plan)
        elif asked.mode == gnmi.SubscriptionList.POLL:
            for request in requests:
                _refuse_extensions(request.extension)
                if request.WhichOneof("request") != "poll":
                    raise GnmiError("a call in POLL mode takes only polls after its subscription list")
                yield from self._all(plan, is_silent=False)
                yield gnmi.SubscribeResponse(sync_response=True)

    def _all(self, plan: Iterable[Schedule], is_silent: bool) -> Iterator[gnmi.SubscribeResponse]:
        """Yield the present values of all leaves and remember them; if silent, only remember."""
        for each in plan:
            for wired in self._chosen:
                reads = self._reader.read(wired, each.selections)
                each.changed(wired.config.name, reads)
                if not is_silent:
                    yield from self._send(wired, reads)

    def _stream(self, plan: list[Schedule]) -> Iterator[gnmi.SubscribeResponse]:
        for each in plan:
            each.begin(time.monotonic_ns())
        while not self._ended:
            wait_ns = min(each.next_ns for each in plan) - time.monotonic_ns()
            self._wake.wait(max(0, wait_ns) / NS_PER_S)
            self._wake.clear()
            if has_news := self._news:
                self._news = False  # before the reading: a change that comes now is read, too
            now_ns = time.monotonic_ns()
            for each in [each for each in plan if each.is_due(now_ns, has_news)]:
                is_beat = each.starts_beat(now_ns)
                for wired in self._chosen:
                    if self._ended:
                        return
                    reads = self._reader.read(wired, each.selections)
                    changed = each.changed(wired.config.name, reads)
                    yield from self._send(wired, reads if is_beat else changed)

    def _send(self, wired: WiredSwitch, reads: list[tuple[Selection, Any, Any]]) -> Iterator[gnmi.SubscribeResponse]:
        label = _label(self._asked.prefix, wired)
        for notification in notifications(reads, self._encoding, label):
            yield gnmi.SubscribeResponse(update=notification)


def _label(prefix: gnmi.Path, wired: WiredSwitch) -> str:
    """Return the target in answers: the switch's name if the client has asked for a target."""
    return wired.config.name if prefix.target else ""


def _keys(selection: Selection) -> str:
    wanted = [repr(each) for each in selection.wanted if each is not None]
    return f" with {', '.join(wanted)}"[:128] if wanted else ""


def _refuse_extensions(extensions: Iterable[Any]) -> None:
    if any(True for _ in extensions):
        raise GnmiError("gNMI extensions are not supported", code=grpc.StatusCode.UNIMPLEMENTED)


def _refuse_models(models: Iterable[Any]) -> None:
    if any(True for _ in models):
        raise GnmiError("use_models is not supported: paths name the model", code=grpc.StatusCode.UNIMPLEMENTED)
