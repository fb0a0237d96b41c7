"""Action profiles of the native switch: members and groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.switch.backend import (
    ActionCall,
    CapacityExceededError,
    EntryExistsError,
    EntryNotFoundError,
    GroupMember,
    InvalidRequestError,
    NotReadyError,
)
from weft.switch.checks import check_group, named
from weft.switch.native.base import NativeSwitchBase
from weft.switch.native.values import checked_id, member_action, native_members


class NativeActionProfiles(NativeSwitchBase):
    """Members and groups of action profiles."""

    def _profile(self, name: str) -> int:
        named(self._loaded().program.action_profiles, name, "action profile")
        return self._profile_index[name]

    def _require_room(self, profile: str, what: str) -> None:
        """There is room for one more of `what`, members or groups."""
        members, groups = self.native.profile_sizes(self._profile_index[profile])
        limit = self._loaded().program.action_profiles[profile].max_size
        if (members if what == "members" else groups) >= limit:
            raise CapacityExceededError(f"action profile '{profile}' is full ({limit} {what})")

    def member_insert(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Add a member to an action profile."""
        index = self._profile(profile)
        number, data = member_action(self._loaded().program, profile, action)
        checked_id("member", member_id)
        self._require_room(profile, "members")
        if not self.native.member_insert(index, member_id, number, data):
            raise EntryExistsError(f"action profile '{profile}' has a member {member_id} already")

    def member_modify(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Replace a member's action."""
        index = self._profile(profile)
        number, data = member_action(self._loaded().program, profile, action)
        self._in_profile(
            profile, self.native.member_modify, index, checked_id("member", member_id), number, data
        )

    def member_delete(self, profile: str, member_id: int) -> None:
        """Remove a member."""
        index = self._profile(profile)
        if not self._in_profile(profile, self.native.member_delete, index, checked_id("member", member_id)):
            raise NotReadyError(f"member {member_id} of action profile '{profile}' is in use")

    def group_insert(
        self, profile: str, group_id: int, members: Sequence[GroupMember], *, random: bool = False
    ) -> None:
        """Add a group, for good with `random` choice instead of by the selector's hash."""
        index = self._selector(profile)
        check_group(group_id, members)
        self._require_room(profile, "groups")
        native = native_members(members)
        if not self._in_profile(profile, self.native.group_insert, index, group_id, native, random):
            raise EntryExistsError(f"action profile '{profile}' has a group {group_id} already")

    def group_modify(self, profile: str, group_id: int, members: Sequence[GroupMember]) -> None:
        """Replace a group's members."""
        index = self._selector(profile)
        check_group(group_id, members)
        self._in_profile(profile, self.native.group_modify, index, group_id, native_members(members))

    def group_delete(self, profile: str, group_id: int) -> None:
        """Remove a group."""
        index = self._selector(profile)
        if not self._in_profile(profile, self.native.group_delete, index, checked_id("group", group_id)):
            raise NotReadyError(f"group {group_id} of action profile '{profile}' is in use")

    def _selector(self, profile: str) -> int:
        index = self._profile(profile)
        if self._loaded().program.action_profiles[profile].selector_algorithm is None:
            raise InvalidRequestError(f"action profile '{profile}' has no selector, so no groups")
        return index

    def _in_profile(self, profile: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except KeyError as error:
            raise EntryNotFoundError(f"action profile '{profile}': {error.args[0]}") from None
