"""Members and groups of a switch's action profiles, by names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import finsy

from weft.clocks.user_controller.switch_access import SwitchAccess, Values
from weft.controller.entities import exact_arguments


@dataclass(frozen=True)
class Member:
    """A member of an action profile: an action and its parameters."""

    action: str
    params: Mapping[str, int]


class ProfileMethods(SwitchAccess):
    """Members and groups of a switch's action profiles. Their numbers begin with 1."""

    def set_member(self, profile: str, member_id: int, action: str, params: Values | None = None) -> None:
        """Add a member, or change its action."""
        named = {"action_name": action, "action_params": dict(params or {})}
        self._put("action_profile_members", {"action_profile": profile, "member_id": member_id, **named})

    def set_group(self, profile: str, group_id: int, members: Mapping[int, int] | Iterable[int]) -> None:
        """Make a group of some members, or change it; a mapping has their weights."""
        weights = members if isinstance(members, Mapping) else dict.fromkeys(members, 1)
        listed = [{"member_id": number, "weight": weight} for number, weight in weights.items()]
        self._put("action_profile_groups", {"action_profile": profile, "group_id": group_id, "members": listed})

    def delete_member(self, profile: str, member_id: int) -> None:
        """Remove a member that this controller has added; no group or entry may refer to it."""
        self._remove(
            f"delete member {member_id} of {profile}",
            lambda: finsy.P4ActionProfileMember(self._profile(profile), member_id=member_id),
        )

    def delete_group(self, profile: str, group_id: int) -> None:
        """Remove a group that this controller has added; no entry may refer to it."""
        self._remove(
            f"delete group {group_id} of {profile}",
            lambda: finsy.P4ActionProfileGroup(self._profile(profile), group_id=group_id),
        )

    def members(self, profile: str) -> dict[int, Member]:
        """Return a profile's members by number, of whoever wrote them."""

        async def read() -> dict[int, Member]:
            found = await self._session.read([finsy.P4ActionProfileMember(self._profile(profile))])
            return {
                each.member_id: Member(each.action.name if each.action else "", exact_arguments(each.action))
                for each in sorted(found, key=lambda each: each.member_id)
            }

        return self._ask(read, f"read {profile}")

    def groups(self, profile: str) -> dict[int, dict[int, int]]:
        """Return a profile's groups by number: the weights of their members."""

        async def read() -> dict[int, dict[int, int]]:
            found = await self._session.read([finsy.P4ActionProfileGroup(self._profile(profile))])
            return {
                each.group_id: {
                    member.member_id: member.weight if isinstance(member.weight, int) else member.weight[0]
                    for member in each.members or ()
                }
                for each in sorted(found, key=lambda each: each.group_id)
            }

        return self._ask(read, f"read {profile}")

    def _profile(self, name: str) -> str:
        return str(self._names.profiles.named(name).preamble.name)
