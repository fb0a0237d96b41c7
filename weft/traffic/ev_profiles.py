"""Profiles of entropy values (EVs) of a host's NIC, as the controller's interface of MRC (`mrc_ctl.h`) divides them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from weft.errors import InvalidValueError
from weft.quantities.ev_profiles import MOST_PROFILE_ID, EvEventState, EvMode, ProfileState

_EVENT_BITS: Mapping[EvEventState, int] = {"good": 1, "assumed_bad": 2}
"""MRC_CTL_EV_GOOD and MRC_CTL_EV_ASSUMED_BAD, as the engine's option `ev_event_mask` has them."""
SCENARIO_PROFILE = 0
"""The profile of the scenario's keys `ev_count`, `ev_backups` and `ev_min_active`, always online."""
MOST_PROFILES = 64
MAX_EVS = 4096
"""Entropy values of a queue pair of MRC that take turns, and that are in reserve."""
_NEXT_STATES: Mapping[ProfileState, tuple[ProfileState, ...]] = {
    "init": ("offline",),
    "offline": ("online", "init"),
    "online": ("offline",),
}
_NEEDED: Mapping[tuple[ProfileState, ProfileState], tuple[str, ...]] = {
    ("init", "offline"): ("ev_mode", "ev_count"),
    ("offline", "online"): ("ev_min_active", "ev_event_mask"),
}


class EvOfPlane(NamedTuple):
    """An EV that a profile names: its plane, with the number of the NIC's port, and its value."""

    plane: int
    value: int


@dataclass(frozen=True)
class EvProfileAttributes:
    """Attributes to change; None: as they are.

    Attributes:
        state: the next one, of init, offline, online.
        ev_mode: `auto`: queue pairs draw their EVs; `explicit`: they take `evs`.
        ev_count: active EVs of a queue pair.
        ev_backups: EVs in reserve.
        ev_min_active: EVs of a queue pair that stay active even if their paths fail.
        ev_event_mask: states whose beginning is an EV event.
        evs: all EVs of an explicit profile.

    """

    state: ProfileState | None = None
    ev_mode: EvMode | None = None
    ev_count: int | None = None
    ev_backups: int | None = None
    ev_min_active: int | None = None
    ev_event_mask: tuple[EvEventState, ...] | None = None
    evs: tuple[EvOfPlane, ...] | None = None

    @property
    def given(self) -> dict[str, Any]:
        """Those that are not None, by name."""
        return {name: getattr(self, name) for name in asdict(self) if getattr(self, name) is not None}


@dataclass(frozen=True)
class EvProfile:
    """An EV profile; what is None has not been set. See `EvProfileAttributes`.

    `assigned`: queue pairs that are made from now on have it. `queue_pairs`: how many have it now; a workload under way
    that makes queue pairs with it counts as one at least.
    """

    profile_id: int
    state: ProfileState = "init"
    ev_mode: EvMode | None = None
    ev_count: int | None = None
    ev_backups: int = 0
    ev_min_active: int | None = None
    ev_event_mask: tuple[EvEventState, ...] | None = None
    evs: tuple[EvOfPlane, ...] = field(default=())
    assigned: bool = False
    queue_pairs: int = 0

    @property
    def event_bits(self) -> int:
        """`ev_event_mask` as the engine has it."""
        return event_bits(self.ev_event_mask or ())

    def values_on(self, plane: int) -> list[int]:
        """Return the values of an explicit profile's EVs on a plane."""
        return [each.value for each in self.evs if each.plane == plane]


def event_bits(states: Sequence[EvEventState]) -> int:
    """Return the engine's mask of states."""
    return sum(_EVENT_BITS[each] for each in dict.fromkeys(states))


class EvProfiles:
    """The profiles of a host; a profile that is not there is in the state init.

    `planes`: how many its NIC has. `in_use` returns how many queue pairs have a profile now.
    """

    def __init__(self, ev_count: int, ev_backups: int, ev_min_active: int, planes: int) -> None:
        self._planes = planes
        self.assigned = SCENARIO_PROFILE
        self._profiles = {
            SCENARIO_PROFILE: EvProfile(
                SCENARIO_PROFILE, "online", "auto", ev_count, ev_backups, ev_min_active, ev_event_mask=()
            )
        }

    def all(self, in_use: Callable[[int], int]) -> list[EvProfile]:
        """Return those that are not in init, by number."""
        return [
            replace(each, assigned=number == self.assigned, queue_pairs=in_use(number))
            for number, each in sorted(self._profiles.items())
        ]

    @property
    def of_new_queue_pairs(self) -> EvProfile:
        """The profile that queue pairs get which are made now."""
        return self._profiles[self.assigned]

    def assign(self, profile_id: int) -> None:
        """Have queue pairs that are made from now on take this profile. Raises as `online`."""
        self.assigned = self.online(profile_id).profile_id

    def online(self, profile_id: int) -> EvProfile:
        """Return a profile for a queue pair. Raises ValueError unless it is online."""
        if (profile := self._profiles.get(profile_id)) is None or profile.state != "online":
            state = "init" if profile is None else profile.state
            online = [number for number, each in self._profiles.items() if each.state == "online"]
            raise InvalidValueError(f"EV profile {profile_id} is {state}", valid=", ".join(map(str, sorted(online))))
        return profile

    def modify(self, profile_id: int, attributes: EvProfileAttributes, queue_pairs: int) -> EvProfile:
        """Change a profile, which `queue_pairs` have, and return it. Raises ValueError for what cannot be."""
        if not 0 <= profile_id <= MOST_PROFILE_ID:
            raise InvalidValueError(f"EV profile {profile_id}", valid=f"0 to {MOST_PROFILE_ID}")
        before = self._profiles.get(profile_id, EvProfile(profile_id))
        given = attributes.given
        state: ProfileState = given.get("state", before.state)
        self._require_transition(before, state, given, queue_pairs)
        after = replace(before, **given)
        if given.get("ev_mode") == "auto" and "evs" not in given:
            after = replace(after, evs=())  # those of the explicit profile that it was
        if state == "init":
            self._profiles.pop(profile_id, None)
            return EvProfile(profile_id)
        for name in _NEEDED.get((before.state, state), ()):
            if getattr(after, name) is None:
                raise InvalidValueError(f"EV profile {profile_id} lacks {name}", valid=f"{state} with {name}")
        self._check(after)
        if profile_id not in self._profiles and len(self._profiles) >= MOST_PROFILES:
            raise InvalidValueError(f"{MOST_PROFILES + 1} EV profiles of a host", valid=f"at most {MOST_PROFILES}")
        self._profiles[profile_id] = after
        return after

    def _require_transition(
        self, before: EvProfile, state: ProfileState, given: Mapping[str, Any], queue_pairs: int
    ) -> None:
        place = f"EV profile {before.profile_id}"
        if before.profile_id == SCENARIO_PROFILE and set(given) - {"ev_event_mask"}:
            raise InvalidValueError(f"{place} is the scenario's", valid="a change of ev_event_mask alone")
        if state != before.state and state not in _NEXT_STATES[before.state]:
            valid = ", ".join(_NEXT_STATES[before.state])
            raise InvalidValueError(f"{place} is {before.state} and cannot become {state}", valid=valid)
        if state == before.state == "init":
            raise InvalidValueError(f"{place} is init", valid="state offline, with ev_mode and ev_count")
        if state == before.state == "online" and set(given) - {"ev_event_mask", "state"}:
            raise InvalidValueError(f"{place} is online", valid="a change of ev_event_mask alone, or state offline")
        if before.state == "online" and state == "offline":
            if self.assigned == before.profile_id:
                raise ValueError(f"{place} is assigned to queue pairs to come: assign another first")
            if queue_pairs > 0:
                raise ValueError(f"{place} is in use by {queue_pairs} queue pairs (a workload under way: at least 1)")

    def _check(self, profile: EvProfile) -> None:
        """Raise ValueError for attributes that do not go together."""
        place, planes = f"EV profile {profile.profile_id}", self._planes
        count, backups = profile.ev_count, profile.ev_backups
        assert count is not None
        if not planes <= count <= MAX_EVS:
            raise InvalidValueError(f"{place}: ev_count {count}", valid=f"{planes} to {MAX_EVS}, one for each plane")
        if not 0 <= backups <= MAX_EVS:
            raise InvalidValueError(f"{place}: ev_backups {backups}", valid=f"0 to {MAX_EVS}")
        if profile.ev_min_active is not None and not 0 <= profile.ev_min_active <= count:
            raise InvalidValueError(f"{place}: ev_min_active {profile.ev_min_active}", valid=f"0 to {count} (ev_count)")
        if profile.ev_mode == "auto":
            if profile.evs:
                raise InvalidValueError(f"{place}: evs", valid="ev_mode explicit, which takes them")
        elif profile.evs or profile.state == "online":
            self._check_explicit(place, profile, count, backups)

    def _check_explicit(self, place: str, profile: EvProfile, count: int, backups: int) -> None:
        planes, total = self._planes, count + backups
        by_plane = Counter(each.plane for each in profile.evs)
        if unknown := [each for each in by_plane if not 0 <= each < planes]:
            raise InvalidValueError(f"{place}: an EV of plane {unknown[0]}", valid=f"0 to {planes - 1}")
        # Each alone: a plane of a queue pair has its share of either.
        if count % planes or backups % planes:
            raise InvalidValueError(
                f"{place}: explicit, ev_count {count}, ev_backups {backups}", valid=f"multiples of {planes}, the planes"
            )
        if any(by_plane[plane] * planes != total for plane in range(planes)):
            counts = ", ".join(str(by_plane[plane]) for plane in range(planes))
            raise InvalidValueError(
                f"{place}: {counts} EVs of its planes", valid=f"ev_count and ev_backups, {total}, divided equally"
            )
        ports: set[int] = set()
        for each in profile.evs:
            if not 1 << 16 <= each.value < 1 << 32:
                problem = f"{place}: EV {hex(each.value)}"
                raise InvalidValueError(problem, valid="0x10000 to 0xffffffff, as no UDP source port is 0")
            if each.value >> 16 in ports:
                raise InvalidValueError(f"{place}: EV 0x{each.value:08x}", valid="EVs with different UDP source ports")
            ports.add(each.value >> 16)
