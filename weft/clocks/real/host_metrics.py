"""Metrics of running host processes, read from their sockets (`weft.traffic.host_metrics`)."""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from weft.traffic.answering_socket import short_name
from weft.traffic.host_metrics import HostMetrics

_AT_ONCE = 32
"""Connections, so that descriptors suffice."""
_PATIENCE_S = 1.0
"""For so many answers; a host that makes a large run ready answers nobody meanwhile."""
_MOST_BYTES = 1 << 24


def read_host_metrics(sockets: Mapping[str, Path], patience_s: float = _PATIENCE_S) -> dict[str, HostMetrics]:
    """Return the metrics of the hosts that answer in time, by name; `sockets` are the paths of their sockets."""
    found: dict[str, HostMetrics] = {}
    names = list(sockets)
    for first in range(0, len(names), _AT_ONCE):
        some = names[first : first + _AT_ONCE]
        found |= _read({name: sockets[name] for name in some}, patience_s)
    return found


def _read(sockets: Mapping[str, Path], patience_s: float) -> dict[str, HostMetrics]:
    answers: dict[str, bytearray] = {}
    found: dict[str, HostMetrics] = {}
    deadline_s = time.monotonic() + patience_s
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for name, path in sockets.items():
            connection = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            connection.setblocking(False)
            with contextlib.suppress(OSError), short_name(path) as short:
                connection.connect(short)
                selector.register(connection, selectors.EVENT_READ, name)
                answers[name] = bytearray()
        while selector.get_map() and (left_s := deadline_s - time.monotonic()) > 0:
            for key, _ in selector.select(left_s):
                part = _received(cast("socket.socket", key.fileobj))
                answers[key.data] += part
                if not part or len(answers[key.data]) > _MOST_BYTES:
                    selector.unregister(key.fileobj)
                    with contextlib.suppress(ValueError):  # not answered, or not in full
                        found[key.data] = json.loads(answers[key.data])
    return found


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1 << 16)
    except OSError:
        return b""
