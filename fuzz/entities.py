"""Random P4Runtime entities that fit a P4Info, or nearly do."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from finsy.proto import p4i, p4r

from weft.switch.p4runtime.values import encode

_IDS = (0, 1, 1, 2, 3, 4, 7, 8, 100, 2**31, 2**32 - 1)
_COUNTS = (0, 1, 2, 1000, 2**40, 2**63 - 1, -1)


class EntityGenerator:
    """Entities for the objects of `info`."""

    def __init__(self, info: p4i.P4Info) -> None:
        self._info = info
        self._actions = {each.preamble.id: each for each in info.actions}
        self._kinds: dict[str, Callable[[random.Random], Any]] = {
            "table_entry": self._table_entry,
            "action_profile_member": self._member,
            "action_profile_group": self._group,
            "counter_entry": self._counter,
            "direct_counter_entry": self._direct_counter,
            "meter_entry": self._meter,
            "direct_meter_entry": self._direct_meter,
            "register_entry": self._register,
            "packet_replication_engine_entry": self._replication,
            "value_set_entry": self._value_set,
            "digest_entry": self._digest,
        }

    def entity(self, rng: random.Random) -> p4r.Entity:
        """An entity of a random kind that writes would accept, most times."""
        kind = rng.choice(("table_entry", "table_entry", "table_entry", *self._kinds))
        return one_entity(kind, self._kinds[kind](rng))

    def packet_out(self, rng: random.Random) -> p4r.PacketOut:
        """A packet with its metadata."""
        header = next(each for each in self._info.controller_packet_metadata if each.preamble.name == "packet_out")
        metadata = [
            p4r.PacketMetadata(metadata_id=each.id, value=value_bytes(rng, each.bitwidth)) for each in header.metadata
        ]
        return p4r.PacketOut(payload=rng.randbytes(rng.choice((0, 1, 30, 1500))), metadata=metadata)

    def _table_entry(self, rng: random.Random, *, key_only: bool = False) -> p4r.TableEntry:
        table = rng.choice(self._info.tables)
        entry = p4r.TableEntry(table_id=table.preamble.id)
        if rng.random() < 0.1:
            entry.is_default_action = True
        else:
            matches = [_match(rng, field) for field in table.match_fields]
            entry.match.extend(match for match in matches if match is not None)
            if any(_needs_priority(field) for field in table.match_fields):
                entry.priority = rng.choice((1, 1, 2, 3, 2**31 - 1))
        if key_only:
            return entry
        self._set_action(rng, table, entry)
        if rng.random() < 0.2:
            entry.idle_timeout_ns = rng.choice((1, 10**9, 2**62))
        if rng.random() < 0.2:
            entry.metadata = b"mine"
        if rng.random() < 0.2:
            entry.meter_config.CopyFrom(_meter_config(rng))
        if rng.random() < 0.2:
            entry.counter_data.packet_count = rng.choice(_COUNTS)
        return entry

    def _set_action(self, rng: random.Random, table: p4i.Table, entry: p4r.TableEntry) -> None:
        references = [each.id for each in table.action_refs]
        if not table.implementation_id:
            entry.action.action.CopyFrom(self._call(rng, references))
            return
        form = rng.randrange(3)
        if form == 0:
            entry.action.action_profile_member_id = rng.choice(_IDS)
        elif form == 1:
            entry.action.action_profile_group_id = rng.choice(_IDS)
        else:
            for _ in range(rng.randrange(3)):
                made = entry.action.action_profile_action_set.action_profile_actions.add(
                    weight=rng.choice((1, 1, 2, 0))
                )
                made.action.CopyFrom(self._call(rng, references))

    def _call(self, rng: random.Random, references: Sequence[int]) -> p4r.Action:
        number = rng.choice(references)
        parameters = [
            p4r.Action.Param(param_id=each.id, value=value_bytes(rng, each.bitwidth))
            for each in self._actions[number].params
        ]
        return p4r.Action(action_id=number, params=parameters)

    def _profile_actions(self, profile: p4i.ActionProfile) -> list[int]:
        return [
            each.id
            for table in self._info.tables
            if table.preamble.id in profile.table_ids
            for each in table.action_refs
        ]

    def _member(self, rng: random.Random) -> p4r.ActionProfileMember:
        profile = rng.choice(self._info.action_profiles)
        return p4r.ActionProfileMember(
            action_profile_id=profile.preamble.id,
            member_id=rng.choice(_IDS),
            action=self._call(rng, self._profile_actions(profile)),
        )

    def _group(self, rng: random.Random) -> p4r.ActionProfileGroup:
        profile = rng.choice(self._info.action_profiles)
        made = p4r.ActionProfileGroup(action_profile_id=profile.preamble.id, group_id=rng.choice(_IDS))
        for number in rng.sample(_IDS, rng.randrange(4)):
            member = made.members.add(member_id=number, weight=rng.choice((1, 1, 2, 0, -1)))
            if rng.random() < 0.3:
                member.watch_port = value_bytes(rng, 9)
        made.max_size = rng.choice((0, 0, 2, 8, 9, -1))
        return made

    def _counter(self, rng: random.Random) -> p4r.CounterEntry:
        made = p4r.CounterEntry(counter_id=rng.choice(self._info.counters).preamble.id)
        made.index.index = rng.randrange(9)
        made.data.packet_count, made.data.byte_count = rng.choice(_COUNTS), rng.choice(_COUNTS)
        return made

    def _direct_counter(self, rng: random.Random) -> p4r.DirectCounterEntry:
        made = p4r.DirectCounterEntry(table_entry=self._table_entry(rng, key_only=True))
        made.data.packet_count = rng.choice(_COUNTS)
        return made

    def _meter(self, rng: random.Random) -> p4r.MeterEntry:
        made = p4r.MeterEntry(meter_id=rng.choice(self._info.meters).preamble.id, config=_meter_config(rng))
        made.index.index = rng.randrange(9)
        return made

    def _direct_meter(self, rng: random.Random) -> p4r.DirectMeterEntry:
        return p4r.DirectMeterEntry(table_entry=self._table_entry(rng, key_only=True), config=_meter_config(rng))

    def _register(self, rng: random.Random) -> p4r.RegisterEntry:
        register = rng.choice(self._info.registers)
        made = p4r.RegisterEntry(register_id=register.preamble.id)
        made.index.index = rng.randrange(9)
        made.data.bitstring = value_bytes(rng, register.type_spec.bitstring.bit.bitwidth)
        return made

    def _replication(self, rng: random.Random) -> p4r.PacketReplicationEngineEntry:
        made = p4r.PacketReplicationEngineEntry()
        replicas = [
            p4r.Replica(port=value_bytes(rng, 9), instance=rng.choice((0, 1, 2, 65535, 65536)))
            for _ in range(rng.randrange(3))
        ]
        if rng.random() < 0.5:
            made.multicast_group_entry.multicast_group_id = rng.choice(_IDS)
            made.multicast_group_entry.replicas.extend(replicas)
        else:
            session = made.clone_session_entry
            session.session_id = rng.choice(_IDS)
            session.replicas.extend(replicas)
            session.class_of_service = rng.choice((0, 0, 7, 8))
            session.packet_length_bytes = rng.choice((0, 0, 20, -1))
        return made

    def _value_set(self, rng: random.Random) -> p4r.ValueSetEntry:
        chosen = rng.choice(self._info.value_sets)
        made = p4r.ValueSetEntry(value_set_id=chosen.preamble.id)
        for _ in range(rng.randrange(6)):
            matches = [_match(rng, field) for field in chosen.match]
            made.members.add().match.extend(match for match in matches if match is not None)
        return made

    def _digest(self, rng: random.Random) -> p4r.DigestEntry:
        made = p4r.DigestEntry(digest_id=rng.choice(self._info.digests).preamble.id)
        made.config.max_timeout_ns = rng.choice((0, 10**6, -1))
        made.config.max_list_size = rng.choice((0, 1, 5, -1))
        made.config.ack_timeout_ns = rng.choice((0, 10**6, -1))
        return made


def one_entity(kind: str, value: Any) -> p4r.Entity:
    """An entity of this kind."""
    members: Any = {kind: value}
    return p4r.Entity(**members)


def _needs_priority(field: p4i.MatchField) -> bool:
    return field.match_type in (p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.OPTIONAL)


def value_bytes(rng: random.Random, width_bits: int) -> bytes:
    """A number of so many bits as P4Runtime's byte string; now and then too wide, not canonical, or empty."""
    number = rng.choice((0, 1, 2, 3, rng.getrandbits(width_bits), (1 << width_bits) - 1)) & ((1 << width_bits) - 1)
    if rng.random() < 0.03:
        return rng.choice(
            (
                b"",
                number.to_bytes(width_bits // 8 + 2, "big"),
                (1 << width_bits).to_bytes(width_bits // 8 + 1, "big"),
            )
        )
    return encode(number)


def _match(rng: random.Random, field: p4i.MatchField) -> p4r.FieldMatch | None:
    made: Any = p4r.FieldMatch(field_id=field.id)
    width = field.bitwidth
    first, second = (
        rng.choice((rng.getrandbits(width), rng.randrange(min(4, 1 << width)))),
        rng.getrandbits(width),
    )
    match field.match_type:
        case p4i.MatchField.EXACT:
            made.exact.value = value_bytes(rng, width)
        case p4i.MatchField.LPM:
            length = rng.randrange(width + 1)
            if not length:
                return None
            made.lpm.value, made.lpm.prefix_len = (
                encode(first >> (width - length) << (width - length)),
                length,
            )
        case p4i.MatchField.TERNARY:
            if not second:
                return None
            made.ternary.value, made.ternary.mask = encode(first & second), encode(second)
        case p4i.MatchField.RANGE:
            low, high = sorted((first, second))
            made.range.low, made.range.high = encode(low), encode(high)
        case _:
            if rng.random() < 0.5:
                return None
            made.optional.value = encode(first)
    return made if rng.random() < 0.97 else None


def _meter_config(rng: random.Random) -> p4r.MeterConfig:
    rates = sorted(rng.choice((0, 1, 10, 10**9, 2**62)) for _ in range(2))
    return p4r.MeterConfig(cir=rates[0], pir=rates[1], cburst=rng.choice(_COUNTS), pburst=rng.choice(_COUNTS))
