"""NIC processes at a lab's prompt: a host has one from the first RDMA program on that opens its device.

Runs start a process in every host anyway. At the prompt most hosts never need one, and a kernel's Soft-RoCE could not
have its UDP port beside it.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from weft.clocks.real.endpoints import Endpoints
from weft.system.child_processes import ChildError, JsonLinesChild
from weft.traffic.verbs.socket import listening

if TYPE_CHECKING:
    from weft.clocks.real.lab import MininetLab


class NicsOnDemand:
    """Listens for the hosts that have a device, and starts the process of one that is asked for. A context manager."""

    def __init__(self, lab: MininetLab, say: Callable[[str], None]) -> None:
        self._lab, self._endpoints, self._say = lab, Endpoints(lab), say
        self._children: list[JsonLinesChild] = []
        self._listeners: dict[str, socket.socket] = {}
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="NICs on demand", daemon=True)

    def __enter__(self) -> Self:
        for name, path in self._lab.verbs.sockets.items():
            self._listeners[name] = listening(Path(path))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._wake.close()
        self._thread.join()
        for child in self._children:
            child.ask_to_end()
        for child in self._children:
            child.close()
        for listener in self._listeners.values():
            listener.close()
        self._woken.close()

    def _serve(self) -> None:
        hosts = {host.name: host for host in self._lab.fabric.hosts}
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ)
            for name, listener in self._listeners.items():
                selector.register(listener, selectors.EVENT_READ, name)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._woken:
                        return
                    # From now on the host's process lets programs in.
                    selector.unregister(key.fileobj)
                    listener = self._listeners[key.data]
                    try:
                        child = self._endpoints.start_alone(hosts[key.data], listener.fileno())
                    except (ChildError, OSError) as error:
                        self._say(f"{key.data} has no RDMA device: {error}")
                        with contextlib.suppress(OSError):
                            listener.shutdown(socket.SHUT_RDWR)
                        continue
                    # Whoever comes after that process has gone is refused and does not wait for ever.
                    self._listeners.pop(key.data).close()
                    self._children.append(child)
                    self._lab.own(child.process.pid)
