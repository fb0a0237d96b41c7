"""Commands on parser value sets: a value concatenates all fields of a set's key."""

from __future__ import annotations

from collections.abc import Sequence

from finsy.proto import p4i, p4r

from weft.controller.switch_cli.commands import command
from weft.controller.switch_cli.names import find
from weft.controller.switch_cli.session import CommandSession
from weft.controller.switch_cli.values import parse_match, parse_value, shown_match

_Kind = p4i.MatchField


def set_named(session: CommandSession, name: str) -> p4i.ValueSet:
    """Return a parser value set. Raises CommandError."""
    sets: Sequence[p4i.ValueSet] = session.info.value_sets
    return find(sets, name, "parser value set")


def width_bits(value_set: p4i.ValueSet) -> int:
    """Return the width of a set's values in bits."""
    return sum(field.bitwidth for field in value_set.match)


def _member(value_set: p4i.ValueSet, word: str) -> p4r.ValueSetMember:
    value = parse_value(word, width_bits(value_set), f"value of {value_set.preamble.name}")
    member = p4r.ValueSetMember()
    left_bits = width_bits(value_set)
    for field in value_set.match:
        left_bits -= field.bitwidth
        ones = (1 << field.bitwidth) - 1
        text = f"{value >> left_bits & ones:#x}"
        # Only the value, whatever the match kind.
        form = {_Kind.LPM: f"{text}/{field.bitwidth}", _Kind.TERNARY: f"{text}&&&{ones:#x}"}
        form[_Kind.RANGE] = f"{text}->{text}"
        match = parse_match(field, form.get(field.match_type, text))
        if match is not None:
            member.match.append(match)
    return member


async def members_of(session: CommandSession, value_set: p4i.ValueSet) -> list[p4r.ValueSetMember]:
    """Return the members of a set."""
    query = p4r.ValueSetEntry(value_set_id=value_set.preamble.id)
    return [member for each in await session.read(value_set_entry=query) for member in each.value_set_entry.members]


async def _write(session: CommandSession, value_set: p4i.ValueSet, members: Sequence[p4r.ValueSetMember]) -> None:
    entry = p4r.ValueSetEntry(value_set_id=value_set.preamble.id, members=members)
    await session.write(p4r.Update.MODIFY, value_set_entry=entry)


def whole_value(value_set: p4i.ValueSet, member: p4r.ValueSetMember) -> int | None:
    """Return a member as one number if each field has a single value; otherwise None."""
    by_id = {match.field_id: match for match in member.match}
    value = 0
    for field in value_set.match:
        match = by_id.get(field.id, p4r.FieldMatch())
        number = match.exact.value or match.optional.value
        number = number or (match.lpm.value if match.lpm.prefix_len == field.bitwidth else b"")
        number = number or (match.range.low if match.range.low == match.range.high else b"")
        is_whole = int.from_bytes(match.ternary.mask, "big") == (1 << field.bitwidth) - 1
        number = number or (match.ternary.value if is_whole else b"")
        if not number:
            return None
        value = value << field.bitwidth | int.from_bytes(number, "big")
    return value


def _shown(value_set: p4i.ValueSet, member: p4r.ValueSetMember) -> str:
    value = whole_value(value_set, member)
    if value is not None:
        return f"{value:#x}"
    by_id = {match.field_id: match for match in member.match}
    return " ".join(shown_match(each, by_id.get(each.id)) for each in value_set.match)


@command("show_pvs")
async def show_pvs(session: CommandSession, words: Sequence[str]) -> str:
    """List the parser value sets with their widths."""
    sets = sorted(session.info.value_sets, key=lambda each: each.preamble.name)
    return "\n".join(f"{each.preamble.name:<30} [bitwidth={width_bits(each)}]" for each in sets)


@command("pvs_add", "<value_set> <value>")
async def pvs_add(session: CommandSession, words: Sequence[str]) -> str:
    """Add a value to a parser value set, unless it has the value already."""
    value_set = set_named(session, words[0])
    member, members = _member(value_set, words[1]), await members_of(session, value_set)
    if member not in members:
        await _write(session, value_set, [*members, member])
    return ""


@command("pvs_remove", "<value_set> <value>")
async def pvs_remove(session: CommandSession, words: Sequence[str]) -> str:
    """Remove a value from a parser value set, if it has the value."""
    value_set = set_named(session, words[0])
    member, members = _member(value_set, words[1]), await members_of(session, value_set)
    if member in members:
        await _write(session, value_set, [each for each in members if each != member])
    return ""


@command("pvs_get", "<value_set>")
async def pvs_get(session: CommandSession, words: Sequence[str]) -> str:
    """Show the values of a parser value set."""
    value_set = set_named(session, words[0])
    return "\n".join(_shown(value_set, member) for member in await members_of(session, value_set))


@command("pvs_clear", "<value_set>")
async def pvs_clear(session: CommandSession, words: Sequence[str]) -> str:
    """Remove all values from a parser value set."""
    await _write(session, set_named(session, words[0]), [])
    return ""
