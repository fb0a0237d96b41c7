"""The socket where a host's process takes requests of verbs providers."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weft.traffic.answering_socket import short_name
from weft.traffic.verbs.client import VerbsClient
from weft.traffic.verbs.ports import VerbsPorts
from weft.traffic.verbs.protocol import MAX_MESSAGE_BYTES, MalformedRequestError, answered, read_request, refused

if TYPE_CHECKING:
    from weft.traffic.host import Host

_WAITING = 64
"""Programs that may wait to be let in."""
MAX_CLIENTS = 256
_CREDENTIALS = struct.Struct("=3i")  # struct ucred
_ENDED = select.EPOLLHUP | select.EPOLLERR


@dataclass
class _Connected:
    connection: socket.socket
    client: VerbsClient


class VerbsSocket:
    """Serves all clients, a request at a time. Its descriptor is readable when one has something to say."""

    def __init__(self, path: Path, host: Host) -> None:
        self._host, self._ports = host, VerbsPorts(host)
        self._node_guid = eui64(host.config.nics[0].mac)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._poller = select.epoll()
        self._connected: dict[int, _Connected] = {}
        with short_name(path) as name:
            self._listener.bind(name)
        self._listener.listen(_WAITING)
        self._listener.setblocking(False)
        self._poller.register(self._listener, select.EPOLLIN)

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._poller.fileno()

    def seconds_to_next_turn(self) -> None:
        """Return that it is served only when somebody has something to say."""

    def take_turn(self) -> None:
        """Do nothing without being asked."""

    def serve(self) -> None:
        """Serve whoever has something to say, once each."""
        for descriptor, event in self._poller.poll(0):
            if descriptor == self._listener.fileno():
                self._let_in()
            elif not (event & select.EPOLLIN and self._answer(self._connected[descriptor])):
                self._let_go(descriptor)

    def close(self) -> None:
        """Let all clients go and serve nobody any more."""
        for descriptor in list(self._connected):
            self._let_go(descriptor)
        self._poller.close()
        self._listener.close()

    def _let_in(self) -> None:
        with contextlib.suppress(OSError):  # gone already
            connection, _ = self._listener.accept()
            pid, *_ = _CREDENTIALS.unpack(
                connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            )
            if len(self._connected) >= MAX_CLIENTS:
                connection.close()
                return
            try:
                client = VerbsClient(self._host.nic, self._ports, pid, self._node_guid)
            except OSError as error:
                connection.send(refused(error.errno or errno.EIO))
                connection.close()
                return
            connection.setblocking(False)
            self._connected[connection.fileno()] = _Connected(connection, client)
            self._poller.register(connection, select.EPOLLIN)

    def _let_go(self, descriptor: int) -> None:
        gone = self._connected.pop(descriptor)
        self._poller.unregister(descriptor)
        gone.connection.close()

    def _answer(self, of: _Connected) -> bool:
        """Answer a request; returns whether the client is still there."""
        try:
            message, ancillary, *_ = of.connection.recvmsg(MAX_MESSAGE_BYTES + 1, socket.CMSG_SPACE(64))
        except BlockingIOError:
            return True
        except OSError:
            return False
        for level, sort, data in ancillary:  # nobody asked for descriptors
            if level == socket.SOL_SOCKET and sort == socket.SCM_RIGHTS:
                for (each,) in struct.iter_unpack("=i", data[: len(data) // 4 * 4]):
                    os.close(each)
        if not message:
            return False
        try:
            kind, fields = read_request(message)
            answer = of.client.carry_out(kind.name, fields)
        except MalformedRequestError:
            return False
        except OSError as error:
            return _sent(of.connection, refused(error.errno or errno.EIO), [])
        except Exception:
            # The host goes on, whatever a program has asked for.
            traceback.print_exc()
            return _sent(of.connection, refused(errno.EIO), [])
        sent = _sent(of.connection, answered(kind, answer.fields, answer.descriptors), answer.descriptors)
        answer.afterwards()
        return sent


def eui64(mac: str) -> int:
    """Return the EUI-64 of a MAC, by which devices are known."""
    octets = bytes.fromhex(mac.replace(":", ""))
    return int.from_bytes(bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:])


def _sent(connection: socket.socket, message: bytes, descriptors: list[int]) -> bool:
    try:
        socket.send_fds(connection, [message], descriptors)
    except OSError:
        return False
    return True
