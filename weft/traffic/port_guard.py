"""Keeps the kernel from answering packets of RDMA transports with ICMP port unreachable.

The kernel of a host's namespace sees every frame that the engine's packet sockets see. With a socket bound to a
transport's UDP port it finds a receiver, and a filter that accepts nothing keeps the packets out of memory.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from itertools import product

_SO_ATTACH_FILTER = 26
_BPF_RET_K = 0x06  # return a constant: how many bytes of the packet to keep


class PortGuard:
    """Holds UDP ports, over IPv4 and IPv6, in the network namespace of this process. A context manager.

    Raises OSError if another program has one of them.
    """

    def __init__(self, *ports: int) -> None:
        self._sockets: list[socket.socket] = []
        try:
            for port, family in product(ports, (socket.AF_INET, socket.AF_INET6)):
                guard = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
                self._sockets.append(guard)
                if family == socket.AF_INET6:
                    guard.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                _drop_everything(guard)
                guard.bind(("", port))
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Give the ports back."""
        for guard in self._sockets:
            guard.close()
        self._sockets.clear()

    def __enter__(self) -> PortGuard:
        """Return the guard itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the ports back."""
        self.close()


def _drop_everything(guard: socket.socket) -> None:
    """Attach a classic BPF program of one instruction, `ret #0` (struct sock_fprog of linux/filter.h)."""
    instructions = ctypes.create_string_buffer(struct.pack("=HBBI", _BPF_RET_K, 0, 0, 0), 8)
    program = struct.pack("@HP", 1, ctypes.addressof(instructions))
    guard.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
