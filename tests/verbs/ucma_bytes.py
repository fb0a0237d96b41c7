"""Commands and answers of /dev/infiniband/rdma_cm as bytes: `rdma/rdma_user_cm.h`, ABI 4."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

COMMANDS = (
    *("CREATE_ID", "DESTROY_ID", "BIND_IP", "RESOLVE_IP", "RESOLVE_ROUTE", "QUERY_ROUTE", "CONNECT", "LISTEN"),
    *("ACCEPT", "REJECT", "DISCONNECT", "INIT_QP_ATTR", "GET_EVENT", "GET_OPTION", "SET_OPTION", "NOTIFY"),
    *("JOIN_IP_MCAST", "LEAVE_MCAST", "MIGRATE_ID", "QUERY", "BIND", "RESOLVE_ADDR", "JOIN_MCAST"),
)
EVENTS = (
    *("ADDR_RESOLVED", "ADDR_ERROR", "ROUTE_RESOLVED", "ROUTE_ERROR", "CONNECT_REQUEST", "CONNECT_RESPONSE"),
    *("CONNECT_ERROR", "UNREACHABLE", "REJECTED", "ESTABLISHED", "DISCONNECTED", "DEVICE_REMOVAL"),
    *("MULTICAST_JOIN", "MULTICAST_ERROR", "ADDR_CHANGE", "TIMEWAIT_EXIT"),
)
PS_IPOIB, PS_IB, PS_TCP, PS_UDP = 0x0002, 0x013F, 0x0106, 0x0111
EVENT_BYTES = 336
QP_ATTR_BYTES = 144
ADDRESS_BYTES = 280
ROUTE_BYTES = 216


def command(name: str, body: bytes, room: int = 0) -> bytes:
    """Return a command with its header, as librdmacm writes it."""
    return struct.pack("=IHH", COMMANDS.index(name), len(body), room) + body


def address(text: str, port: int = 0, size: int = 28) -> bytes:
    """Return a socket address, padded with zeros."""
    ip = ipaddress.ip_address(text)
    if ip.version == 4:
        packed = struct.pack("=H", 2) + struct.pack(">H", port) + ip.packed
    else:
        packed = struct.pack("=H", 10) + struct.pack(">HI", port, 0) + ip.packed + bytes(4)
    return packed.ljust(size, b"\0")


def size_of(text: str) -> int:
    """Return how many bytes the address has without padding."""
    return 16 if ipaddress.ip_address(text).version == 4 else 28


def create_id(uid: int = 1, space: int = PS_TCP, qp_type: int = 2, response: int = 0) -> bytes:
    return command("CREATE_ID", struct.pack("=QQHB5x", uid, response, space, qp_type), 4)


def destroy_id(number: int, response: int = 0) -> bytes:
    return command("DESTROY_ID", struct.pack("=QII", response, number, 0), 4)


def bind(number: int, text: str, port: int = 0) -> bytes:
    return command("BIND", struct.pack("=IHH", number, size_of(text), 0) + address(text, port, 128))


def bind_ip(number: int, text: str, port: int = 0) -> bytes:
    return command("BIND_IP", bytes(8) + address(text, port) + struct.pack("=I", number))


def resolve_addr(number: int, text: str, port: int = 0) -> bytes:
    head = struct.pack("=IIHHI", number, 2000, 0, size_of(text), 0)
    return command("RESOLVE_ADDR", head + bytes(128) + address(text, port, 128))


def resolve_ip(number: int, text: str, port: int = 0) -> bytes:
    return command("RESOLVE_IP", bytes(28) + address(text, port) + struct.pack("=II", number, 2000))


def resolve_route(number: int) -> bytes:
    return command("RESOLVE_ROUTE", struct.pack("=II", number, 2000))


def listen(number: int, backlog: int = 0) -> bytes:
    return command("LISTEN", struct.pack("=II", number, backlog))


def parameters(qpn: int, private_data: bytes = b"", valid: int = 1) -> bytes:
    return (
        struct.pack("=II", qpn, 0)
        + private_data.ljust(256, b"\0")
        + bytes((len(private_data), 0, 1, 1, 0, 7, 7, valid))
    )


def connect(number: int, qpn: int, private_data: bytes = b"") -> bytes:
    return command("CONNECT", parameters(qpn, private_data) + struct.pack("=II", number, 0) + bytes(8))


def accept(number: int, qpn: int, uid: int = 0, private_data: bytes = b"", valid: int = 1) -> bytes:
    body = struct.pack("=Q", uid) + parameters(qpn, private_data, valid) + struct.pack("=II", number, 0)
    return command("ACCEPT", body + bytes(8))


def reject(number: int, private_data: bytes = b"") -> bytes:
    return command("REJECT", struct.pack("=IB3x", number, len(private_data)) + private_data.ljust(256, b"\0"))


def disconnect(number: int) -> bytes:
    return command("DISCONNECT", struct.pack("=I", number))


def get_event(response: int = 0) -> bytes:
    return command("GET_EVENT", struct.pack("=Q", response), EVENT_BYTES)


def query(number: int, option: int, room: int = ADDRESS_BYTES) -> bytes:
    return command("QUERY", struct.pack("=QII", 0, number, option), room)


def query_route(number: int) -> bytes:
    return command("QUERY_ROUTE", struct.pack("=QII", 0, number, 0), ROUTE_BYTES)


def init_qp_attr(number: int, state: int) -> bytes:
    return command("INIT_QP_ATTR", struct.pack("=QII", 0, number, state), QP_ATTR_BYTES)


def set_option(number: int, level: int, name: int, length: int) -> bytes:
    return command("SET_OPTION", struct.pack("=QIIII", 0, number, level, name, length))


def join(number: int, text: str, uid: int = 9, flags: int = 0) -> bytes:
    body = struct.pack("=QQIHH", 0, uid, number, size_of(text), flags) + address(text, 0, 128)
    return command("JOIN_MCAST", body, 4)


def leave(number: int) -> bytes:
    return command("LEAVE_MCAST", struct.pack("=QII", 0, number, 0), 4)


def migrate_id(number: int, descriptor: int, response: int = 0) -> bytes:
    return command("MIGRATE_ID", struct.pack("=QII", response, number, descriptor), 4)


def notify(number: int) -> bytes:
    return command("NOTIFY", struct.pack("=II", number, 4))


@dataclass(frozen=True)
class EventBytes:
    """An answer to GET_EVENT."""

    uid: int
    id: int
    name: str
    status: int
    qpn: int
    private_data: bytes
    qkey: int
    group: bytes

    @classmethod
    def read(cls, data: bytes, is_datagram: bool = False) -> EventBytes:
        uid, number, event, status = struct.unpack_from("=QIIi", data)
        qpn, qkey = struct.unpack_from("=II", data, 20)
        at = 28 + (32 if is_datagram else 0)
        private = data[at : at + data[at + 256]]
        return cls(uid, number, EVENTS[event], status, qpn, private, qkey, data[28:44])
