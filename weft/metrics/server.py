"""An HTTP server on loopback that answers GET /metrics."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Self

from weft.errors import EnvironmentLacksError, WeftError
from weft.metrics.exposition import CONTENT_TYPE

LOOPBACK = "127.0.0.1"
LEAST_INTERVAL_S = 1.0
"""Between two reads of the lab; scrapes in between get the same text, however many there are."""
_DEADLINE_S = 5.0
"""For a client's request as a whole, and for its taking the answer. One is served at a time, so that no user of the
machine can start threads in the lab; who sends a byte now and then must not keep it from being taken down."""


class MetricsServer:
    """Serves what `read` returns. Use as a context manager; `url` is where.

    EnvironmentLacksError: the port is taken.
    """

    def __init__(self, port: int, read: Callable[[], str], deadline_s: float = _DEADLINE_S) -> None:
        self._read = read
        self._text = ""
        self._read_at_s = float("-inf")
        try:
            self._server = _Server((LOOPBACK, port), _handler_of(self, deadline_s))
        except OSError as error:
            raise EnvironmentLacksError(f"--metrics {port}: {LOOPBACK}:{port}: {error.strerror}") from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{LOOPBACK}:{self._server.server_address[1]}/metrics"

    def text(self) -> str:
        """Return the metrics, read anew if the last read is old enough. WeftError if the lab cannot be read."""
        now_s = time.monotonic()
        if now_s - self._read_at_s >= LEAST_INTERVAL_S:
            self._text = self._read()
            self._read_at_s = now_s
        return self._text

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(HTTPServer):
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, or never said anything, is no one's concern."""


def _handler_of(metrics: MetricsServer, deadline_s: float) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = deadline_s  # of the answer as a whole, too: sendall counts all it sends

        def setup(self) -> None:
            super().setup()
            self._deadline = threading.Timer(deadline_s, self._cut)
            self._deadline.daemon = True
            self._deadline.start()

        def finish(self) -> None:
            self._deadline.cancel()
            super().finish()

        def _cut(self) -> None:
            with contextlib.suppress(OSError):  # it is closed already
                self.connection.shutdown(socket.SHUT_RDWR)

        def do_GET(self) -> None:
            self._deadline.cancel()  # reading the lab takes what it takes
            if self.path.partition("?")[0] != "/metrics":
                self._answer(HTTPStatus.NOT_FOUND, "metrics are at /metrics\n")
                return
            try:
                self._answer(HTTPStatus.OK, metrics.text())
            except (WeftError, RuntimeError, OSError) as error:
                # The lab is being taken down, or a switch is gone.
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n")

        def _answer(self, status: HTTPStatus, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", CONTENT_TYPE if status == HTTPStatus.OK else "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """The lab's terminal is its user's."""

    return Handler
