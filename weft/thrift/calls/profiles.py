"""Calls on action profiles: members and groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from finsy.proto import p4i, p4r

from weft.controller.switch_cli import profiles
from weft.thrift.bmv2 import TableError
from weft.thrift.calls.registry import CallRefusedError, Target, carries_out, refused_as, statuses_as
from weft.thrift.calls.tables import Record, action_with, hexadecimal, shown_action_data

_Held = TypeVar("_Held", p4r.ActionProfileMember, p4r.ActionProfileGroup)


def _named(on: Target, name: str) -> p4i.ActionProfile:
    with refused_as(TableError.INVALID_ACTION_PROFILE_NAME):
        return profiles.profile_named(on.session, name)


def _selecting(on: Target, name: str) -> p4i.ActionProfile:
    profile = _named(on, name)
    if not profile.with_selector:
        raise CallRefusedError(TableError.NO_ACTION_PROFILE_SELECTION, f"{name} has no selector")
    return profile


def _one(found: dict[int, _Held], handle: int, code: TableError) -> _Held:
    if handle not in found:
        raise CallRefusedError(code, f"there is no handle {handle}")
    return found[handle]


async def _member(on: Target, profile: p4i.ActionProfile, handle: int) -> p4r.ActionProfileMember:
    return _one(await profiles.members_of(on.session, profile), handle, TableError.INVALID_MBR_HANDLE)


async def _group(on: Target, profile: p4i.ActionProfile, handle: int) -> p4r.ActionProfileGroup:
    return _one(await profiles.groups_of(on.session, profile), handle, TableError.INVALID_GRP_HANDLE)


def _action(on: Target, profile: p4i.ActionProfile, name: str, data: Sequence[bytes]) -> list[str]:
    """Return an action and its parameters as words of a command, once they are found to be right."""
    with refused_as(TableError.INVALID_ACTION_NAME):
        info = profiles.action_named(on.session, profile, name)
    action_with(info, data)
    return [info.preamble.name, *map(hexadecimal, data)]


@carries_out
async def bm_mt_act_prof_add_member(
    on: Target, *, act_prof_name: str, action_name: str, action_data: Sequence[bytes]
) -> int:
    """Add a member and return its handle."""
    profile = _named(on, act_prof_name)
    name, *data = _action(on, profile, action_name, action_data)
    return await profiles.add_member(on.session, profile, name, data)


@carries_out
async def bm_mt_act_prof_modify_member(
    on: Target, *, act_prof_name: str, mbr_handle: int, action_name: str, action_data: Sequence[bytes]
) -> None:
    """Change a member's action."""
    profile = _named(on, act_prof_name)
    await _member(on, profile, mbr_handle)
    name, *data = _action(on, profile, action_name, action_data)
    await profiles.modify_member(on.session, [profile.preamble.name, name, str(mbr_handle), *data])


@carries_out
async def bm_mt_act_prof_delete_member(on: Target, *, act_prof_name: str, mbr_handle: int) -> None:
    """Remove a member."""
    profile = _named(on, act_prof_name)
    member = await _member(on, profile, mbr_handle)
    with statuses_as(FAILED_PRECONDITION=TableError.MBR_STILL_USED):
        await on.session.write(p4r.Update.DELETE, action_profile_member=member)


@carries_out
async def bm_mt_act_prof_create_group(on: Target, *, act_prof_name: str) -> int:
    """Add an empty group and return its handle."""
    return await profiles.add_group(on.session, _selecting(on, act_prof_name))


@carries_out
async def bm_mt_act_prof_delete_group(on: Target, *, act_prof_name: str, grp_handle: int) -> None:
    """Remove a group."""
    group = await _group(on, _selecting(on, act_prof_name), grp_handle)
    with statuses_as(FAILED_PRECONDITION=TableError.GRP_STILL_USED):
        await on.session.write(p4r.Update.DELETE, action_profile_group=group)


@carries_out
async def bm_mt_act_prof_add_member_to_group(
    on: Target, *, act_prof_name: str, mbr_handle: int, grp_handle: int
) -> None:
    """Add a member to a group."""
    profile = _selecting(on, act_prof_name)
    await _member(on, profile, mbr_handle)
    await _group(on, profile, grp_handle)
    with refused_as(TableError.MBR_ALREADY_IN_GRP):
        words = [profile.preamble.name, str(mbr_handle), str(grp_handle)]
        await profiles.add_member_to_group(on.session, words)


@carries_out
async def bm_mt_act_prof_remove_member_from_group(
    on: Target, *, act_prof_name: str, mbr_handle: int, grp_handle: int
) -> None:
    """Remove a member from a group."""
    profile = _selecting(on, act_prof_name)
    await _member(on, profile, mbr_handle)
    await _group(on, profile, grp_handle)
    with refused_as(TableError.MBR_NOT_IN_GRP):
        words = [profile.preamble.name, str(mbr_handle), str(grp_handle)]
        await profiles.remove_member_from_group(on.session, words)


def _shown_member(on: Target, member: p4r.ActionProfileMember) -> Record:
    return {"mbr_handle": member.member_id - 1, **shown_action_data(on, member.action)}


def _shown_group(group: p4r.ActionProfileGroup) -> Record:
    return {"grp_handle": group.group_id - 1, "mbr_handles": [each.member_id - 1 for each in group.members]}


@carries_out
async def bm_mt_act_prof_get_members(on: Target, *, act_prof_name: str) -> list[Record]:
    """Return all members."""
    found = await profiles.members_of(on.session, _named(on, act_prof_name))
    return [_shown_member(on, each) for each in found.values()]


@carries_out
async def bm_mt_act_prof_get_member(on: Target, *, act_prof_name: str, mbr_handle: int) -> Record:
    """Return a member."""
    return _shown_member(on, await _member(on, _named(on, act_prof_name), mbr_handle))


@carries_out
async def bm_mt_act_prof_get_groups(on: Target, *, act_prof_name: str) -> list[Record]:
    """Return all groups."""
    found = await profiles.groups_of(on.session, _selecting(on, act_prof_name))
    return [_shown_group(each) for each in found.values()]


@carries_out
async def bm_mt_act_prof_get_group(on: Target, *, act_prof_name: str, grp_handle: int) -> Record:
    """Return a group."""
    return _shown_group(await _group(on, _selecting(on, act_prof_name), grp_handle))
