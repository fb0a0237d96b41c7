"""The socket where a host's process takes RDMA programs: verbs providers, and users of /dev/infiniband/rdma_cm."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from weft.engine import _core
from weft.traffic.answering_socket import HostSocket, short_name
from weft.traffic.verbs.client import VerbsClient
from weft.traffic.verbs.cm import ConnectionManager, VirtualSurroundings
from weft.traffic.verbs.ports import VerbsPorts
from weft.traffic.verbs.protocol import MAX_MESSAGE_BYTES, MalformedRequestError, answered, read_request, refused
from weft.verbs.device import eui64

if TYPE_CHECKING:
    from weft.traffic.host import Host

_WAITING = 64
"""Programs that may wait to be let in."""
MAX_CLIENTS = 1024
_CREDENTIALS = struct.Struct("=3i")  # struct ucred
_CM_MAGIC = struct.pack("=I", _core.CM_HELLO_MAGIC)


def listening(path: Path) -> socket.socket:
    """Return a new socket for programs at a path. Raises OSError."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with short_name(path) as name:
        listener.bind(name)
    listener.listen(_WAITING)
    return listener


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """Return the process and the user at the far end of a connection."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(credentials)
    return pid, uid


class VerbsSocket(HostSocket):
    """Serves all programs, a request at a time. Its descriptor is readable when one has something to say."""

    def __init__(self, listener: socket.socket, host: Host, virtual: VirtualSurroundings | None = None) -> None:
        self._host, self._ports, self._virtual = host, VerbsPorts(host), virtual
        self._node_guid = int.from_bytes(eui64(host.config.nics[0].mac))
        self._cm = ConnectionManager(host, self._ports, self._node_guid, virtual)
        self._listener = listener
        self._poller = select.epoll()
        # Those that have come; those that a provider speaks for; descriptors that the connection manager serves.
        self._connections: dict[int, socket.socket] = {}
        self._clients: dict[int, VerbsClient] = {}
        self._channels: set[int] = set()
        self._is_listening = True
        self._listener.setblocking(False)
        for descriptor in (self._listener.fileno(), *self._cm.descriptors):
            self._poller.register(descriptor, select.EPOLLIN)

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._poller.fileno()

    def seconds_to_next_turn(self) -> float | None:
        """Return when `take_turn` has something to do, though nobody comes; None: never."""
        return self._cm.seconds_to_next_turn()

    def take_turn(self) -> None:
        """Do what is due without being asked."""
        if self._cm.seconds_to_next_turn() == 0:
            self._cm.advance()

    def serve(self) -> None:
        """Serve whoever has something to say, once each."""
        self.serve_all(lambda: None)

    def serve_all(self, before: Callable[[], None]) -> bool:
        """Do so, and call `before` first; returns whether there was anybody."""
        ready = self._poller.poll(0)
        if ready:
            before()
        for descriptor, _ in ready:
            if descriptor == self._listener.fileno():
                self._let_in()
            elif descriptor in self._channels:
                if not self._cm.serve(descriptor):
                    self._channels.remove(descriptor)  # it has been closed, and so has left the poller
            elif descriptor not in self._connections:
                self._cm.take_messages()
            elif not self._serve(descriptor):
                self._let_go(descriptor)
        return bool(ready)

    def next_turn_ps(self) -> int | None:
        """Return the same as `seconds_to_next_turn`, as a time of the clock."""
        return self._cm.next_turn_ps

    def close(self) -> None:
        """Let all programs go and serve nobody any more."""
        for descriptor in list(self._connections):
            self._let_go(descriptor)
        self._cm.close()
        self._poller.close()
        self._listener.close()

    def _let_in(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:  # or gone already
            if error.errno in (errno.EMFILE, errno.ENFILE):
                # Until somebody goes; it would be readable all the time.
                self._poller.unregister(self._listener)
                self._is_listening = False
            return
        if len(self._connections) + len(self._channels) >= MAX_CLIENTS:
            connection.close()
            return
        connection.setblocking(False)
        self._connections[connection.fileno()] = connection
        self._poller.register(connection, select.EPOLLIN)

    def _let_go(self, descriptor: int) -> None:
        if (client := self._clients.pop(descriptor, None)) is not None:
            self._note(client, is_there=False)
            client.close()
        self._poller.unregister(descriptor)
        self._connections.pop(descriptor).close()
        if not self._is_listening:
            self._poller.register(self._listener, select.EPOLLIN)
            self._is_listening = True

    def _serve(self, descriptor: int) -> bool:
        """Serve a connection; returns whether it is still there."""
        connection = self._connections[descriptor]
        try:
            if descriptor not in self._clients:
                first = connection.recv(len(_CM_MAGIC), socket.MSG_PEEK)
                if first == _CM_MAGIC:
                    self._hand_over(descriptor)
                    return True
                client = self._clients[descriptor] = self._client_of(connection)
                self._note(client, is_there=True)
            message, ancillary, *_ = connection.recvmsg(MAX_MESSAGE_BYTES + 1, socket.CMSG_SPACE(64))
        except BlockingIOError:
            return True
        except OSError:
            return False
        _close_all(ancillary)
        return bool(message) and _answer(connection, self._clients[descriptor], message)

    def _note(self, client: VerbsClient, is_there: bool) -> None:
        if self._virtual is not None:
            self._virtual.note_client(client.pid, client.native, is_there)

    def _client_of(self, connection: socket.socket) -> VerbsClient:
        """Return the client at the far end of a connection. Raises OSError if its memory cannot be reached."""
        pid, uid = peer_of(connection)
        try:
            return VerbsClient(self._host.nic, self._ports, pid, uid, self._node_guid)
        except OSError as error:
            _sent(connection, refused(error.errno or errno.EIO), [])
            raise

    def _hand_over(self, descriptor: int) -> None:
        """Give a connection to the connection manager."""
        self._connections.pop(descriptor).detach()
        if self._cm.add(descriptor):
            self._channels.add(descriptor)


def _answer(connection: socket.socket, client: VerbsClient, message: bytes) -> bool:
    """Answer a provider's request; returns whether it is still there."""
    try:
        kind, fields = read_request(message)
        answer = client.carry_out(kind.name, fields)
    except MalformedRequestError:
        return False
    except OSError as error:
        return _sent(connection, refused(error.errno or errno.EIO), [])
    except (TypeError, ValueError, OverflowError):  # a field that is wider than what it is for
        return _sent(connection, refused(errno.EINVAL), [])
    except Exception:
        # The host goes on, whatever a program has asked for.
        traceback.print_exc()
        return _sent(connection, refused(errno.EIO), [])
    return _sent(connection, answered(kind, answer.fields, answer.descriptors), answer.descriptors)


def _close_all(ancillary: list[tuple[int, int, bytes]]) -> None:
    """Close descriptors that nobody has asked for."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            for (each,) in struct.iter_unpack("=i", data[: len(data) // 4 * 4]):
                os.close(each)


def _sent(connection: socket.socket, message: bytes, descriptors: list[int]) -> bool:
    try:
        socket.send_fds(connection, [message], descriptors)
    except OSError:
        return False
    return True
