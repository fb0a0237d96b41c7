"""A small HTTP server, for instance for a running lab, with limits on connections, time and request size."""

from __future__ import annotations

import contextlib
import re
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from typing import Any, Self

from weft.errors import EnvironmentLacksError, WeftError
from weft.metrics.exposition import CONTENT_TYPE

LOOPBACK = "127.0.0.1"
_DEADLINE_S = 5.0
"""Limit for receiving a whole request, and for sending the answer: a client that sends a byte now and then must not
keep the lab from being taken down."""
_LOOKS_FOR_THE_END_EVERY_S = 0.1
_MOST_SCRAPES = 8
UNREADABLE = (WeftError, RuntimeError, OSError)
"""Errors of reading a lab that is being taken down or has lost a switch."""
PLAIN_TEXT = "text/plain; charset=utf-8"
_HOST = re.compile(r"(\[(?P<bracketed>[^][]+)\]|(?P<plain>[^][:]+))(:[0-9]*)?")


@dataclass(frozen=True)
class Request:
    """A request: the raw path with its query, the headers by lower-case name, and the body of a POST request."""

    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"
    body: bytes = b""


@dataclass(frozen=True)
class Answer:
    """An HTTP response."""

    text: str
    content_type: str = PLAIN_TEXT
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)


class LabServer:
    """Answers GET, and POST if it takes bodies. Use as a context manager, within the lifetime of a lab that it serves.

    Args:
        place: address and port to listen on; port 0 means any free port.
        option: the command's option, for messages.
        answer: returns the answer to a request; `UNREADABLE` errors mean that the lab cannot be read.
        most_connections: connections served at a time. Others wait in the kernel's queue, which is also bounded: users
            of the machine cannot start more threads in the lab.
        deadline_s: limit for receiving a request, and for sending the answer.
        most_body_bytes: largest body of a POST request; 0 refuses POST.
        sending_s: limit for sending the answer, if it is not `deadline_s`.

    Raises:
        EnvironmentLacksError: the port is taken, or the address is not one of this machine's.
    """

    def __init__(
        self,
        place: tuple[str, int],
        option: str,
        answer: Callable[[Request], Answer],
        most_connections: int = 1,
        deadline_s: float = _DEADLINE_S,
        most_body_bytes: int = 0,
        sending_s: float | None = None,
    ) -> None:
        handler = _handler_of(answer, deadline_s, most_body_bytes, deadline_s if sending_s is None else sending_s)
        try:
            self._server = _Server(place, handler, most_connections)
        except OSError as error:
            host, port = place
            raise EnvironmentLacksError(f"{option} {port}: {host}:{port}: {error.strerror}") from None
        host, port = self._server.socket.getsockname()[:2]
        self.place = str(host), int(port)
        """Address and port that the server listens on."""
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_LOOKS_FOR_THE_END_EVERY_S,), name=option, daemon=True
        )

    @property
    def base_url(self) -> str:
        """The server's URL without a path."""
        host, port = self.place
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.cut_all()
        self._server.shutdown()
        self._thread.join()
        self._server.join_all()
        self._server.server_close()


class MetricsServer(LabServer):
    """Serves the text from `read` at /metrics on loopback; several threads may call `read` (`weft.metrics.recent`).

    EnvironmentLacksError: the port is taken.
    """

    def __init__(self, port: int, read: Callable[[], str], deadline_s: float = _DEADLINE_S) -> None:
        def answer(request: Request) -> Answer:
            if not is_own_name(request.headers.get("host", "")):
                return Answer("ask for metrics by localhost or an IP address\n", status=HTTPStatus.FORBIDDEN)
            if request.target.partition("?")[0] != "/metrics":
                return Answer("metrics are at /metrics\n", status=HTTPStatus.NOT_FOUND)
            return Answer(read(), CONTENT_TYPE)

        super().__init__((LOOPBACK, port), "--metrics", answer, _MOST_SCRAPES, deadline_s)

    @property
    def url(self) -> str:
        """URL of the metrics."""
        return f"{self.base_url}/metrics"


def is_own_name(host: str) -> bool:
    """Return whether a Host header names localhost or an IP address, with or without a port (SSH forwards others).

    If another site's name resolved to this server (DNS rebinding), that site's scripts could read the content.
    """
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    name = match["bracketed"] or match["plain"]
    if name.lower() == "localhost":
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class _Server(socketserver.TCPServer):
    allow_reuse_address = True

    def __init__(self, place: tuple[str, int], handler: type[BaseHTTPRequestHandler], most_connections: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        self._free = threading.BoundedSemaphore(most_connections)
        self._lock = threading.Lock()
        self._threads: dict[threading.Thread, socket.socket] = {}
        self._is_ending = False
        super().__init__(place, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a new thread as soon as one is allowed."""
        self._free.acquire()  # earlier connections have deadlines, and `cut_all` ends them
        thread = threading.Thread(target=self._serve, args=(request, client_address), daemon=True)
        with self._lock:
            if self._is_ending:
                self._free.release()
                self.shutdown_request(request)
                return
            try:
                thread.start()
            except RuntimeError:  # no more threads: close this connection; the next may succeed
                self._free.release()
                raise
            self._threads[thread] = request  # its end waits for the lock

    def _serve(self, request: socket.socket, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except Exception:
            self.handle_error(request, client_address)
        finally:
            with self._lock:
                self._threads.pop(threading.current_thread(), None)
                self.shutdown_request(request)
            self._free.release()

    def cut_all(self) -> None:
        """Close all connections and accept no more."""
        with self._lock:
            self._is_ending = True
            for connection in self._threads.values():
                hang_up(connection)

    def join_all(self) -> None:
        """Wait for the threads that are still answering."""
        with self._lock:
            left = list(self._threads)
        for thread in left:
            thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of clients that disconnected or sent nothing."""


def hang_up(connection: socket.socket) -> None:
    """Close a connection, whatever its thread is waiting for."""
    with contextlib.suppress(OSError):  # it is closed already
        connection.shutdown(socket.SHUT_RDWR)


def _handler_of(
    answer: Callable[[Request], Answer], deadline_s: float, most_body_bytes: int, sending_s: float
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = deadline_s  # also limits the whole answer, because sendall counts its total time

        def setup(self) -> None:
            super().setup()
            self._deadline = threading.Timer(deadline_s, hang_up, [self.connection])
            self._deadline.daemon = True
            self._deadline.start()

        def finish(self) -> None:
            self._deadline.cancel()
            super().finish()

        def do_GET(self) -> None:
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            self._deadline.cancel()  # reading the lab may take longer
            self.connection.settimeout(sending_s)
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                self._send(answer(Request(self.path, headers, self.command, body)))
            except UNREADABLE as error:
                self._send(Answer(f"{error}\n", status=HTTPStatus.SERVICE_UNAVAILABLE))

        def _send(self, answered: Answer) -> None:
            body = answered.text.encode()
            self.send_response(answered.status)
            self.send_header("Content-Type", answered.content_type)
            self.send_header("Content-Length", str(len(body)))
            for name, value in answered.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Do not log to the terminal, which belongs to the command's user."""

    class WithBodies(Handler):
        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
                self._send(Answer("the request has no length\n", status=HTTPStatus.LENGTH_REQUIRED))
            elif len(length) > 12 or int(length) > most_body_bytes:
                text = f"the request is too large (valid: up to {most_body_bytes:,} B)\n"
                self._send(Answer(text, status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE))
            else:
                body = self.rfile.read(int(length))
                if len(body) == int(length):  # otherwise the client has gone, or was too slow
                    self._answer(body)

    return WithBodies if most_body_bytes else Handler
