"""Members and groups of action profiles in files of entries, and references to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import finsy
from finsy.proto import p4i

from weft.controller.entities import Entity
from weft.controller.errors import SettingError
from weft.controller.program_names import ProgramNames
from weft.controller.runtime_entries.actions import WEIGHT_BITS, named_action, weight_of
from weft.controller.runtime_entries.fields import at, entries_of, id_at, mapping, needed, number_at

ID_BITS = 32
_MEMBER_KEYS = ("action_profile", "member_id", "action_name", "action_params")
_GROUP_KEYS = ("action_profile", "group_id", "max_size", "members")
_IN_GROUP_KEYS = ("member_id", "weight", "watch_port")


def profile_member(entry: Any, program: ProgramNames) -> finsy.P4ActionProfileMember:
    """Return a member of an action profile. Raises SettingError."""
    entry = mapping(entry, _MEMBER_KEYS, "a member of an action profile")
    profile = program.profiles.named(needed(entry, "action_profile")).preamble.name
    return finsy.P4ActionProfileMember(
        profile,
        member_id=id_at(entry, "member_id", ID_BITS),
        action=named_action(entry, program.actions_of_profile(profile), profile),
    )


def profile_group(entry: Any, program: ProgramNames) -> finsy.P4ActionProfileGroup:
    """Return a group of an action profile, with the profile's largest size by default. Raises SettingError."""
    entry = mapping(entry, _GROUP_KEYS, "a group of an action profile")
    profile = program.profiles.named(needed(entry, "action_profile"))
    name = profile.preamble.name
    if not profile.with_selector:
        raise SettingError(f"{name} has no selector, so it has no groups", place="action_profile")
    group_id = id_at(entry, "group_id", ID_BITS)
    members: dict[int, finsy.P4Member] = {}
    for place, each in entries_of(entry, "members"):
        member = at(place, _in_group, each)
        if member.member_id in members:
            raise SettingError(f"member {member.member_id} is there twice", place=place, valid="a larger weight")
        members[member.member_id] = member
    size = number_at(entry, "max_size", WEIGHT_BITS, profile.max_group_size)
    if 0 < profile.max_group_size < size:
        raise SettingError(f"{size}", place="max_size", valid=f"1 to {profile.max_group_size}")
    _require_room(list(members.values()), size, profile)
    return finsy.P4ActionProfileGroup(name, group_id=group_id, max_size=size, members=list(members.values()))


def require_known(entities: Mapping[str, Entity], program: ProgramNames) -> None:
    """Raise SettingError if an entry refers to a member or group missing from the file; `entities` are by place."""
    known: dict[str, set[tuple[str, int]]] = {"member": set(), "group": set()}
    for entity in entities.values():
        if isinstance(entity, finsy.P4ActionProfileMember):
            known["member"].add((entity.action_profile_id, entity.member_id))
        elif isinstance(entity, finsy.P4ActionProfileGroup):
            known["group"].add((entity.action_profile_id, entity.group_id))
    for place, entity in entities.items():
        for what, profile, number in _references(entity, program):
            if (profile, number) not in known[what]:
                valid = ", ".join(str(each) for name, each in sorted(known[what]) if name == profile)
                raise SettingError(
                    f"{what} {number} of {profile} is not in the file",
                    place=place,
                    valid=f"{valid or 'none is'}",
                )


def _references(entity: Entity, program: ProgramNames) -> Iterator[tuple[str, str, int]]:
    """Yield an entity's references: "member" or "group", the profile, and the number."""
    if isinstance(entity, finsy.P4ActionProfileGroup):
        for member in entity.members or ():
            yield "member", entity.action_profile_id, member.member_id
    if isinstance(entity, finsy.P4TableEntry) and isinstance(entity.action, finsy.P4IndirectAction):
        profile = program.profile_of_table(entity.table_id)
        if entity.action.member_id is not None:
            yield "member", profile, entity.action.member_id
        elif entity.action.group_id is not None:
            yield "group", profile, entity.action.group_id


def _in_group(value: Any) -> finsy.P4Member:
    entry = mapping(value, _IN_GROUP_KEYS, "a member of a group")
    return finsy.P4Member(id_at(entry, "member_id", ID_BITS), weight=weight_of(entry))


def _require_room(members: list[finsy.P4Member], size: int, profile: p4i.ActionProfile) -> None:
    weights = [each.weight if isinstance(each.weight, int) else each.weight[0] for each in members]
    by_members = profile.HasField("sum_of_members")
    found = len(weights) if by_members else sum(weights)
    if 0 < size < found:
        what = "members" if by_members else "as the sum of weights"
        raise SettingError(f"members: {found} {what}", valid=f"at most {size}")
