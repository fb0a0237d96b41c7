"""Random entries, members, groups, sessions and packets for a program, of few values, so that they meet."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from weft.switch.backend import (
    ActionCall,
    BackendError,
    CloneSession,
    ExactMatch,
    GroupMember,
    GroupRef,
    LpmMatch,
    Match,
    MemberRef,
    RangeMatch,
    Replica,
    SwitchBackend,
    TableAction,
    TableEntry,
    TernaryMatch,
)
from weft.switch.bmv2json import Action, Extract, MatchKind, Program, Table
from weft.switch.bmv2json.expressions import FieldRef, HeaderRef, StackField, StackRef
from weft.switch.bmv2json.model_parsers import ParseState, Transition, TransitionKind
from weft.switch.bmv2json.model_pipelines import KeyField

Places: TypeAlias = dict[str, dict[str, tuple[int, int]]]
"""First bit and width of each field of each header (stack: of the last element) in a packet."""

ENTRIES_PER_TABLE = 6
STATES_PER_PACKET = 40
PORTS = 4


def number(rng: random.Random, width_bits: int) -> int:
    """Usually a small number, so that keys and fields often agree."""
    chosen = rng.choice((0, 1, 1, 2, 3, rng.getrandbits(width_bits), (1 << width_bits) - 1))
    return chosen & ((1 << width_bits) - 1)


@dataclass
class StateGenerator:
    """Writes the same random state, given the same seed, into switches that run equivalent programs."""

    program: Program
    rng: random.Random

    def write(self, *switches: SwitchBackend) -> None:
        """Fill tables, profiles, groups, sessions, value sets."""
        for switch in switches:
            for group in range(1, 4):
                switch.multicast_group_set(
                    group, [Replica(port, instance=port + group) for port in range(1, 1 + group)]
                )
            for session in (1, 2, 3, 5, 100, 250, 500):
                switch.clone_session_set(session, CloneSession((Replica(session % PORTS),)))
        for name, profile in sorted(self.program.action_profiles.items()):
            self._fill_profile(name, profile.selector_algorithm is not None, switches)
        for name, table in sorted(self.program.tables.items()):
            if table.key and not table.immutable:
                for _ in range(ENTRIES_PER_TABLE):
                    entry = TableEntry(
                        tuple(self._match(each) for each in table.key),
                        self._action(table),
                        self.rng.randrange(1, 100) if table.needs_priority else 0,
                    )
                    self._same(switches, lambda switch, name=name, entry=entry: switch.table_insert(name, entry))
            constant = table.default_entry is not None and table.default_entry.constant
            if table.key and not constant and table.action_profile is None and self.rng.random() < 0.5:
                action = self._action(table)
                self._same(switches, lambda switch, name=name, action=action: switch.table_set_default(name, action))
        for name, value_set in sorted(self.program.value_sets.items()):
            full = (1 << value_set.width_bits) - 1
            members = [(number(self.rng, value_set.width_bits), full) for _ in range(2)]
            self._same(switches, lambda switch, name=name, members=members: switch.value_set_write(name, members))

    def _same(self, switches: tuple[SwitchBackend, ...], act: Callable[[SwitchBackend], object]) -> None:
        """Do this to each; all refuse a key that is taken, for example."""
        outcomes = []
        for switch in switches:
            try:
                act(switch)
                outcomes.append("")
            except BackendError as error:
                outcomes.append(str(error))
        assert len({outcome == "" for outcome in outcomes}) == 1, outcomes

    def _fill_profile(self, name: str, has_groups: bool, switches: tuple[SwitchBackend, ...]) -> None:
        actions = [a for table in self.program.tables.values() if table.action_profile == name for a in table.actions]
        for member in range(1, 5):
            call = self._call(self.rng.choice(actions))
            self._same(switches, lambda switch, member=member, call=call: switch.member_insert(name, member, call))
        if has_groups:
            for group in range(1, 3):
                members = [GroupMember(each) for each in self.rng.sample(range(1, 5), 2)]
                self._same(
                    switches,
                    lambda switch, group=group, members=members: switch.group_insert(name, group, members),
                )

    def _action(self, table: Table) -> TableAction:
        if table.action_profile is None:
            return self._call(self.rng.choice(table.actions))
        profile = self.program.action_profiles[table.action_profile]
        if profile.selector_algorithm is not None and self.rng.random() < 0.5:
            return GroupRef(self.rng.randrange(1, 3))
        return MemberRef(self.rng.randrange(1, 5))

    def _call(self, action: Action) -> ActionCall:
        return ActionCall(action.name, tuple(number(self.rng, each.width_bits) for each in action.parameters))

    def _match(self, key: KeyField) -> Match:
        width = key.field.width_bits
        value, full = number(self.rng, width), (1 << width) - 1
        match key.kind:
            case MatchKind.LPM:
                length = self.rng.choice((width, width - 1, width // 2, 0))
                return LpmMatch(value >> (width - length) << (width - length), length)
            case MatchKind.TERNARY:
                mask = self.rng.choice((full, full, 0, 3 & full, self.rng.getrandbits(width)))
                return TernaryMatch(value & mask, mask)
            case MatchKind.RANGE:
                low, high = sorted((value, number(self.rng, width)))
                return RangeMatch(low, high)
            case _:
                return ExactMatch(value)


class PacketGenerator:
    """Packets that follow a random path through the program's parser."""

    def __init__(self, program: Program, rng: random.Random) -> None:
        self.program = program
        self.rng = rng

    def packet(self) -> bytes:
        """One packet; one in ten is cut short."""
        data = bytearray()
        fields: Places = {}
        parser = next(iter(self.program.parsers.values()))
        name = parser.initial_state
        for _ in range(STATES_PER_PACKET):
            if name is None:
                break
            state = parser.states[name]
            self._extract(state, data, fields)
            transition = self.rng.choice(state.transitions) if state.transitions else None
            if transition is None:
                break
            if transition.kind is TransitionKind.VALUE:
                self._steer(state, transition, data, fields)
            name = transition.next_state
        data += bytes(self.rng.randrange(256) for _ in range(self.rng.choice((0, 1, 8, 40))))
        if self.rng.random() < 0.1:
            del data[self.rng.randrange(len(data) + 1) :]
        return bytes(data)

    def _extract(self, state: ParseState, data: bytearray, fields: Places) -> None:
        for operation in state.operations:
            if not isinstance(operation, Extract):
                continue
            if isinstance(operation.target, HeaderRef):
                name, type_ = operation.target.name, self.program.headers[operation.target.name].type
            elif isinstance(operation.target, StackRef):
                name, type_ = operation.target.name, self.program.header_stacks[operation.target.name].type
            else:
                continue
            start, value, width = len(data) * 8, 0, 0
            places = fields.setdefault(name, {})
            for each in type_.fields:
                if each.variable:
                    continue
                places[each.name] = (start + width, each.width_bits)
                value = value << each.width_bits | number(self.rng, each.width_bits)
                width += each.width_bits
            data += (value << (-width % 8)).to_bytes((width + 7) // 8, "big")

    def _steer(
        self,
        state: ParseState,
        transition: Transition,
        data: bytearray,
        fields: Places,
    ) -> None:
        """Give the fields of the key the values that the transition asks for."""
        value = transition.value
        for key in reversed(state.transition_key):
            padded = (key.width_bits + 7) // 8 * 8
            part, value = value & ((1 << padded) - 1), value >> padded
            if isinstance(key, FieldRef):
                place = fields.get(key.header, {}).get(key.field)
            elif isinstance(key, StackField):
                place = fields.get(key.stack, {}).get(key.field)
            else:
                place = None
            if place is not None:
                _put(data, *place, part)


def _put(data: bytearray, start: int, width: int, value: int) -> None:
    whole = int.from_bytes(data, "big")
    shift = len(data) * 8 - start - width
    mask = ((1 << width) - 1) << shift
    whole = whole & ~mask | (value << shift) & mask
    data[:] = whole.to_bytes(len(data), "big")
