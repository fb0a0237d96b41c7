"""Action profile members and groups, and one-shot action sets (P4Runtime §9.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from finsy.proto import p4r

from weft.switch.backend import ActionCall, BackendError, GroupMember, SwitchBackend
from weft.switch.p4runtime.actions import decode_action, encode_action
from weft.switch.p4runtime.errors import (
    NOT_FOUND,
    RESOURCE_EXHAUSTED,
    RequestError,
    check_existence,
    choices,
    invalid,
    place,
)
from weft.switch.p4runtime.pipeline import BoundProfile, Pipeline, lookup
from weft.switch.p4runtime.translation import PORT_BITS, SDN_PORT_BITS, Ports
from weft.switch.p4runtime.values import decode

FIRST_ONE_SHOT_ID = 1
"""First id of members and groups made for one-shot sets. A profile with these has no others, so ids cannot clash."""


@dataclass(slots=True)
class _ProfileState:
    members: dict[int, ActionCall] = field(default_factory=dict)
    groups: dict[int, p4r.ActionProfileGroup] = field(default_factory=dict)
    one_shots: dict[int, list[int]] = field(default_factory=dict)
    next_one_shot_id: int = FIRST_ONE_SHOT_ID


class Profiles:
    """All action profiles of a device."""

    def __init__(self, pipeline: Pipeline, backend: SwitchBackend, ports: Ports) -> None:
        self._ports = ports
        self._pipeline = pipeline
        self._backend = backend
        self._states = {number: _ProfileState() for number in pipeline.profiles}

    def _find(self, profile_id: int) -> tuple[BoundProfile, _ProfileState]:
        return lookup(self._pipeline.profiles, profile_id, "action profile"), self._states[profile_id]

    # members

    def write_member(self, update_type: int, message: p4r.ActionProfileMember) -> None:
        """Apply one update to a member."""
        profile, state = self._find(message.action_profile_id)
        with place(f"action profile {profile.name!r}, member {message.member_id}"):
            if message.member_id == 0:
                raise invalid("member_id 0 is reserved for wildcard reads")
            exists = message.member_id in state.members
            check_existence(update_type, exists)
            if update_type == p4r.Update.DELETE:
                self._backend.member_delete(profile.name, message.member_id)
                del state.members[message.member_id]
                return
            self.check_style(profile.id, one_shot=False)
            if not message.HasField("action"):
                raise invalid("action is not set")
            call = decode_action(profile.actions, message.action)
            if update_type == p4r.Update.INSERT:
                if 0 < profile.info.size <= len(state.members):
                    raise RequestError(RESOURCE_EXHAUSTED, f"the profile is full ({profile.info.size} members)")
                self._backend.member_insert(profile.name, message.member_id, call)
            else:
                self._backend.member_modify(profile.name, message.member_id, call)
            state.members[message.member_id] = call

    def read_members(self, query: p4r.ActionProfileMember) -> Iterator[p4r.ActionProfileMember]:
        """The members that `query` selects; ids of 0 select all."""
        for profile, state in self._selected(query.action_profile_id):
            for number in (query.member_id,) if query.member_id else list(state.members):
                if number in state.members:
                    member = p4r.ActionProfileMember(action_profile_id=profile.id, member_id=number)
                    encode_action(profile.actions, state.members[number], member.action)
                    yield member

    def _selected(self, profile_id: int) -> list[tuple[BoundProfile, _ProfileState]]:
        return [self._find(number) for number in ([profile_id] if profile_id else self._states)]

    # groups

    def write_group(self, update_type: int, message: p4r.ActionProfileGroup) -> None:
        """Apply one update to a group."""
        profile, state = self._find(message.action_profile_id)
        with place(f"action profile {profile.name!r}, group {message.group_id}"):
            if not profile.info.with_selector:
                raise invalid("the profile has no selector, so it has no groups")
            if message.group_id == 0:
                raise invalid("group_id 0 is reserved for wildcard reads")
            check_existence(update_type, message.group_id in state.groups)
            if update_type == p4r.Update.DELETE:
                self._backend.group_delete(profile.name, message.group_id)
                del state.groups[message.group_id]
                return
            self.check_style(profile.id, one_shot=False)
            members = self._decode_group(profile, state, message)
            if update_type == p4r.Update.INSERT:
                self._backend.group_insert(profile.name, message.group_id, members)
            elif message.max_size != state.groups[message.group_id].max_size:
                raise invalid("max_size cannot be modified")
            else:
                self._backend.group_modify(profile.name, message.group_id, members)
            stored = p4r.ActionProfileGroup()
            stored.CopyFrom(message)
            state.groups[message.group_id] = stored

    def read_groups(self, query: p4r.ActionProfileGroup) -> Iterator[p4r.ActionProfileGroup]:
        """The groups that `query` selects; ids of 0 select all."""
        for _, state in self._selected(query.action_profile_id):
            if query.group_id == 0:
                yield from state.groups.values()
            elif query.group_id in state.groups:
                yield state.groups[query.group_id]

    def _decode_group(
        self, profile: BoundProfile, state: _ProfileState, message: p4r.ActionProfileGroup
    ) -> list[GroupMember]:
        limit = profile.info.max_group_size
        if message.max_size < 0 or (limit > 0 and not 0 < message.max_size <= limit):
            raise invalid(f"max_size {message.max_size} is out of range", valid=f"1 to {limit or 'any'}")
        members: dict[int, GroupMember] = {}
        for member in message.members:
            with place(f"member {member.member_id}"):
                if member.member_id in members:
                    raise invalid("it is listed twice; use its weight instead")
                if member.member_id not in state.members:
                    raise RequestError(NOT_FOUND, "the profile has no such member")
                weight = _check_weight(profile, member.weight)
                watch = self._watch_port(member)
                members[member.member_id] = GroupMember(member.member_id, weight, watch)
        _check_group_size(profile, [member.weight for member in members.values()], message.max_size)
        return list(members.values())

    def _watch_port(self, message: p4r.ActionProfileGroup.Member | p4r.ActionProfileAction) -> int | None:
        if not message.watch_port:
            return message.watch or None
        port = self._decode_port(message.watch_port)
        if port >> PORT_BITS:
            raise invalid(f"watch_port {port} is out of range", valid=f"0 to {(1 << PORT_BITS) - 1}")
        if self._ports.numbers is not None and port not in self._ports.numbers:
            raise invalid(f"watch_port {port}: there is no such port", valid=choices(sorted(self._ports.numbers)))
        return port

    def _decode_port(self, data: bytes) -> int:
        ports = self._pipeline.translations.of_ports()
        return decode(data, SDN_PORT_BITS) if ports is None else ports.decode(data)

    # one-shot sets

    def check_style(self, profile_id: int, *, one_shot: bool) -> None:
        """Raise INVALID_ARGUMENT if the profile is programmed in the other style (§9.2.3)."""
        state = self._states[profile_id]
        if one_shot and (state.members or state.groups):
            raise invalid("the action profile has members and groups, so action sets cannot be used with it")
        if not one_shot and state.one_shots:
            raise invalid("the action profile is used by action sets, so it takes no members and groups")

    def create_one_shot(
        self, profile_id: int, message: p4r.ActionProfileActionSet
    ) -> tuple[int, p4r.ActionProfileActionSet]:
        """Make a hidden group for an action set; return its id, and the set in canonical form."""
        profile, state = self._find(profile_id)
        if not profile.info.with_selector:
            raise invalid("action sets need an action profile with a selector")
        self.check_style(profile_id, one_shot=True)
        modes = p4r.ActionProfileActionSet.ActionSelectionMode
        if message.action_selection_mode not in modes.values():
            raise invalid(f"action_selection_mode {message.action_selection_mode} is none", valid=choices(modes.keys()))
        semantics = p4r.ActionProfileActionSet.SizeSemantics
        if message.size_semantics not in semantics.values():
            raise invalid(f"size_semantics {message.size_semantics} is none", valid=choices(semantics.keys()))
        canonical_set = p4r.ActionProfileActionSet(
            action_selection_mode=message.action_selection_mode, size_semantics=message.size_semantics
        )
        calls, weights, watches = [], [], []
        for index, action in enumerate(message.action_profile_actions):
            with place(f"action {index} of the set"):
                calls.append(decode_action(profile.actions, action.action))
                weights.append(_check_weight(profile, action.weight))
                watches.append(self._watch_port(action))
            copy = canonical_set.action_profile_actions.add()
            copy.CopyFrom(action)
            copy.action.Clear()
            encode_action(profile.actions, calls[-1], copy.action)
        _check_group_size(profile, weights, profile.info.max_group_size, message.size_semantics)
        used = sum(len(ids) for ids in state.one_shots.values())
        if 0 < profile.info.size < used + len(calls):
            raise RequestError(RESOURCE_EXHAUSTED, f"the profile is full ({profile.info.size} members)")
        ids = list(range(state.next_one_shot_id, state.next_one_shot_id + len(calls)))
        group_id = state.next_one_shot_id
        state.next_one_shot_id += max(1, len(calls))
        state.one_shots[group_id] = ids
        members = [GroupMember(*each) for each in zip(ids, weights, watches, strict=True)]
        is_random = message.action_selection_mode == p4r.ActionProfileActionSet.RANDOM
        self._install(profile, group_id, dict(zip(ids, calls, strict=True)), members, random=is_random)
        return group_id, canonical_set

    def _install(
        self,
        profile: BoundProfile,
        group_id: int,
        calls: dict[int, ActionCall],
        members: list[GroupMember],
        *,
        random: bool,
    ) -> None:
        """Install members and group in the backend; if it refuses one, remove the others."""
        installed: list[int] = []
        try:
            for number, call in calls.items():
                self._backend.member_insert(profile.name, number, call)
                installed.append(number)
            self._backend.group_insert(profile.name, group_id, members, random=random)
        except BackendError:
            del self._states[profile.id].one_shots[group_id]
            for number in installed:
                self._backend.member_delete(profile.name, number)
            raise

    def delete_one_shot(self, profile_id: int, group_id: int | None) -> None:
        """Remove a hidden group and its members; None does nothing."""
        if group_id is None:
            return
        profile, state = self._find(profile_id)
        self._backend.group_delete(profile.name, group_id)
        for number in state.one_shots.pop(group_id):
            self._backend.member_delete(profile.name, number)


def _check_weight(profile: BoundProfile, weight: int) -> int:
    if profile.info.weights_disallowed:
        if weight:
            raise invalid(f"weight {weight} is set, but the profile allows no weights")
        return 1
    if weight <= 0:
        raise invalid(f"weight {weight} is not positive")
    return weight


def _check_group_size(profile: BoundProfile, weights: list[int], limit: int, semantics: int = 0) -> None:
    """Check the size of a group; `semantics`, a one-shot set's SizeSemantics, overrides the profile's."""
    by_members = profile.info.HasField("sum_of_members")
    if semantics:
        by_members = semantics == p4r.ActionProfileActionSet.SUM_OF_MEMBERS
    if by_members:
        size, what = len(weights), "members"
        heaviest = profile.info.sum_of_members.max_member_weight
        if heaviest > 0 and max(weights, default=0) > heaviest:
            raise invalid(f"weight {max(weights)} is above the profile's maximum of {heaviest}")
    else:
        size, what = sum(weights), "sum of weights"
    if 0 < limit < size:
        raise invalid(f"{what} {size} is above the group's maximum of {limit}")
