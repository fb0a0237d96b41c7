"""The state of switches' ports, for any client: a gRPC method that P4Runtime lacks.

`/weft.Ports/Watch` takes an empty message and answers with a stream of JSON: `{"ports": [[device_id, port, up], …]}`,
first all ports that have an interface, then each change. `weft.controller.port_states` is its client.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import grpc

SERVICE = "weft.Ports"
METHOD = "Watch"
MAX_WATCHERS = 32
"""Most watchers; each occupies a thread of the server."""

PortKey = tuple[int, int]


class TooManyError(RuntimeError):
    """No thread is left for another watcher."""


class PortBoard:
    """The last known states of ports, by device id and number; thread-safe."""

    def __init__(self) -> None:
        self._up: dict[PortKey, bool] = {}
        self._watchers: list[SimpleQueue[bytes | None]] = []
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def states(self) -> dict[PortKey, bool]:
        """Return the last known states."""
        with self._lock:
            return dict(self._up)

    def listen(self, notice: Callable[[], None]) -> None:
        """Call `notice` after each change from now on, until `unlisten`; it must return at once."""
        with self._lock:
            self._listeners.append(notice)

    def unlisten(self, notice: Callable[[], None]) -> None:
        """Stop the calls of `notice`."""
        with self._lock:
            if notice in self._listeners:
                self._listeners.remove(notice)

    def set_up(self, device_id: int, port: int, up: bool) -> None:
        """Record a port's state, and notify the watchers if it has changed."""
        with self._lock:
            if self._up.get((device_id, port)) == up:
                return
            self._up[device_id, port] = up
            for watcher in self._watchers:
                watcher.put(_message({(device_id, port): up}))
            for notice in self._listeners:
                notice()

    def watch(self) -> SimpleQueue[bytes | None]:
        """Return a queue of messages. Raises TooManyError if there are too many watchers."""
        with self._lock:
            if len(self._watchers) >= MAX_WATCHERS:
                raise TooManyError(f"{MAX_WATCHERS} watch the ports already")
            watcher: SimpleQueue[bytes | None] = SimpleQueue()
            watcher.put(_message(self._up))
            self._watchers.append(watcher)
            return watcher

    def leave(self, watcher: SimpleQueue[bytes | None]) -> None:
        """Stop notifying a watcher; its queue ends with None."""
        with self._lock:
            if watcher in self._watchers:
                self._watchers.remove(watcher)
        watcher.put(None)


def handler(board: PortBoard) -> grpc.GenericRpcHandler:
    """Return a handler with which a gRPC server serves a board."""

    def watch(_request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            watcher = board.watch()
        except TooManyError as error:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
            raise AssertionError("abort raises") from None
        if not context.add_callback(lambda: board.leave(watcher)):
            board.leave(watcher)  # the call is over already
        while (message := watcher.get()) is not None:
            yield message

    method = grpc.unary_stream_rpc_method_handler(watch)
    return grpc.method_handlers_generic_handler(SERVICE, {METHOD: method})


def _message(states: dict[PortKey, bool]) -> bytes:
    ports = [[device_id, port, up] for (device_id, port), up in sorted(states.items())]
    return json.dumps({"ports": ports}).encode()
