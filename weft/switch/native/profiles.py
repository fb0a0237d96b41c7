"""Action profiles of the native switch: members and groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.engine import _core
from weft.switch import backend
from weft.switch.backend.checks import check_call, check_group, profile_actions
from weft.switch.native.bindings import checked_id
from weft.switch.native.running import RunningProgram


class ActionProfiles:
    """Members and groups of action profiles."""

    def __init__(self, native: _core.Switch, running: RunningProgram) -> None:
        self._native = native
        self._running = running

    def _require_room(self, profile: str, what: str) -> None:
        """Raise CapacityExceededError unless one more of `what`, members or groups, fits."""
        members, groups = self._native.profile_sizes(self._running.profile_index(profile))
        limit = self._running.program.action_profiles[profile].max_size
        if (members if what == "members" else groups) >= limit:
            raise backend.CapacityExceededError(f"action profile '{profile}' is full ({limit} {what})")

    def insert_member(self, profile: str, member_id: int, action: backend.ActionCall) -> None:
        """Add a member to an action profile."""
        index = self._running.profile_index(profile)
        number, data = self._member_action(profile, action)
        checked_id("member", member_id)
        self._require_room(profile, "members")
        if not self._native.member_insert(index, member_id, number, data):
            raise backend.EntryExistsError(f"action profile '{profile}' has a member {member_id} already")

    def modify_member(self, profile: str, member_id: int, action: backend.ActionCall) -> None:
        """Replace a member's action."""
        index = self._running.profile_index(profile)
        number, data = self._member_action(profile, action)
        _in_profile(profile, self._native.member_modify, index, checked_id("member", member_id), number, data)

    def delete_member(self, profile: str, member_id: int) -> None:
        """Remove a member."""
        index = self._running.profile_index(profile)
        if not _in_profile(profile, self._native.member_delete, index, checked_id("member", member_id)):
            raise backend.NotReadyError(f"member {member_id} of action profile '{profile}' is in use")

    def insert_group(
        self, profile: str, group_id: int, members: Sequence[backend.GroupMember], *, random: bool = False
    ) -> None:
        """Add a group; with `random`, which is permanent, it chooses at random instead of by the selector's hash."""
        index = self._selector(profile)
        check_group(group_id, members)
        self._require_room(profile, "groups")
        given = _members(members)
        if not _in_profile(profile, self._native.group_insert, index, group_id, given, random):
            raise backend.EntryExistsError(f"action profile '{profile}' has a group {group_id} already")

    def modify_group(self, profile: str, group_id: int, members: Sequence[backend.GroupMember]) -> None:
        """Replace a group's members."""
        index = self._selector(profile)
        check_group(group_id, members)
        _in_profile(profile, self._native.group_modify, index, group_id, _members(members))

    def delete_group(self, profile: str, group_id: int) -> None:
        """Remove a group."""
        index = self._selector(profile)
        if not _in_profile(profile, self._native.group_delete, index, checked_id("group", group_id)):
            raise backend.NotReadyError(f"group {group_id} of action profile '{profile}' is in use")

    def _member_action(self, profile: str, call: backend.ActionCall) -> tuple[int, bytes]:
        """Return number and data of a member's action. Raises InvalidRequestError if the profile's tables lack it."""
        packed = self._running.member_actions[profile].packed(call)
        if packed is None:
            check_call(f"action profile {profile!r}", profile_actions(self._running.program, profile), call)
            raise AssertionError("check_call raises")
        return packed

    def _selector(self, profile: str) -> int:
        index = self._running.profile_index(profile)
        if self._running.program.action_profiles[profile].selector_algorithm is None:
            raise backend.InvalidRequestError(f"action profile '{profile}' has no selector, so no groups")
        return index


def _in_profile(profile: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call `function`, where C++ raises KeyError if a member or group does not exist."""
    try:
        return function(*arguments)
    except KeyError as error:
        raise backend.EntryNotFoundError(f"action profile '{profile}': {error.args[0]}") from None


def _members(members: Sequence[backend.GroupMember]) -> list[tuple[int, int, int]]:
    """Return the members of a checked group: id, weight, watched port (-1: none)."""
    return [
        (member.member_id, member.weight, -1 if member.watch_port is None else member.watch_port) for member in members
    ]
