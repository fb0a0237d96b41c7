"""Tells switches, and NICs of MRC, of the carrier of their interfaces.

Linux reports changes by netlink (rtnetlink(7)); the state itself is read by ioctl, as sysfs may belong to another
network namespace.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import select
import socket
import struct
import threading
from collections.abc import Callable, Mapping

_LOGGER = logging.getLogger(__name__)
SetPortUp = Callable[[bool], None]
_RTMGRP_LINK = 1
_RTM_NEWLINK, _RTM_DELLINK = 16, 17
_IFF_UP, _IFF_RUNNING = 1 << 0, 1 << 6
_SIOCGIFFLAGS = 0x8913
_REQUEST = struct.Struct("=16sH14x")  # ifreq: name, flags
_MESSAGE = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port id
_BUFFER_BYTES = 1 << 16


class PortMonitor(threading.Thread):
    """Calls an interface's `set_up` with its state, at start and at each change. Raises OSError without netlink."""

    def __init__(self, interfaces: Mapping[str, SetPortUp]) -> None:
        super().__init__(name="port-monitor", daemon=True)
        self._interfaces = dict(interfaces)
        self._known: dict[str, bool] = {}
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.bind((0, _RTMGRP_LINK))
        self._wake, self._waker = socket.socketpair()
        self._look_at_all()

    def run(self) -> None:
        """Follow the changes until stopped."""
        while True:
            ready, _, _ = select.select([self._socket, self._wake], [], [])
            if self._wake in ready:
                return
            try:
                changed = changes(self._socket.recv(_BUFFER_BYTES))
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self._look_at_all()  # messages were lost
                continue
            if changed:
                self._look_at_all()

    def _look_at_all(self) -> None:
        for name, set_up in self._interfaces.items():
            up = has_carrier(name)
            if self._known.get(name) != up:
                if name in self._known:  # the state at the start is no change
                    _LOGGER.warning("interface %s %s", name, "is up" if up else "is down or gone")
                self._known[name] = up
                set_up(up)

    def stop(self) -> None:
        """End the thread, if it runs, and close the sockets."""
        self._waker.send(b"x")
        if self.is_alive():
            self.join()
        for each in (self._socket, self._wake, self._waker):
            each.close()


def changes(data: bytes) -> bool:
    """Return whether netlink messages report an interface that was added, removed or changed."""
    while len(data) >= _MESSAGE.size:
        length, kind, *_ = _MESSAGE.unpack_from(data)
        if kind in (_RTM_NEWLINK, _RTM_DELLINK):
            return True
        if length < _MESSAGE.size:
            return False
        data = data[(length + 3) & ~3 :]
    return False


def has_carrier(interface: str) -> bool:
    """Return whether the interface exists, is up and has a carrier (netdevice(7), SIOCGIFFLAGS)."""
    flags = _flags(interface)
    return bool(flags & _IFF_UP and flags & _IFF_RUNNING)


def is_enabled(interface: str) -> bool:
    """Return whether the interface exists and is set up, with or without a carrier."""
    return bool(_flags(interface) & _IFF_UP)


def _flags(interface: str) -> int:
    request = _REQUEST.pack(interface.encode(), 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            answer = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request)
        except OSError:
            return 0  # gone
    return int(_REQUEST.unpack(answer)[1])
