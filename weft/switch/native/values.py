"""What the control plane says, as the native switch takes it: actions, group members, replicas, meters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from weft.switch.backend import (
    ActionCall,
    CounterValue,
    GroupMember,
    InvalidRequestError,
    MeterConfig,
    MeterState,
    Replica,
)
from weft.switch.bmv2json import Action, DefaultEntry, Program
from weft.switch.checks import MAX_ID, check_call, check_range, profile_actions
from weft.switch.lowering.layout import action_data_layout, bytes_for

Binding: TypeAlias = tuple[int, int, bytes]
"""How C++ takes an action (ActionBinding): kind, number of the action, member or group, packed arguments."""

ACTION, MEMBER, GROUP = 0, 1, 2
"""Kinds of a Binding."""


def checked_id(what: str, number: int) -> int:
    """`number`, if it fits 32 bits."""
    check_range(what, number, 0, MAX_ID)
    return number


def packed(action: Action, arguments: Sequence[int]) -> tuple[int, bytes]:
    """Number and data of an action whose arguments have been checked."""
    return action.id, action_data_layout(action).pack(arguments)


def default_binding(default: DefaultEntry | None, no_action: int) -> Binding:
    """The binding of the default entry that the program gives; `no_action` stands for none."""
    if default is None:
        return ACTION, no_action, b""
    return (ACTION, *packed(default.action, default.arguments))


def member_action(program: Program, profile: str, call: ActionCall) -> tuple[int, bytes]:
    """Number and data of a member's action. InvalidRequestError if the profile's tables do not have it."""
    action = check_call(f"action profile {profile!r}", profile_actions(program, profile), call)
    return packed(action, call.arguments)


def native_members(members: Sequence[GroupMember]) -> list[tuple[int, int, int]]:
    """Members of a group that has been checked: id, weight, watched port (-1: none)."""
    return [
        (member.member_id, member.weight, -1 if member.watch_port is None else member.watch_port)
        for member in members
    ]


def native_replicas(replicas: Sequence[Replica]) -> list[tuple[int, int]]:
    """Port and instance of each replica; they have been checked."""
    return [(replica.port, replica.instance) for replica in replicas]


_MeterTuple: TypeAlias = tuple[int, int, int, int, int | None]
_MeterStateTuple: TypeAlias = tuple[_MeterTuple | None, list[tuple[int, int]], bytes]


def meter_state(values: _MeterStateTuple) -> MeterState:
    """A meter as C++ gives it."""
    config, counts, buckets = values
    green, yellow, red = (CounterValue(*each) for each in counts)
    return MeterState(None if config is None else MeterConfig(*config), (green, yellow, red), buckets)


def meter_state_tuple(state: MeterState) -> _MeterStateTuple:
    """A meter's state as C++ takes it."""
    return meter_tuple(state.config), [(each.packets, each.bytes) for each in state.counts], state.buckets


def meter_tuple(config: MeterConfig | None) -> _MeterTuple | None:
    """A meter's configuration as C++ takes it. InvalidRequestError for negative values."""
    if config is None:
        return None
    values = (config.committed_rate, config.committed_burst, config.peak_rate, config.peak_burst)
    if min(*values, config.excess_burst or 0) < 0:
        raise InvalidRequestError(f"meter configuration {config} has a negative value")
    return *values, config.excess_burst


def value_set_bytes(program: Program, value_set: str) -> int:
    """Size of the values of a set: the key of the parser state that uses it."""
    for parser in program.parsers.values():
        for state in parser.states.values():
            if any(item.value_set == value_set for item in state.transitions):
                return state.key_width_bits // 8
    return bytes_for(program.value_sets[value_set].width_bits)
