"""Queue pairs of Multipath Reliable Connection (MRC) of clients, as `mrc.h` has them (docs/verbs.md)."""

from __future__ import annotations

import errno
from enum import IntFlag
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING

from weft.engine import _core
from weft.traffic.commands.connections import Connection, PlaneAddress
from weft.traffic.ev_profiles import EvProfile
from weft.traffic.transport_settings import DEFAULTS, MAX_WIMM
from weft.traffic.verbs.ev_control import EvControl
from weft.traffic.verbs.queue_pairs import Connected, Place, VerbsQueuePair, address_of
from weft.traffic.verbs.states import Attribute, Kind, State

if TYPE_CHECKING:
    from weft.traffic.host import Host
    from weft.traffic.verbs.ports import VerbsPorts

LABEL = "verbs"
MOST_MPR = 128
"""Packets under way, in units of 128 (kMaxOutstanding in engine/hosts/mrc/mrc_config.hpp)."""
_MOST_TIMEOUT = 24
_TIMEOUT_UNIT_NS = 1024
_MOST_LINEAR_RETRIES = 7
_RETRIES_FOR_EVER = 25
_ENDLESS = 2**32 - 1
CONGESTION_PROFILE = 0
"""The lab's own congestion control, the only profile of congestion control that there is."""
IGNORED = Attribute.PORT | Attribute.TIMEOUT | Attribute.RETRY_CNT | Attribute.RNR_RETRY | Attribute.MIN_RNR_TIMER
"""Attributes of libibverbs that have no meaning for MRC, which has its own; programs written for RC give them."""


class MrcAttribute(IntFlag):
    """`enum mrc_qp_attr_mask` of `mrc.h`: those that reach the NIC."""

    MAX_WIMM = 1 << 0
    MAX_WIMM_DEST = 1 << 1
    MPR = 1 << 2
    MPR_DEST = 1 << 3
    TIMEOUT = 1 << 4
    EV_PROFILE_ID = 1 << 5
    CC_PROFILE_ID = 1 << 6
    RETRY_CNT = 1 << 8
    CAP = 1 << 9


_M = MrcAttribute
_FIELDS = {
    _M.MAX_WIMM: ("max_wimm",),
    _M.MAX_WIMM_DEST: ("max_wimm_dest",),
    _M.MPR: ("mpr",),
    _M.MPR_DEST: ("mpr_dest",),
    _M.TIMEOUT: ("mrc_timeout",),
    _M.EV_PROFILE_ID: ("ev_profile",),
    _M.CC_PROFILE_ID: ("cc_profile",),
    _M.RETRY_CNT: ("linear_retries", "exponential_retries"),
    _M.CAP: ("mrc_capabilities",),
}
_RANGES = {
    "max_wimm": range(1, MAX_WIMM + 1),
    "max_wimm_dest": range(1, MAX_WIMM + 1),
    "mpr": range(1, MOST_MPR + 1),
    "mpr_dest": range(1, MOST_MPR + 1),
    "mrc_timeout": range(_MOST_TIMEOUT + 1),
    "cc_profile": range(CONGESTION_PROFILE, CONGESTION_PROFILE + 1),
    "linear_retries": range(_MOST_LINEAR_RETRIES + 1),
    "exponential_retries": range(_RETRIES_FOR_EVER + 1),
}
_TAKEN = {
    (State.RESET, State.INIT): _M.EV_PROFILE_ID | _M.CC_PROFILE_ID | _M.CAP,
    (State.INIT, State.INIT): _M.EV_PROFILE_ID | _M.CC_PROFILE_ID | _M.CAP,
    (State.INIT, State.RTR): _M.MAX_WIMM_DEST | _M.MPR_DEST | _M.CAP,
    (State.RTR, State.RTS): _M.MAX_WIMM | _M.MPR | _M.RETRY_CNT | _M.TIMEOUT,
}
"""Which attributes of MRC a transition takes, as the comment on `enum mrc_qp_attr_mask` has it."""
# Bits of enum mrc_qp_cap. The peer is not asked for service times, so that it has none changes nothing.
_SERVICE_TIME_UNSUPPORTED = 1 << 2


class MrcDevice:
    """A host's MRC for clients. There is some in labs whose transport is MRC.

    Elsewhere switches do not know its code points, and nothing says how many entropy values queue pairs have.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._addresses = {each: by_plane for by_plane in host.config.plane_addresses for each in by_plane}
        self.evs = EvControl(host)

    @property
    def is_supported(self) -> bool:
        """Whether there are queue pairs of MRC."""
        return self._host.config.transport.protocol == "mrc"

    def require(self) -> None:
        """Raise OSError (EOPNOTSUPP) if there are none."""
        if not self.is_supported:
            raise OSError(errno.EOPNOTSUPP, "queue pairs of MRC need a lab with transport.protocol: mrc")

    def query(self) -> dict[str, int]:
        """Carry out `query_mrc_device`."""
        return {
            "is_supported": int(self.is_supported),
            "most_wimm": MAX_WIMM,
            "most_mpr": MOST_MPR,
            "planes": len(self._host.config.nics),
        }

    def defaults(self) -> dict[str, int]:
        """Return the attributes of a queue pair whose program gives none, from the lab's transport."""
        transport = self._host.config.transport
        return {
            "max_wimm": transport.max_wimm,
            "max_wimm_dest": transport.max_wimm,
            "mpr": MOST_MPR,
            "mpr_dest": MOST_MPR,
            "mrc_timeout": self._default_timeout(),
            "ev_profile": self._host.operated_evs().profiles.assigned,
            "cc_profile": CONGESTION_PROFILE,
            "linear_retries": 0,
            "exponential_retries": DEFAULTS["retry_limit"],
            "mrc_capabilities": 0,
        }

    def _default_timeout(self) -> int:
        """Return the least exponent whose timeout is as long as the path's."""
        nics = self._host.config.nics
        needed_ps = self._host.transport.options(self._host.transport.whole(nics[0], range(1, len(nics))))[
            "retransmission_timeout_ps"
        ]
        exponents = range(_MOST_TIMEOUT + 1)
        return next((each for each in exponents if self._emulated_ps(each) >= needed_ps), _MOST_TIMEOUT)

    def _emulated_ps(self, exponent: int) -> int:
        return int((_TIMEOUT_UNIT_NS << exponent) * 1000 / self._host.config.dilation)

    def timeout_ps(self, exponent: int) -> int:
        """Return the emulated time of a timeout that programs give in time of the wall clock."""
        least_ps = max(self._host.transport.least_timeout_ps(nic) for nic in self._host.config.nics)
        return max(least_ps, self._emulated_ps(exponent))

    def ev_profile(self, number: int) -> EvProfile:
        """Return a profile that is online. Raises OSError (EINVAL)."""
        try:
            return self._host.operated_evs().profiles.online(number)
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error)) from error

    def _planes_to(self, port: int, destination: IPv4Address | IPv6Address) -> list[tuple[int, str]]:
        """Return the planes that the host shares with the one that has an address there, with its addresses.

        Raises OSError (EINVAL) for an address that nobody has, EOPNOTSUPP for an own one.
        """
        nics = self._host.config.nics
        name = str(destination)
        if any(name in (nic.ipv4, nic.ipv6) for nic in nics):
            raise OSError(errno.EOPNOTSUPP, "a queue pair of MRC to its own host")
        if len(nics) == 1:
            return [(0, name)]
        by_plane = self._addresses.get(name, ())[: len(nics)]
        if port > len(by_plane) or by_plane[port - 1] != name:
            raise OSError(errno.EINVAL, f"no host has {name} on port {port}")
        return list(enumerate(by_plane))

    def open_queue_pair(
        self,
        native: _core.VerbsQueuePair,
        attributes: dict[str, int],
        own: dict[str, int],
        mtu_bytes: int,
        place: Place,
    ) -> _core.MrcQueuePair:
        """Return the engine's queue pair for one of a client, over all planes. Raises OSError."""
        self.require()
        destination = address_of(attributes["gid_high"], attributes["gid_low"])
        (first, address), *more = self._planes_to(attributes["address_port"], destination)
        connection = Connection(
            plane=first,
            peer=self._host.config.rank,
            queue_pair=native.number,
            remote_queue_pair=attributes["remote_number"],
            destination_ip=address,
            label=LABEL,
            remote_initial_psn=attributes["receive_psn"],
            more_planes=tuple(PlaneAddress(plane, each) for plane, each in more),
        )
        plane = self._host.plane(first)
        try:
            made = self._host.transport.make_mrc_verbs_queue_pair(
                self._host.nic,
                plane.port,
                plane.config,
                native,
                connection,
                self.ev_profile(own["ev_profile"]),
                {"max_wimm_dest": own["max_wimm_dest"], "mpr_dest": own["mpr_dest"]},
                place.domain,
                path_mtu_bytes=mtu_bytes,
                receive_for_immediate=True,
            )
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error)) from error
        self._host.follow(made, connection)
        self._host.count_queue_pair(made)
        return made


class MrcVerbsQueuePair(VerbsQueuePair):
    """A queue pair of MRC of a client."""

    def __init__(self, native: _core.VerbsQueuePair, ports: VerbsPorts, place: Place) -> None:
        super().__init__(Kind.MRC, native, ports, place)
        self._device = ports.mrc
        self._own = self._wanted = self._device.defaults()

    def modify(self, fields: dict[str, int]) -> dict[str, int]:
        """See VerbsQueuePair."""
        answer = super().modify({**fields, "mask": fields["mask"] & ~int(IGNORED)})
        self._own = self._wanted
        if answer["new_state"] == State.RESET:
            self._own = self._device.defaults()
        return answer

    def _take_own(self, present: State, wanted: State, fields: dict[str, int]) -> None:
        mask = MrcAttribute(fields["mrc_mask"])
        changed = dict(self._own)
        # As numbers: the inverse of a flag lacks the bits that have no name.
        if excess := fields["mrc_mask"] & ~int(_TAKEN.get((present, wanted), 0)):
            raise OSError(errno.EINVAL, f"{present.name} to {wanted.name} takes no {MrcAttribute(excess)!r}")
        for attribute, names in _FIELDS.items():
            for name in names if attribute in mask else ():
                if name in _RANGES and fields[name] not in _RANGES[name]:
                    raise OSError(errno.EINVAL, f"{name} {fields[name]} is not in {_RANGES[name]}")
                changed[name] = fields[name]
        if _M.EV_PROFILE_ID in mask:
            self._device.ev_profile(changed["ev_profile"])
        if changed["mrc_capabilities"] & ~_SERVICE_TIME_UNSUPPORTED:
            raise OSError(errno.EOPNOTSUPP, f"capabilities {changed['mrc_capabilities']:#x} of MRC")
        self._wanted = changed

    def _open(self, attributes: dict[str, int], mtu_bytes: int) -> Connected:
        return self._device.open_queue_pair(self.native, attributes, self._wanted, mtu_bytes, self._place)

    def _begin_sending(self, attributes: dict[str, int]) -> None:
        assert isinstance(self._counterpart, _core.MrcQueuePair)
        own = self._wanted
        exponential = own["exponential_retries"]
        retries = own["linear_retries"] + exponential
        self._counterpart.begin_sending(
            initial_psn=attributes["send_psn"],
            retransmission_timeout_ps=self._device.timeout_ps(own["mrc_timeout"]),
            retry_limit=_ENDLESS if exponential == _RETRIES_FOR_EVER else retries,
            even_retries=own["linear_retries"],
            max_wimm=own["max_wimm"],
            mpr=own["mpr"],
        )

    def query(self) -> dict[str, int]:
        """See VerbsQueuePair."""
        return {**super().query(), **self._own}
