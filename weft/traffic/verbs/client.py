"""A client process of a host's NIC: carries out its requests."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntFlag

from weft.engine import _core
from weft.traffic.verbs.ev_control import EvControl
from weft.traffic.verbs.mrc import MrcVerbsQueuePair
from weft.traffic.verbs.ports import VerbsPorts
from weft.traffic.verbs.protocol import MAGIC, VERSION
from weft.traffic.verbs.queue_pairs import MAX_GROUPS, Place, VerbsQueuePair, address_of
from weft.traffic.verbs.states import Kind

Fields = dict[str, int]
_NOTHING: Fields = {}
_CLOCK_KHZ = 1_000_000
"""Time stamps of completions are in nanoseconds."""
MAX_READS = 128
"""READs under way that a queue pair may have (engine/hosts/rc_config.hpp, max_outstanding_reads)."""
_LIMIT_OF = {
    "max_memory_bytes": "MAX_REGION_BYTES",
    "max_queue_pairs": "MAX_QUEUE_PAIRS",
    "max_work_requests": "MAX_REQUESTS",
    "max_pieces": "MAX_PIECES",
    "max_read_pieces": "MAX_PIECES",
    "max_completion_queues": "MAX_COMPLETION_QUEUES",
    "max_completions": "MAX_COMPLETIONS",
    "max_memory_regions": "MAX_REGIONS",
    "max_domains": "MAX_DOMAINS",
    "max_address_handles": "MAX_ADDRESS_HANDLES",
    "max_shared_queues": "MAX_SHARED_QUEUES",
    "max_shared_requests": "MAX_REQUESTS",
    "max_shared_pieces": "MAX_PIECES",
    "max_inline_bytes": "MAX_INLINE_BYTES",
}


class CreateFlag(IntFlag):
    """`enum ibv_qp_create_flags`: those that Weft has."""

    BLOCK_OWN_COPIES = 1 << 1


class Changes(IntFlag):
    """`enum ibv_rereg_mr_flags`."""

    TRANSLATION = 1
    DOMAIN = 2
    ACCESS = 4


@dataclass
class Answer:
    """Fields of an answer, and the descriptors that go with it."""

    fields: Fields
    descriptors: list[int] = field(default_factory=list)


class VerbsClient:
    """Everything that one client has made. Requests raise OSError with the errno that the client gets."""

    def __init__(self, nic: _core.Nic, ports: VerbsPorts, pid: int, uid: int, node_guid: int) -> None:
        self._nic, self._ports, self._node_guid, self.pid = nic, ports, node_guid, pid
        self._domains: dict[int, _core.MemoryDomain] = {}
        self._native = _core.VerbsClient(nic, _memory_of(pid, uid))
        self._is_privileged = uid == 0
        self._queue_pairs: dict[int, VerbsQueuePair] = {}
        self._regions: dict[int, Fields] = {}

    @property
    def native(self) -> _core.VerbsClient:
        """Its counterpart in the engine."""
        return self._native

    def close(self) -> None:
        """Keep what its queue pairs have counted; what it has made goes with it."""
        for queue_pair in self._queue_pairs.values():
            queue_pair.leave()

    def carry_out(self, name: str, fields: Fields) -> Answer:
        """Carry out a request."""
        request: Callable[[Fields], Answer | Fields] = getattr(self, f"_{name}")
        answer = request(fields)
        return answer if isinstance(answer, Answer) else Answer(answer)

    def _open(self, fields: Fields) -> Answer:
        if fields["magic"] != MAGIC or fields["version"] != VERSION:
            raise OSError(errno.EPROTO, f"protocol {fields['version']}, not {VERSION}")
        native = self._native
        descriptors = [native.page_descriptor, native.doorbell_descriptor, native.events_descriptor]
        return Answer({"port_count": self._ports.count}, descriptors)

    def _query_device(self, fields: Fields) -> Fields:
        del fields
        limits = {name: int(getattr(_core.VerbsClient, limit)) for name, limit in _LIMIT_OF.items()}
        return {
            **limits,
            "node_guid": self._node_guid,
            "port_count": self._ports.count,
            "max_reads_answered": MAX_READS,
            "max_reads_sent": MAX_READS,
            "max_groups": MAX_GROUPS,
            "max_group_members": MAX_GROUPS,
            "clock_khz": _CLOCK_KHZ,
        }

    def _query_port(self, fields: Fields) -> Fields:
        return self._ports.query(fields["port"])

    def _create_domain(self, fields: Fields) -> Fields:
        del fields
        made = _core.MemoryDomain(self._nic)
        domain = self._native.create_domain(made)
        self._domains[domain] = made
        return {"domain": domain}

    def _destroy_domain(self, fields: Fields) -> Fields:
        domain = _handle(fields["domain"])
        self._native.destroy_domain(domain)
        del self._domains[domain]
        return _NOTHING

    def _register_memory(self, fields: Fields) -> Fields:
        key = self._native.register_memory(
            _handle(fields["domain"]),
            fields["address"],
            fields["length_bytes"],
            fields["virtual_address"],
            fields["access"] & 0xFFFFFFFF,
        )
        self._regions[key] = fields
        return {"key": key}

    def _register_again(self, fields: Fields) -> Fields:
        before = self._regions.get(fields["key"])
        if before is None:
            raise OSError(errno.EINVAL, f"no memory region {fields['key']}")
        changes = Changes(fields["changes"])
        changed = dict(before)
        if Changes.TRANSLATION in changes:
            changed |= {name: fields[name] for name in ("address", "length_bytes")}
            changed["virtual_address"] = fields["address"]
        if Changes.DOMAIN in changes:
            changed["domain"] = fields["domain"]
        if Changes.ACCESS in changes:
            changed["access"] = fields["access"]
        self._native.register_again(
            _handle(fields["key"]),
            _handle(changed["domain"]),
            changed["address"],
            changed["length_bytes"],
            changed["virtual_address"],
            changed["access"] & 0xFFFFFFFF,
        )
        self._regions[fields["key"]] = changed
        return {"new_key": fields["key"]}

    def _deregister_memory(self, fields: Fields) -> Fields:
        self._native.deregister_memory(_handle(fields["key"]))
        del self._regions[fields["key"]]
        return _NOTHING

    def _create_channel(self, fields: Fields) -> Answer:
        del fields
        channel = self._native.create_channel()
        return Answer(_NOTHING, [channel.descriptor])

    def _destroy_channel(self, fields: Fields) -> Fields:
        self._native.destroy_channel(fields["channel"])
        return _NOTHING

    def _create_completion_queue(self, fields: Fields) -> Answer:
        queue = self._native.create_completion_queue(_handle(fields["entries"]), fields["channel"], fields["cookie"])
        descriptor, entries, *_ = self._native.completion_queue(queue)
        return Answer({"queue": queue, "actual_entries": entries}, [descriptor])

    def _resize_completion_queue(self, fields: Fields) -> Answer:
        queue = _handle(fields["queue"])
        self._native.resize_completion_queue(queue, _handle(fields["entries"]))
        descriptor, entries, *_ = self._native.completion_queue(queue)
        return Answer({"actual_entries": entries}, [descriptor])

    def _destroy_completion_queue(self, fields: Fields) -> Fields:
        queue = _handle(fields["queue"])
        events, asynchronous = self._native.destroy_completion_queue(queue)
        return {"completion_events": events, "asynchronous_events": asynchronous}

    def _create_queue_pair(self, fields: Fields) -> Answer:
        try:
            kind = Kind(fields["type"])
        except ValueError as error:
            raise OSError(errno.EOPNOTSUPP, f"queue pairs of type {fields['type']}") from error
        flags = CreateFlag(fields["create_flags"])
        if flags not in (CreateFlag(0), CreateFlag.BLOCK_OWN_COPIES) or (flags and kind != Kind.UD):
            raise OSError(errno.EOPNOTSUPP, f"create flags {fields['create_flags']:#x}")
        if kind == Kind.MRC:
            self._ports.mrc.require()
            if fields["shared_queue"]:
                raise OSError(errno.EINVAL, "queue pairs of MRC have receives of their own")
        sizes = ("max_sends", "max_receives", "max_send_pieces", "max_receive_pieces", "max_inline_bytes")
        sends, receives, send_pieces, receive_pieces, inline_bytes = (_handle(fields[name]) for name in sizes)
        shared = _handle(fields["shared_queue"])
        handle = self._native.create_queue_pair(
            _handle(fields["domain"]),
            kind,
            _handle(fields["send_queue"]),
            _handle(fields["receive_queue"]),
            shared,
            (sends, receives, send_pieces, receive_pieces, inline_bytes),
            bool(fields["signals_all"]),
            fields["cookie"],
        )
        native = self._native.queue_pair(handle)
        place = Place(
            self._domains[fields["domain"]],
            self._native.shared_receives(shared) if shared else None,
            blocks_own_copies=CreateFlag.BLOCK_OWN_COPIES in flags,
            is_privileged=self._is_privileged,
        )
        self._queue_pairs[handle] = (
            MrcVerbsQueuePair(native, self._ports, place)
            if kind == Kind.MRC
            else VerbsQueuePair(kind, native, self._ports, place)
        )
        made = {
            "queue_pair": handle,
            "number": native.number,
            "actual_sends": native.send_entries,
            "actual_receives": native.receive_entries,
            "send_entry_bytes": native.send_entry_bytes,
        }
        return Answer(made, [native.descriptor])

    def _queue_pair(self, handle: int) -> VerbsQueuePair:
        found = self._queue_pairs.get(handle)
        if found is None:
            raise OSError(errno.EINVAL, f"no queue pair {handle}")
        return found

    def _modify_queue_pair(self, fields: Fields) -> Fields:
        return self._queue_pair(fields["queue_pair"]).modify(fields)

    def _query_queue_pair(self, fields: Fields) -> Fields:
        return self._queue_pair(fields["queue_pair"]).query()

    def _destroy_queue_pair(self, fields: Fields) -> Fields:
        handle = fields["queue_pair"]
        self._queue_pair(handle).leave()
        del self._queue_pairs[handle]
        return {"asynchronous_events": self._native.destroy_queue_pair(handle)}

    def _create_shared_queue(self, fields: Fields) -> Answer:
        queue = self._native.create_shared_queue(
            _handle(fields["domain"]), _handle(fields["max_requests"]), _handle(fields["max_pieces"]), fields["cookie"]
        )
        descriptor, entries, pieces, *_ = self._native.shared_queue(queue)
        ring = self._native.ring_of_shared_queue(queue)
        fields = {"queue": queue, "ring": ring, "actual_requests": entries, "actual_pieces": pieces}
        return Answer(fields, [descriptor])

    def _modify_shared_queue(self, fields: Fields) -> Fields:
        self._native.arm_shared_queue(_handle(fields["queue"]), fields["limit"])
        return _NOTHING

    def _query_shared_queue(self, fields: Fields) -> Fields:
        *_, limit = self._native.shared_queue(_handle(fields["queue"]))
        return {"limit": limit}

    def _destroy_shared_queue(self, fields: Fields) -> Fields:
        return {"asynchronous_events": self._native.destroy_shared_queue(_handle(fields["queue"]))}

    def _create_address_handle(self, fields: Fields) -> Fields:
        address = self._ports.address_handle(fields)
        return {"handle": self._native.create_address_handle(_handle(fields["domain"]), **address)}

    def _destroy_address_handle(self, fields: Fields) -> Fields:
        self._native.destroy_address_handle(_handle(fields["handle"]))
        return _NOTHING

    def _attach_group(self, fields: Fields) -> Fields:
        self._queue_pair(fields["queue_pair"]).join_group(str(address_of(fields["gid_high"], fields["gid_low"])))
        return _NOTHING

    def _detach_group(self, fields: Fields) -> Fields:
        self._queue_pair(fields["queue_pair"]).leave_group(str(address_of(fields["gid_high"], fields["gid_low"])))
        return _NOTHING

    def _query_mrc_device(self, fields: Fields) -> Fields:
        del fields
        return self._ports.mrc.query()

    def _query_ev_limits(self, fields: Fields) -> Fields:
        del fields
        return self._ports.mrc.evs.limits()

    def _controlled_evs(self) -> EvControl:
        """Return what carries out a controller's requests. Raises OSError (EPERM) for others than root."""
        if not self._is_privileged:
            raise OSError(errno.EPERM, "entropy values are root's to control")
        self._ports.mrc.require()
        return self._ports.mrc.evs

    def _query_port_admin(self, fields: Fields) -> Fields:
        self._controlled_evs()
        return {"is_enabled": int(self._ports.is_enabled(fields["port"]))}

    def _modify_port_admin(self, fields: Fields) -> Fields:
        self._controlled_evs()
        self._ports.enable(fields["port"], fields["is_enabled"])
        return _NOTHING

    def _query_ev_profile(self, fields: Fields) -> Fields:
        return self._controlled_evs().query_profile(fields["profile"])

    def _modify_ev_profile(self, fields: Fields) -> Fields:
        self._controlled_evs().modify_profile(fields)
        return _NOTHING

    def _replace_ev(self, fields: Fields) -> Fields:
        self._controlled_evs().replace(fields)
        return _NOTHING

    def _query_ev(self, fields: Fields) -> Fields:
        return self._controlled_evs().entry(fields["profile"], fields["index"])

    def _modify_ev_state(self, fields: Fields) -> Fields:
        self._controlled_evs().modify_state(fields)
        return _NOTHING

    def _query_ev_state(self, fields: Fields) -> Fields:
        return {"ev_state": self._controlled_evs().state(fields["profile"], fields["value"], fields["port"])}

    def _take_ev_event(self, fields: Fields) -> Fields:
        del fields
        return self._controlled_evs().take_event()


def _handle(value: int) -> int:
    """Return a field that has 32 bits. Raises OSError (EINVAL)."""
    if value > 0xFFFFFFFF:
        raise OSError(errno.EINVAL, f"{value:#x} has more than 32 bits")
    return value


def _memory_of(pid: int, uid: int) -> int:
    """Return a descriptor of a user's process's memory. Raises OSError."""
    memory = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)
    # A program that has become another since it connected, one with set-user-id say, belongs to somebody else by now.
    if os.fstat(memory).st_uid == uid:
        return memory
    os.close(memory)
    raise OSError(errno.EPERM, "its memory is another user's")
