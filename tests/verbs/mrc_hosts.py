"""Two hosts whose NICs are cabled together in two planes, under the real clock, and clients of them in this process."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import time
from collections.abc import Callable
from typing import Any

from weft.engine import Engine, Link
from weft.traffic.attachment import LinkAttachment
from weft.traffic.host import Host
from weft.traffic.host_config import HostConfig, NicConfig
from weft.traffic.transport_settings import TransportSettings
from weft.traffic.transports.registry import TRANSPORT_KINDS
from weft.traffic.verbs.client import VerbsClient
from weft.traffic.verbs.ports import VerbsPorts
from weft.traffic.verbs.protocol import KINDS, MAGIC, VERSION
from weft.traffic.verbs.states import Attribute, Kind, State

PLANES = 2
_KINDS = {kind.name: kind for kind in KINDS}
_PATIENCE_S = 20
A = Attribute
TO_INIT = A.STATE | A.ACCESS_FLAGS
TO_RTR = A.STATE | A.AV | A.PATH_MTU | A.DEST_QPN | A.RQ_PSN
TO_RTS = A.STATE | A.SQ_PSN
_COUNTERS_BYTES = 128


def address(host: int, plane: int) -> str:
    return f"10.0.{plane}.{host + 1}"


def config(host: int, protocol: str) -> HostConfig:
    """Return a host's configuration."""
    kind = TRANSPORT_KINDS[protocol]
    transport = TransportSettings(protocol=protocol, **dict(kind.defaults))  # type: ignore[arg-type]
    nics = tuple(
        NicConfig(
            interface=f"h{host}-eth{plane}",
            mac=f"02:00:00:00:0{plane}:0{host + 1}",
            ipv4=address(host, plane),
            gateway_mac=f"02:00:00:00:0{plane}:0{2 - host}",
            rate_bps=10**9,
            base_round_trip_ps=10**8,
        )
        for plane in range(PLANES)
    )
    return HostConfig(
        name=f"h{host}",
        rank=host,
        epoch_ns=time.monotonic_ns(),
        nics=nics,
        transport=transport,
        plane_addresses=tuple(tuple(address(each, plane) for plane in range(PLANES)) for each in range(2)),
    )


def _attachment(ways: dict[str, tuple[Link, Link]], interface: str) -> LinkAttachment:
    return LinkAttachment(*ways[interface])


class Hosts:
    """Both of them, and their engine."""

    def __init__(self, protocol: str = "mrc") -> None:
        self.engine = Engine.real_clock(seed=1)
        links = {
            (host, plane): Link(self.engine, name=f"{host}-{plane}") for host in range(2) for plane in range(PLANES)
        }
        self.hosts = []
        for host in range(2):
            ways = {f"h{host}-eth{plane}": (links[host, plane], links[1 - host, plane]) for plane in range(PLANES)}
            self.hosts.append(
                Host(config(host, protocol), self.engine, lambda name, ways=ways: LinkAttachment(*ways[name]))
            )
        self.ports = [VerbsPorts(host) for host in self.hosts]
        self.engine.start()

    def close(self) -> None:
        for host in self.hosts:
            host.close()


class Client:
    """A program of a host. Its requests have zeros for what is not said."""

    def __init__(self, hosts: Hosts, host: int, uid: int | None = None) -> None:
        own = os.getuid()
        self._client = VerbsClient(hosts.hosts[host].nic, hosts.ports[host], os.getpid(), own, host + 1)
        self._client._is_privileged = uid in (None, 0)
        _, self._doorbell, _ = self._ask("open", magic=MAGIC, version=VERSION)[1]
        self._page = mmap.mmap(self._ask("open", magic=MAGIC, version=VERSION)[1][0], 0)
        self.domain = self.ask("create_domain")["domain"]
        made, (ring,) = self._ask("create_completion_queue", entries=64)
        self.queue, self._completions, self._consumed = made["queue"], mmap.mmap(ring, 0), 0
        self.buffer = ctypes.create_string_buffer(1 << 16)
        self.start = ctypes.addressof(self.buffer)
        region = {"address": self.start, "virtual_address": self.start, "length_bytes": len(self.buffer)}
        self.key = self.ask("register_memory", domain=self.domain, access=3, **region)["key"]

    def _ask(self, name: str, **fields: int) -> tuple[dict[str, int], list[int]]:
        question = {field: fields.pop(field, 0) for field in _KINDS[name].question}
        assert not fields
        answer = self._client.carry_out(name, question)
        _KINDS[name].answer_bytes(answer.fields)  # as the socket does it
        return answer.fields, answer.descriptors

    def ask(self, name: str, **fields: int) -> dict[str, int]:
        """Ask for something. Raises OSError with the errno of a refusal."""
        return self._ask(name, **fields)[0]

    def create(self, **changes: int) -> dict[str, int]:
        """Create a queue pair of MRC."""
        sizes = {"max_sends": 16, "max_receives": 16, "max_send_pieces": 2, "max_receive_pieces": 2}
        queues = {"send_queue": self.queue, "receive_queue": self.queue}
        fields = {"domain": self.domain, "type": int(Kind.MRC), **queues, **sizes, "max_inline_bytes": 64, **changes}
        made, descriptors = self._ask("create_queue_pair", **fields)
        return {**made, "descriptor": descriptors[0]}

    def ring(self, number: int) -> None:
        """Tell the NIC of work in a ring."""
        word = 64 + number // 64 * 8
        (bits,) = struct.unpack_from("=Q", self._page, word)
        struct.pack_into("=Q", self._page, word, bits | 1 << number % 64)
        os.write(self._doorbell, struct.pack("=Q", 1))

    def completions(self, count: int) -> list[dict[str, int]]:
        """Return the next so many completions."""
        until(lambda: struct.unpack_from("=I", self._completions, 0)[0] >= self._consumed + count)
        names = ("status", "opcode", "length_bytes", "immediate")
        found = []
        for number in range(self._consumed, self._consumed + count):
            entry = struct.unpack_from("=QQIIII", self._completions, _COUNTERS_BYTES + number % 64 * 64)
            found.append({"work_id": entry[0], **dict(zip(names, entry[2:], strict=True))})
        self._consumed += count
        struct.pack_into("=I", self._completions, 64, self._consumed)
        return found

    def close(self) -> None:
        self._client.close()


class Pair:
    """A queue pair of MRC of a client, with its rings."""

    def __init__(self, client: Client, **changes: int) -> None:
        self.client, self.made = client, client.create(**changes)
        self._ring = mmap.mmap(self.made["descriptor"], 0)
        self._receives_at = _COUNTERS_BYTES + self.made["actual_sends"] * self.made["send_entry_bytes"]
        self.number = self.made["number"]

    def modify(self, state: State, mask: Attribute, **fields: int) -> None:
        self.client.ask("modify_queue_pair", queue_pair=self.made["queue_pair"], mask=mask, state=state, **fields)

    def query(self) -> dict[str, int]:
        return self.client.ask("query_queue_pair", queue_pair=self.made["queue_pair"])

    def connect(self, peer: Pair, peer_host: int, plane: int = 0) -> None:
        self.modify(State.INIT, TO_INIT, access=2)
        gid_low = 0xFFFF << 32 | int.from_bytes(bytes(map(int, address(peer_host, plane).split("."))))
        way = {"is_global": 1, "gid_low": gid_low, "address_port": plane + 1}
        self.modify(State.RTR, TO_RTR, path_mtu=3, remote_number=peer.number, **way)
        self.modify(State.RTS, TO_RTS)

    def _post(self, base: int, entry_bytes: int, count: int, entry: bytes, ring: int) -> None:
        (posted,) = struct.unpack_from("=I", self._ring, base)
        start = base + _COUNTERS_BYTES + posted % count * entry_bytes
        self._ring[start : start + len(entry)] = entry
        struct.pack_into("=I", self._ring, base, posted + 1)
        self.client.ring(2 * (self.made["queue_pair"] - 1) + ring)

    def write(self, opcode: int, peer: Client, size: int, immediate: int = 0, work_id: int = 0, **own: Any) -> None:
        """Post a request, of the first bytes of both buffers."""
        head = struct.pack("=QIIIIQQQ", work_id, opcode, 2, immediate, peer.key, peer.start, 0, 0)
        entry = head + struct.pack("=IIIIII", 1, 0, 0, 0, 0, 0)
        entry += struct.pack("=QII", own.get("start", self.client.start), size, own.get("key", self.client.key))
        self._post(0, self.made["send_entry_bytes"], self.made["actual_sends"], entry, 0)

    def receive(self, work_id: int) -> None:
        """Post a receive without memory."""
        entry_bytes = (16 + 2 * 16 + 15) // 16 * 16
        entry = struct.pack("=QII", work_id, 0, 0)
        self._post(self._receives_at, entry_bytes, self.made["actual_receives"], entry, 1)


def until(is_so: Callable[[], bool]) -> None:
    """Wait for the engine's thread."""
    ends = time.monotonic() + _PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends, "no end"
