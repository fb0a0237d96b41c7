"""Commands on action profiles. Handles count from 0 as in BMv2; P4Runtime's ids start at 1, so they are one more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from finsy.proto import p4i, p4r

from weft.controller.errors import CommandError
from weft.controller.switch_cli.commands import command
from weft.controller.switch_cli.names import find
from weft.controller.switch_cli.session import CommandSession
from weft.controller.switch_cli.tables import action_name, parse_handle, with_parameters
from weft.controller.switch_cli.values import shown_parameters

_Held = TypeVar("_Held", p4r.ActionProfileMember, p4r.ActionProfileGroup)


def profile_named(session: CommandSession, name: str) -> p4i.ActionProfile:
    """Return an action profile. Raises CommandError."""
    profiles: Sequence[p4i.ActionProfile] = session.info.action_profiles
    return find(profiles, name, "action profile")


async def members_of(session: CommandSession, profile: p4i.ActionProfile) -> dict[int, p4r.ActionProfileMember]:
    """Return a profile's members by handle."""
    query = p4r.ActionProfileMember(action_profile_id=profile.preamble.id)
    found = (each.action_profile_member for each in await session.read(action_profile_member=query))
    return {each.member_id - 1: each for each in sorted(found, key=lambda each: each.member_id)}


async def groups_of(session: CommandSession, profile: p4i.ActionProfile) -> dict[int, p4r.ActionProfileGroup]:
    """Return a profile's groups by handle."""
    query = p4r.ActionProfileGroup(action_profile_id=profile.preamble.id)
    found = (each.action_profile_group for each in await session.read(action_profile_group=query))
    return {each.group_id - 1: each for each in sorted(found, key=lambda each: each.group_id)}


def _one(found: dict[int, _Held], handle: int, what: str) -> _Held:
    if handle not in found:
        choices = ", ".join(map(str, list(found)[:8])) or "none; there are none yet"
        raise CommandError(f"no {what} has the handle {handle}", valid=choices)
    return found[handle]


def _lowest_free(taken: Iterable[int]) -> int:
    handles = set(taken)
    return next(number for number in range(len(handles) + 1) if number not in handles)


def action_named(session: CommandSession, profile: p4i.ActionProfile, name: str) -> p4i.Action:
    """Return an action of a profile's tables. Raises CommandError."""
    ids = {
        reference.id
        for table in session.info.tables
        if table.preamble.id in profile.table_ids
        for reference in table.action_refs
    }
    actions: list[p4i.Action] = [each for each in session.info.actions if each.preamble.id in ids]
    return find(actions, name, f"action of {profile.preamble.name}")


def _action(session: CommandSession, profile: p4i.ActionProfile, name: str, words: Sequence[str]) -> p4r.Action:
    return with_parameters(action_named(session, profile, name), words)


@command("act_prof_create_member", "<profile> <action> …")
async def create_member(session: CommandSession, words: Sequence[str]) -> str:
    """Add a member, an action with its parameters, to an action profile."""
    handle = await add_member(session, profile_named(session, words[0]), words[1], words[2:])
    return f"Member has been created with handle {handle}"


async def add_member(session: CommandSession, profile: p4i.ActionProfile, action: str, words: Sequence[str]) -> int:
    """Add a member and return its handle."""
    handle = _lowest_free(await members_of(session, profile))
    await session.write(
        p4r.Update.INSERT,
        action_profile_member=p4r.ActionProfileMember(
            action_profile_id=profile.preamble.id,
            member_id=handle + 1,
            action=_action(session, profile, action, words),
        ),
    )
    return handle


@command("act_prof_modify_member", "<profile> <action> <member> …")
async def modify_member(session: CommandSession, words: Sequence[str]) -> str:
    """Change a member's action."""
    profile = profile_named(session, words[0])
    handle = parse_handle(words[2])
    _one(await members_of(session, profile), handle, "member")
    await session.write(
        p4r.Update.MODIFY,
        action_profile_member=p4r.ActionProfileMember(
            action_profile_id=profile.preamble.id,
            member_id=handle + 1,
            action=_action(session, profile, words[1], words[3:]),
        ),
    )
    return ""


@command("act_prof_delete_member", "<profile> <member>")
async def delete_member(session: CommandSession, words: Sequence[str]) -> str:
    """Remove a member."""
    profile = profile_named(session, words[0])
    handle = parse_handle(words[1])
    member = _one(await members_of(session, profile), handle, "member")
    await session.write(p4r.Update.DELETE, action_profile_member=member)
    return ""


@command("act_prof_create_group", "<profile>")
async def create_group(session: CommandSession, words: Sequence[str]) -> str:
    """Add a group, empty at first, to an action profile with a selector."""
    profile = profile_named(session, words[0])
    if not profile.with_selector:
        raise CommandError(f"{profile.preamble.name} has no selector, so it has no groups")
    return f"Group has been created with handle {await add_group(session, profile)}"


async def add_group(session: CommandSession, profile: p4i.ActionProfile) -> int:
    """Add an empty group and return its handle."""
    handle = _lowest_free(await groups_of(session, profile))
    group = p4r.ActionProfileGroup(
        action_profile_id=profile.preamble.id, group_id=handle + 1, max_size=profile.max_group_size
    )
    await session.write(p4r.Update.INSERT, action_profile_group=group)
    return handle


@command("act_prof_delete_group", "<profile> <group>")
async def delete_group(session: CommandSession, words: Sequence[str]) -> str:
    """Remove a group; its members stay."""
    profile = profile_named(session, words[0])
    handle = parse_handle(words[1])
    group = _one(await groups_of(session, profile), handle, "group")
    await session.write(p4r.Update.DELETE, action_profile_group=group)
    return ""


@command("act_prof_add_member_to_group", "<profile> <member> <group>")
async def add_member_to_group(session: CommandSession, words: Sequence[str]) -> str:
    """Add a member to a group."""
    profile = profile_named(session, words[0])
    member, handle = parse_handle(words[1]), parse_handle(words[2])
    groups = await groups_of(session, profile)
    _one(await members_of(session, profile), member, "member")
    group = _one(groups, handle, "group")
    if any(each.member_id == member + 1 for each in group.members):
        raise CommandError(f"member {member} is in group {handle} already")
    group.members.add(member_id=member + 1, weight=1)
    await session.write(p4r.Update.MODIFY, action_profile_group=group)
    return ""


@command("act_prof_remove_member_from_group", "<profile> <member> <group>")
async def remove_member_from_group(session: CommandSession, words: Sequence[str]) -> str:
    """Remove a member from a group."""
    profile = profile_named(session, words[0])
    member, handle = parse_handle(words[1]), parse_handle(words[2])
    group = _one(await groups_of(session, profile), handle, "group")
    kept = [each for each in group.members if each.member_id != member + 1]
    if len(kept) == len(group.members):
        choices = ", ".join(str(each.member_id - 1) for each in kept) or "none; the group is empty"
        raise CommandError(f"member {member} is not in group {handle}", valid=choices)
    del group.members[:]
    group.members.extend(kept)
    await session.write(p4r.Update.MODIFY, action_profile_group=group)
    return ""


@command("act_prof_dump", "<profile>")
async def dump(session: CommandSession, words: Sequence[str]) -> str:
    """Show a profile's members and groups."""
    profile = profile_named(session, words[0])
    lines = ["==========", "MEMBERS"]
    for member in (await members_of(session, profile)).values():
        lines += ["**********", *_shown_member(session, member)]
    if profile.with_selector:
        lines += ["==========", "GROUPS"]
        for group in (await groups_of(session, profile)).values():
            lines += ["**********", *_shown_group(group)]
    return "\n".join([*lines, "=========="])


@command("act_prof_dump_member", "<profile> <member>")
async def dump_member(session: CommandSession, words: Sequence[str]) -> str:
    """Show a member."""
    members = await members_of(session, profile_named(session, words[0]))
    return "\n".join(_shown_member(session, _one(members, parse_handle(words[1]), "member")))


@command("act_prof_dump_group", "<profile> <group>")
async def dump_group(session: CommandSession, words: Sequence[str]) -> str:
    """Show a group."""
    groups = await groups_of(session, profile_named(session, words[0]))
    return "\n".join(_shown_group(_one(groups, parse_handle(words[1]), "group")))


def _shown_member(session: CommandSession, member: p4r.ActionProfileMember) -> list[str]:
    action = member.action
    return [
        f"Dumping member {member.member_id - 1}",
        f"Action entry: {action_name(session, action)} - {shown_parameters(action)}",
    ]


def _shown_group(group: p4r.ActionProfileGroup) -> list[str]:
    members = ", ".join(str(each.member_id - 1) for each in group.members)
    return [f"Dumping group {group.group_id - 1}", f"Members: [{members}]"]
