"""Multicast groups and clone sessions (P4Runtime §9.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from finsy.proto import p4r

from weft.switch.backend import CloneSession, Replica, SwitchBackend
from weft.switch.p4runtime.errors import check_existence, invalid, place
from weft.switch.p4runtime.translation import CPU_SDN_PORT, PORT_BITS, SDN_PORT_BITS, Translation
from weft.switch.p4runtime.values import decode, encode

MAX_INSTANCE = 2**16 - 1
MAX_MULTICAST_GROUP_ID = 2**16 - 1
MAX_CLASS_OF_SERVICE = 7


class Replication:
    """The packet replication engine of a device."""

    def __init__(self, backend: SwitchBackend, cpu_port: int, ports: Translation | None) -> None:
        self._backend = backend
        self._ports = ports
        self._cpu_port = cpu_port
        self._groups: dict[int, p4r.MulticastGroupEntry] = {}
        self._sessions: dict[int, p4r.CloneSessionEntry] = {}

    def write(self, update_type: int, message: p4r.PacketReplicationEngineEntry) -> None:
        """Apply one update to a multicast group or a clone session."""
        match message.WhichOneof("type"):
            case "multicast_group_entry":
                with place(f"multicast group {message.multicast_group_entry.multicast_group_id}"):
                    self._write_group(update_type, message.multicast_group_entry)
            case "clone_session_entry":
                with place(f"clone session {message.clone_session_entry.session_id}"):
                    self._write_session(update_type, message.clone_session_entry)
            case _:
                raise invalid("expected a multicast group or a clone session, got nothing")

    def _write_group(self, update_type: int, message: p4r.MulticastGroupEntry) -> None:
        number = message.multicast_group_id
        if not 1 <= number <= MAX_MULTICAST_GROUP_ID:
            raise invalid("the id is out of range", valid=f"1 to {MAX_MULTICAST_GROUP_ID}")
        check_existence(update_type, number in self._groups)
        if update_type == p4r.Update.DELETE:
            self._backend.multicast_group_delete(number)
            del self._groups[number]
            return
        replicas, canonical = self._decode_replicas(message.replicas)
        self._backend.multicast_group_set(number, replicas)
        self._groups[number] = p4r.MulticastGroupEntry(
            multicast_group_id=number, replicas=canonical, metadata=message.metadata
        )

    def _write_session(self, update_type: int, message: p4r.CloneSessionEntry) -> None:
        number = message.session_id
        if number == 0:
            raise invalid("session id 0 is reserved for wildcard reads")
        check_existence(update_type, number in self._sessions)
        if update_type == p4r.Update.DELETE:
            self._backend.clone_session_delete(number)
            del self._sessions[number]
            return
        if message.class_of_service > MAX_CLASS_OF_SERVICE:
            raise invalid(
                f"class_of_service {message.class_of_service} is out of range",
                valid=f"0 to {MAX_CLASS_OF_SERVICE}",
            )
        if message.packet_length_bytes < 0:
            raise invalid(f"packet_length_bytes {message.packet_length_bytes} is negative")
        replicas, canonical = self._decode_replicas(message.replicas)
        session = CloneSession(tuple(replicas), message.class_of_service, message.packet_length_bytes)
        self._backend.clone_session_set(number, session)
        self._sessions[number] = p4r.CloneSessionEntry(
            session_id=number,
            replicas=canonical,
            class_of_service=message.class_of_service,
            packet_length_bytes=message.packet_length_bytes,
        )

    def _decode_replicas(self, messages: Iterable[p4r.Replica]) -> tuple[list[Replica], list[p4r.Replica]]:
        """Return the backend's replicas, and their messages for reads."""
        replicas: list[Replica] = []
        canonical: list[p4r.Replica] = []
        seen: set[tuple[int, int]] = set()
        for index, message in enumerate(messages):
            with place(f"replica {index}"):
                backups = []
                for number, backup in enumerate(message.backup_replicas):
                    with place(f"backup replica {number}"):
                        backups.append(Replica(self._named_port(backup.port), _instance(backup.instance)))
                replica = Replica(self._port(message), _instance(message.instance), tuple(backups))
                ports = [each.port for each in (replica, *backups)]
                if len(set(ports)) < len(ports):
                    raise invalid("a replica and its backups must have different ports")
                for each in (replica, *backups):
                    if (each.port, each.instance) in seen:
                        raise invalid(f"port {each.port} with instance {each.instance} is listed twice")
                    seen.add((each.port, each.instance))
                replicas.append(replica)
                canonical.append(self._canonical(message, replica))
        return replicas, canonical

    def _port(self, message: p4r.Replica) -> int:
        if message.WhichOneof("port_kind") == "egress_port":
            return self._data_plane_port(message.egress_port)
        return self._named_port(message.port)

    def _named_port(self, data: bytes) -> int:
        if self._ports is not None:
            return self._ports.decode(data)
        return self._data_plane_port(decode(data, SDN_PORT_BITS))

    def _data_plane_port(self, port: int) -> int:
        if port == CPU_SDN_PORT:
            return self._cpu_port
        if port >= 1 << PORT_BITS:
            raise invalid(f"port {port} is out of range", valid=f"0 to {(1 << PORT_BITS) - 1}")
        return port

    def read(self, query: p4r.PacketReplicationEngineEntry) -> Iterator[p4r.PacketReplicationEngineEntry]:
        """The groups or sessions that `query` selects; id 0 selects all."""
        match query.WhichOneof("type"):
            case "multicast_group_entry":
                number = query.multicast_group_entry.multicast_group_id
                for group_id, group in self._groups.items():
                    if number in (0, group_id):
                        yield p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
            case "clone_session_entry":
                number = query.clone_session_entry.session_id
                for session_id, session in self._sessions.items():
                    if number in (0, session_id):
                        yield p4r.PacketReplicationEngineEntry(clone_session_entry=session)
            case _:
                raise invalid("expected a multicast group or a clone session, got nothing")

    def _canonical(self, message: p4r.Replica, replica: Replica) -> p4r.Replica:
        made = p4r.Replica(instance=replica.instance)
        # read back in the form in which it was written: old controllers know egress_port only
        if message.WhichOneof("port_kind") == "egress_port":
            made.egress_port = message.egress_port
        else:
            made.port = self._canonical_port(message.port)
        for backup in message.backup_replicas:
            made.backup_replicas.add(port=self._canonical_port(backup.port), instance=backup.instance)
        return made

    def _canonical_port(self, data: bytes) -> bytes:
        if self._ports is not None:
            return self._ports.encode(self._ports.decode(data))
        return encode(decode(data, SDN_PORT_BITS))


def _instance(number: int) -> int:
    if number > MAX_INSTANCE:
        raise invalid(f"instance {number} is out of range", valid=f"0 to {MAX_INSTANCE}")
    return number
