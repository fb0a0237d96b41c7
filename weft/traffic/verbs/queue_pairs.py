"""Queue pairs of clients: their states and attributes, and their counterparts in the engine."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

from weft.engine import _core
from weft.traffic.verbs.states import Access, Attribute, Kind, State, check_transition

if TYPE_CHECKING:
    from weft.traffic.verbs.ports import VerbsPorts

_MTU_BYTES = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}
_MAX_PSN = 0xFFFFFF
_PRIVILEGED_Q_KEY = 1 << 31
"""Management's, such as queue pair 1's (InfiniBand Architecture Specification volume 1, section 10.2.5)."""
MAX_GROUPS = 1024
# Which fields each attribute brings.
_FIELDS = {
    Attribute.ACCESS_FLAGS: ("access",),
    Attribute.PORT: ("port",),
    Attribute.QKEY: ("qkey",),
    Attribute.AV: (
        "is_global",
        "gid_high",
        "gid_low",
        "flow_label",
        "gid_index",
        "hop_limit",
        "traffic_class",
        "address_port",
    ),
    Attribute.PATH_MTU: ("path_mtu",),
    Attribute.TIMEOUT: ("timeout",),
    Attribute.RETRY_CNT: ("retry_count",),
    Attribute.RNR_RETRY: ("rnr_retry",),
    Attribute.RQ_PSN: ("receive_psn",),
    Attribute.MAX_QP_RD_ATOMIC: ("max_reads_sent",),
    Attribute.MIN_RNR_TIMER: ("rnr_timer",),
    Attribute.SQ_PSN: ("send_psn",),
    Attribute.EN_SQD_ASYNC_NOTIFY: ("tells_drained",),
    Attribute.MAX_DEST_RD_ATOMIC: ("max_reads_answered",),
    Attribute.DEST_QPN: ("remote_number",),
}
# The greatest value of a field; those that are not here may have any of their width.
_MOST = {
    "receive_psn": _MAX_PSN,
    "send_psn": _MAX_PSN,
    "remote_number": _MAX_PSN,
    "timeout": 31,
    "retry_count": 7,
    "rnr_retry": 7,
    "rnr_timer": 31,
    "flow_label": 0xFFFFF,
}


def address_of(gid_high: int, gid_low: int) -> IPv4Address | IPv6Address:
    """Return the address of a RoCEv2 GID."""
    address = IPv6Address(gid_high << 64 | gid_low)
    return address.ipv4_mapped or address


def source_port_of(flow_label: int) -> int | None:
    """Return the UDP source port of packets with a flow label; None lets the host choose.

    Folded as Linux's RDMA core does (rdma_flow_label_to_udp_sport).
    """
    if flow_label == 0:
        return None
    return (flow_label & 0x3FFF ^ flow_label >> 14) & 0x3FFF | 0xC000


Connected = _core.RcQueuePair | _core.UcQueuePair | _core.MrcQueuePair
Counterpart = Connected | _core.UdQueuePair
MRC_FIELDS = (
    "max_wimm",
    "max_wimm_dest",
    "mpr",
    "mpr_dest",
    "mrc_timeout",
    "ev_profile",
    "cc_profile",
    "linear_retries",
    "exponential_retries",
    "mrc_capabilities",
)
"""Fields of requests for queue pairs of MRC alone (WEFT_VERBS_MRC_ATTRIBUTES)."""


@dataclass(frozen=True)
class Place:
    """Where a queue pair finds keys, and receives if they are shared; and whether its groups leave it out itself."""

    domain: _core.MemoryDomain
    shared_receives: _core.SharedReceives | None
    blocks_own_copies: bool = False
    is_privileged: bool = False
    """Whether it is root's."""


class VerbsQueuePair:
    """A queue pair of a client. `native` takes its work."""

    def __init__(self, kind: Kind, native: _core.VerbsQueuePair, ports: VerbsPorts, place: Place) -> None:
        self.native, self._kind, self._ports, self._place = native, kind, ports, place
        self._state = State.RESET
        self._attributes = dict.fromkeys((name for names in _FIELDS.values() for name in names), 0)
        self._counterpart: Counterpart | None = None
        self._groups: set[str] = set()

    @property
    def state(self) -> State:
        """Its state: ERR, too, once the engine has found an error."""
        if self._state not in (State.RESET, State.INIT) and self.native.has_failed:
            self._state = State.ERR
        return self._state

    def modify(self, fields: dict[str, int]) -> dict[str, int]:
        """Carry out `modify_queue_pair`. Raises OSError with what the verb returns."""
        mask = Attribute(fields["mask"])
        present = self.state
        try:
            wanted = State(fields["state"]) if Attribute.STATE in mask else present
        except ValueError as error:
            raise OSError(errno.EINVAL, f"state {fields['state']}") from error
        check_transition(self._kind, present, wanted, mask)
        self._take_own(present, wanted, fields)
        changed = self._changed(mask, fields)
        if wanted != present and wanted == State.RTR:
            self._connect(changed)
        if wanted != present and wanted == State.RTS and present == State.RTR:
            self._begin_sending(changed)
        if Attribute.ACCESS_FLAGS in mask or wanted == State.RTR:
            self._open_memory(changed["access"])
        if Attribute.QKEY in mask and isinstance(self._counterpart, _core.UdQueuePair):
            self._counterpart.set_q_key(changed["qkey"])
        self._attributes = changed
        self._enter(present, wanted)
        return {"new_state": wanted}

    def _take_own(self, present: State, wanted: State, fields: dict[str, int]) -> None:
        """Take attributes that only one kind has. Raises OSError (EINVAL) if it is not this one."""
        del present, wanted
        if fields["mrc_mask"]:
            raise OSError(errno.EINVAL, "attributes of MRC for another queue pair")

    def _changed(self, mask: Attribute, fields: dict[str, int]) -> dict[str, int]:
        changed = self._attributes | {"tells_drained": 0}  # asked for each time
        for attribute, names in _FIELDS.items():
            if attribute not in mask:
                continue
            for name in names:
                if fields[name] > _MOST.get(name, 2**64 - 1):
                    raise OSError(errno.EINVAL, f"{name} {fields[name]} is above {_MOST[name]}")
                changed[name] = fields[name]
        if changed["qkey"] & _PRIVILEGED_Q_KEY and not self._place.is_privileged:
            raise OSError(errno.EACCES, "Q_Keys with the highest bit set are root's")
        if Attribute.PORT in mask:
            self._ports.check_port(changed["port"])
        if Attribute.AV in mask:
            self._ports.check_address(changed)
        return changed

    def _connect(self, attributes: dict[str, int]) -> None:
        """Make the counterpart in the engine, which receives from now on."""
        if self._kind == Kind.UD:
            datagrams = self._ports.open_datagrams(self.native, attributes, self._place)
            self.native.connect_datagrams(datagrams, self._ports.native_port(attributes["port"]))
            datagrams.block_own_copies(self._place.blocks_own_copies)
            self._counterpart = datagrams
            for group in self._groups:
                datagrams.join(group)
            return
        mtu_bytes = _MTU_BYTES.get(attributes["path_mtu"])
        if mtu_bytes is None:
            raise OSError(errno.EINVAL, f"path_mtu {attributes['path_mtu']}")
        connected = self._open(attributes, mtu_bytes)
        self.native.connect(connected)
        self._counterpart = connected

    def _open(self, attributes: dict[str, int], mtu_bytes: int) -> Connected:
        return self._ports.open_queue_pair(self._kind, self.native, attributes, mtu_bytes, self._place)

    def _open_memory(self, access: int) -> None:
        if isinstance(self._counterpart, Connected):
            self._counterpart.set_remote_access(
                write=Access.REMOTE_WRITE in Access(access),
                read=Access.REMOTE_READ in Access(access),
                atomic=Access.REMOTE_ATOMIC in Access(access),
            )

    def _begin_sending(self, attributes: dict[str, int]) -> None:
        psn = attributes["send_psn"]
        if isinstance(self._counterpart, _core.RcQueuePair):
            self._counterpart.begin_sending(
                initial_psn=psn,
                retransmission_timeout_ps=self._ports.timeout_ps(attributes["address_port"], attributes["timeout"]),
                retry_limit=attributes["retry_count"],
                rnr_retry_limit=attributes["rnr_retry"],
                max_reads=attributes["max_reads_sent"],
            )
        elif isinstance(self._counterpart, _core.UcQueuePair):
            self._counterpart.begin_sending(initial_psn=psn)

    def join_group(self, group: str) -> None:
        """Receive what comes for a group. Raises OSError (EINVAL)."""
        if len(self._groups) >= MAX_GROUPS:
            raise OSError(errno.ENOMEM, f"no more than {MAX_GROUPS} groups")
        if self._kind != Kind.UD or group in self._groups or not ip_address(group).is_multicast:
            raise OSError(errno.EINVAL, f"{group} is no group that it can join")
        if isinstance(self._counterpart, _core.UdQueuePair):
            self._counterpart.join(group)
        self._groups.add(group)

    def leave_group(self, group: str) -> None:
        """Receive no more of it. Raises OSError (EINVAL) if it is no member."""
        if group not in self._groups:
            raise OSError(errno.EINVAL, f"no member of {group}")
        if isinstance(self._counterpart, _core.UdQueuePair):
            self._counterpart.leave(group)
        self._groups.remove(group)

    def _enter(self, present: State, wanted: State) -> None:
        self._state = wanted
        if wanted == State.RESET:
            self.leave()
            self.native.reset()
            self._attributes = dict.fromkeys(self._attributes, 0)
        elif wanted == State.ERR:
            self.native.fail()
        elif wanted == State.RTR:
            self.native.set_stage("receives")
        elif wanted == State.SQD and present != State.SQD:
            self.native.drain(notifies=bool(self._attributes["tells_drained"]))
        elif wanted == State.RTS and present != State.RTS:
            self.native.set_stage("both")

    def leave(self) -> None:
        """Keep what its counterpart has counted, which goes now."""
        if self._counterpart is not None:
            self._ports.count_no_more(self._counterpart)
        self._counterpart = None

    def query(self) -> dict[str, int]:
        """Carry out `query_queue_pair`."""
        state = self.state
        return {
            **dict.fromkeys(MRC_FIELDS, 0),
            **self._attributes,
            "state": state,
            "is_draining": int(state == State.SQD and self.native.has_sends),
        }
