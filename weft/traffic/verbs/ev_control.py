"""Control of a host's entropy values (EVs) by its clients, as `mrc_ctl.h` has it (docs/verbs.md)."""

from __future__ import annotations

import errno
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING

from weft.quantities.ev_profiles import EvEventState, EvMode, ProfileState
from weft.traffic.commands.evs import EvOfPeer
from weft.traffic.ev_profiles import MAX_EVS, MOST_PROFILES, EvOfPlane, EvProfile, EvProfileAttributes, event_bits

if TYPE_CHECKING:
    from weft.traffic.host import Host

FORMAT = 0
"""The lab's own format of EVs, the only one that there is."""
EV_BITS = 32
_MASK = (1 << EV_BITS) - 1
# enum mrc_ctl_profile_state, enum mrc_ctl_ev_mode.
_STATES: tuple[ProfileState, ...] = ("init", "offline", "online")
_MODES: dict[int, EvMode] = {1: "auto", 2: "explicit"}
_EVENT_STATES: tuple[EvEventState, ...] = ("good", "assumed_bad")


class ProfileAttribute(IntFlag):
    """`enum mrc_ctl_ev_profile_attr_mask`: those that reach the NIC as attributes."""

    STATE = 1 << 0
    MODE = 1 << 2
    FMT_ID = 1 << 3
    COUNT = 1 << 4
    MIN_ACTIVE = 1 << 5
    EVENT_MASK = 1 << 6


class EvState(IntEnum):
    """`enum mrc_ctl_ev_state`."""

    GOOD = 1 << 0
    ASSUMED_BAD = 1 << 1
    DENIED = 1 << 2
    UNKNOWN = 1 << 31


class EvControl:
    """Carries out requests about EV profiles and EVs. Errors are OSError with what the function returns.

    Programs fill an explicit profile one EV after the other; until all are there, and the profile goes online, they
    are kept here. A profile has no states: its queue pairs have them.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._drafts: dict[int, list[EvOfPlane | None]] = {}

    def limits(self) -> dict[str, int]:
        """Carry out `query_ev_limits`."""
        config = self._host.config
        return {
            "most_profiles": MOST_PROFILES,
            "most_evs": MAX_EVS,
            "ev_alignment": len(config.nics),
            "ev_bits": EV_BITS,
            "encapsulates": int(config.ev_paths is not None and config.ev_paths.encapsulates),
            "has_nscc": int(config.transport.congestion_control == "nscc"),
        }

    def _profile(self, profile_id: int) -> EvProfile:
        profiles = self._host.operated_evs().all_profiles()
        return next((each for each in profiles if each.profile_id == profile_id), EvProfile(profile_id))

    def _array(self, profile: EvProfile) -> list[EvOfPlane | None]:
        """Return an explicit profile's EVs, None where one is missing."""
        if profile.ev_mode != "explicit":
            return []
        if profile.evs:
            return list(profile.evs)
        assert profile.ev_count is not None
        count = profile.ev_count + profile.ev_backups
        if len(self._drafts.get(profile.profile_id, ())) != count:
            self._drafts[profile.profile_id] = [None] * count
        return self._drafts[profile.profile_id]

    def query_profile(self, profile_id: int) -> dict[str, int]:
        """Carry out `query_ev_profile`."""
        profile = self._profile(profile_id)
        modes = {mode: number for number, mode in _MODES.items()}
        return {
            "profile_state": _STATES.index(profile.state),
            "ev_mode": 0 if profile.ev_mode is None else modes[profile.ev_mode],
            "ev_format": FORMAT,
            "ev_count": profile.ev_count or 0,
            "ev_min_active": profile.ev_min_active or 0,
            "ev_event_mask": profile.event_bits,
            "entries": len(self._array(profile)),
        }

    def modify_profile(self, fields: dict[str, int]) -> None:
        """Carry out `modify_ev_profile`."""
        mask, profile = ProfileAttribute(fields["mask"]), self._profile(fields["profile"])
        attributes = _attributes(mask, fields)
        if attributes.state == "offline" and profile.state == "online" and profile.queue_pairs:
            raise OSError(errno.EBUSY, f"{profile.queue_pairs} queue pairs have EV profile {profile.profile_id}")
        evs = self._host.operated_evs()
        if attributes.state == "online" and profile.state == "offline" and profile.ev_mode == "explicit":
            attributes = EvProfileAttributes(**attributes.given | {"evs": self._complete(profile)})
        try:
            evs.modify_profile(profile.profile_id, attributes)
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error)) from error
        if attributes.state in ("init", "online") or attributes.ev_mode is not None or attributes.ev_count is not None:
            self._drafts.pop(profile.profile_id, None)

    def _complete(self, profile: EvProfile) -> tuple[EvOfPlane, ...]:
        array = self._array(profile)
        found = tuple(each for each in array if each is not None)
        if len(found) < len(array):
            missing = len(array) - len(found)
            raise OSError(errno.EINVAL, f"EV profile {profile.profile_id} lacks {missing} of {len(array)} EVs")
        return found

    def replace(self, fields: dict[str, int]) -> None:
        """Carry out `replace_ev`: the first entry that is so, or all."""
        profile = self._profile(fields["profile"])
        array = list(self._array(profile))
        if profile.state != "offline" or not array:
            raise OSError(errno.EINVAL, f"EV profile {profile.profile_id} is {profile.state}, or not explicit")
        before = None if (fields["value"], fields["port"]) == (0, 0) else _ev(fields["value"], fields["port"])
        if not 1 <= fields["new_port"] <= len(self._host.config.nics) or not 0 < fields["new_value"] <= _MASK:
            raise OSError(errno.EINVAL, f"EV {fields['new_value']:#x} of port {fields['new_port']}")
        places = [number for number, each in enumerate(array) if each == before]
        if not places:
            raise OSError(errno.ENOENT, f"EV profile {profile.profile_id} has no EV {before}")
        for place in places if fields["all_copies"] else places[:1]:
            array[place] = _ev(fields["new_value"], fields["new_port"])
        if profile.evs:
            self._host.operated_evs().modify_profile(profile.profile_id, EvProfileAttributes(evs=()))
        self._drafts[profile.profile_id] = array

    def entry(self, profile_id: int, index: int) -> dict[str, int]:
        """Carry out `query_ev`."""
        array = self._array(self._profile(profile_id))
        if index >= len(array):
            raise OSError(errno.EINVAL, f"EV {index} of {len(array)}")
        ev = array[index]
        if ev is None:
            return {"value": 0, "port": 0, "ev_state": EvState.UNKNOWN}
        return {"value": ev.value, "port": ev.plane + 1, "ev_state": self._state(profile_id, ev)}

    def state(self, profile_id: int, value: int, port: int) -> int:
        """Carry out `query_ev_state`."""
        ev = _ev(value, port)
        state = self._state(profile_id, ev)
        if state == EvState.UNKNOWN and ev not in self._array(self._profile(profile_id)):
            raise OSError(errno.ENOENT, f"EV profile {profile_id} has no EV {value:#x} of port {port}")
        return state

    def _state(self, profile_id: int, ev: EvOfPlane) -> EvState:
        states = {state for _, state in self._host.operated_evs().of_profile(profile_id, ev)}
        if not states:
            return EvState.UNKNOWN
        if "denied" in states:
            return EvState.DENIED
        return EvState.ASSUMED_BAD if "assumed_bad" in states else EvState.GOOD

    def modify_state(self, fields: dict[str, int]) -> None:
        """Carry out `modify_ev_state`: for the queue pairs that have the profile now."""
        if fields["ev_state"] not in (EvState.GOOD, EvState.DENIED):
            raise OSError(errno.EINVAL, f"state {fields['ev_state']:#x} of an EV")
        evs, ev = self._host.operated_evs(), _ev(fields["value"], fields["port"])
        found: set[EvOfPeer] = {each for each, _ in evs.of_profile(fields["profile"], ev)}
        if not found:
            raise OSError(errno.ENOENT, f"no queue pair of EV profile {fields['profile']} has the EV {ev.value:#x}")
        try:
            evs.set_denied(found, denied=fields["ev_state"] == EvState.DENIED)
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error)) from error

    def take_event(self) -> dict[str, int]:
        """Carry out `take_ev_event`: the oldest event that nobody has taken."""
        for event in self._host.operated_evs().take_events(1):
            return {
                "is_there": 1,
                "profile": event.profile_id,
                "value": event.value,
                "port": event.plane + 1,
                "ev_state": EvState.GOOD if event.state == "good" else EvState.ASSUMED_BAD,
                "drop_count": event.drop_count,
            }
        return dict.fromkeys(("is_there", "profile", "value", "port", "ev_state", "drop_count"), 0)


def _ev(value: int, port: int) -> EvOfPlane:
    return EvOfPlane(port - 1, value)


def _attributes(mask: ProfileAttribute, fields: dict[str, int]) -> EvProfileAttributes:
    """Return the attributes that a request gives. Raises OSError for those that there are not."""
    if unknown := int(mask) & ~sum(ProfileAttribute):
        raise OSError(errno.EINVAL, f"attributes {unknown:#x} of an EV profile")
    given: dict[str, object] = {}
    if ProfileAttribute.STATE in mask:
        if fields["profile_state"] >= len(_STATES):
            raise OSError(errno.EINVAL, f"state {fields['profile_state']} of an EV profile")
        given["state"] = _STATES[fields["profile_state"]]
    if ProfileAttribute.MODE in mask:
        if fields["ev_mode"] not in _MODES:
            raise OSError(errno.EOPNOTSUPP, f"EV mode {fields['ev_mode']:#x}")
        given["ev_mode"] = _MODES[fields["ev_mode"]]
    if ProfileAttribute.FMT_ID in mask and fields["ev_format"] != FORMAT:
        raise OSError(errno.EINVAL, f"format profile {fields['ev_format']} of EVs")
    if ProfileAttribute.COUNT in mask:
        given["ev_count"] = fields["ev_count"]
    if ProfileAttribute.MIN_ACTIVE in mask:
        given["ev_min_active"] = fields["ev_min_active"]
    if ProfileAttribute.EVENT_MASK in mask:
        if fields["ev_event_mask"] & ~event_bits(_EVENT_STATES):
            raise OSError(errno.EINVAL, f"events {fields['ev_event_mask']:#x} of an EV profile")
        given["ev_event_mask"] = tuple(each for each in _EVENT_STATES if fields["ev_event_mask"] & event_bits([each]))
    return EvProfileAttributes(**given)  # type: ignore[arg-type]
