"""Restricts a server's TCP callers to some users of the machine: P4Runtime has no authentication.

The kernel lists each TCP connection with the user of the process that opened it (proc(5), /proc/net/tcp).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import grpc

_Address: TypeAlias = tuple[IPv4Address | IPv6Address, int]
_LISTS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED = "01"


class OnlyUsers(grpc.ServerInterceptor):  # type: ignore[misc]
    """Refuses calls by TCP to HOST:PORTs from processes of other users; Unix sockets have file permissions."""

    def __init__(self, users: Collection[int], addresses: Iterable[str]) -> None:
        self._users = frozenset(users)
        self._ports = frozenset(int(each.rpartition(":")[2]) for each in addresses)

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        """See grpc.ServerInterceptor."""
        handler = continuation(details)
        if handler is None:
            return None
        kind = f"{_word(handler.request_streaming)}_{_word(handler.response_streaming)}"
        serve = getattr(handler, kind)

        def serve_allowed(request: Any, context: grpc.ServicerContext) -> Any:
            self._require_allowed(context)
            return serve(request, context)

        make = getattr(grpc, f"{kind}_rpc_method_handler")
        return make(serve_allowed, handler.request_deserializer, handler.response_serializer)

    def _require_allowed(self, context: grpc.ServicerContext) -> None:
        peer = unquote(context.peer())
        if not peer.startswith(("ipv4:", "ipv6:")):
            return
        host, _, port = peer[len("ipv4:") :].rpartition(":")
        users = users_of((ip_address(host.strip("[]")), int(port)), self._ports)
        if not users or not users <= self._users:
            valid = ", ".join(map(str, sorted(self._users)))
            context.abort(
                grpc.StatusCode.PERMISSION_DENIED,
                f"this port is not for the user {', '.join(map(str, users)) or 'of this connection'} (valid: {valid})",
            )


def _word(is_stream: bool) -> str:
    return "stream" if is_stream else "unary"


def users_of(client: tuple[IPv4Address | IPv6Address, int], ports: Collection[int]) -> frozenset[int]:
    """Return the users with connections from an address of this machine to ports: one, or none if it has ended."""
    return frozenset(user for local, remote, user in _connections(client[1]) if local == client and remote[1] in ports)


def _connections(port: int) -> Iterator[tuple[_Address, _Address, int]]:
    """Yield the established connections from a local port: both ends and the user."""
    wanted = f":{port:04X}"
    for path in _LISTS:
        try:
            lines = path.read_text(encoding="ascii").splitlines()
        except FileNotFoundError:  # a kernel without IPv6
            continue
        for line in lines[1:]:
            _, local, remote, state, _, _, _, user, *_ = line.split()
            if local.endswith(wanted) and state == _ESTABLISHED:
                yield _address(local), _address(remote), int(user)


def _address(text: str) -> _Address:
    """Return address and port of `0100007F:C351`: words of four bytes in the machine's order."""
    digits, _, port = text.partition(":")
    words = (int(digits[start : start + 8], 16) for start in range(0, len(digits), 8))
    found = ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))
    # IPv6 sockets also carry IPv4.
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found, int(port, 16)
