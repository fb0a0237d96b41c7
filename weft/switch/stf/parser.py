"""Parses STF text to statements. A statement is a line; `#` begins a comment; keywords may be upper case.

The language is p4c's (`tools/stf`, `backends/bmv2/bmv2stf.py`), extended with ranges `low->high`, masks
`value&&&mask`, arguments without names, and `remove ID`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from weft.cache import UnreadableFileError, read_text
from weft.hints import did_you_mean
from weft.switch.stf.errors import Place, StfError, StfSyntaxError
from weft.switch.stf.literals import check_length, read_bounded, read_key_value, read_number
from weft.switch.stf.statements import (
    ActionText,
    Add,
    CheckCounter,
    Expect,
    KeyValue,
    NoPacket,
    Packet,
    Remove,
    SetDefault,
    Statement,
    SwitchCommand,
    Wait,
)
from weft.switch.stf.tokens import END, TokenReader

LARGEST_PORT = 511
MAX_SCRIPT_BYTES = 64 << 20
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_COUNTER_UNITS = ("packets", "bytes")
_MANY = -1
_COMMANDS: dict[str, tuple[bool, int, int]] = {
    # command: whether it names an object, the count of numbers that follow, and of rates (at least)
    "mirroring_add": (False, 2, 0),
    "mirroring_add_mc": (False, 2, 0),
    "mirroring_delete": (False, 1, 0),
    "mirroring_get": (False, 1, 0),
    "mc_mgrp_create": (False, 1, 0),
    "mc_node_create": (False, _MANY, 0),
    "mc_node_update": (False, _MANY, 0),
    "mc_node_associate": (False, 2, 0),
    "counter_read": (True, 1, 0),
    "counter_write": (True, 3, 0),
    "register_read": (True, 1, 0),
    "register_write": (True, 2, 0),
    "register_reset": (True, 0, 0),
    "meter_get_rates": (True, 1, 0),
    "meter_set_rates": (True, 1, 2),
    "meter_array_set_rates": (True, 0, 2),
}


def parse_file(path: Path) -> list[Statement]:
    """Return the statements of a script. Raises StfSyntaxError at the first invalid line, StfError for the file."""
    try:
        text = read_text(path, MAX_SCRIPT_BYTES)
    except UnreadableFileError as error:
        raise StfError(error) from None
    except (OSError, UnicodeDecodeError) as error:
        raise StfError(f"cannot be read: {error}", place=path) from None
    return parse_text(text, path)


def parse_text(text: str, path: Path) -> list[Statement]:
    """Return the statements of a script given as text; `path` is for messages."""
    statements = []
    for number, line in enumerate(text.split("\n"), start=1):
        statement = _parse_line(line, Place(path, number))
        if statement is not None:
            statements.append(statement)
    return statements


def _parse_line(line: str, place: Place) -> Statement | None:
    word = re.match(r"\s*([^\s#]*)", line)
    assert word is not None  # the pattern matches the empty text, too
    keyword = word.group(1).lower()
    if not keyword:
        return None
    if keyword in ("packet", "expect"):
        return _parse_packet_line(keyword, line[word.end() :].split("#", 1)[0], place)
    if keyword in _COMMANDS:
        return _parse_command(keyword, TokenReader(line, place, word.end()))
    if keyword not in _PARSERS:
        known = [*_PARSERS, *_COMMANDS, "packet", "expect"]
        raise StfSyntaxError(place, f"unknown statement {word.group(1)!r}; {did_you_mean(keyword, known)}")
    reader = TokenReader(line, place, word.end())
    statement = _PARSERS[keyword](reader)
    reader.end()
    return statement


def _parse_packet_line(keyword: str, rest: str, place: Place) -> Statement:
    words = rest.split()
    if not words or not re.fullmatch("[0-9]+", words[0]):
        shown = f"found {words[0]!r}" if words else "the line ends"
        raise StfSyntaxError(place, f"{keyword}: expected a port (decimal), {shown}")
    port, digits = read_number(words[0], place), "".join(words[1:]).lower()
    if port > LARGEST_PORT:
        raise StfSyntaxError(place, f"port {port} is out of range", valid=f"0 to {LARGEST_PORT}")
    if keyword == "packet":
        wrong = re.search("[^0-9a-f]", digits)
        if wrong:
            raise StfSyntaxError(place, f"packet: {wrong.group()!r} is no hexadecimal digit")
        if len(digits) % 2:
            raise StfSyntaxError(place, f"packet: {len(digits)} hexadecimal digits are no whole bytes")
        return Packet(place, port, bytes.fromhex(digits))
    whole = digits.endswith("$")
    digits = digits.removesuffix("$")
    wrong = re.search("[^0-9a-f*]", digits)
    if wrong:
        raise StfSyntaxError(
            place, f"expect: {wrong.group()!r} is neither a hexadecimal digit nor '*' nor a closing '$'"
        )
    return Expect(place, port, digits if digits or whole else None, whole)


def _parse_add(reader: TokenReader) -> Statement:
    table = _name(reader, "a table")
    priority = _number(reader, "a priority") if reader.peek().kind == "number" else None
    key: list[tuple[str, KeyValue]] = []
    while True:
        name = _name(reader, "a key field or an action")
        if not reader.accept(":"):
            break
        key.append((name, read_key_value(reader)))
    action = ActionText(name, _arguments(reader))
    entry_id = _entry_id(reader, "an id for the entry") if reader.accept("=") else None
    return Add(reader.place, table, priority, tuple(key), action, entry_id)


def _parse_set_default(reader: TokenReader) -> Statement:
    table = _name(reader, "a table")
    return SetDefault(reader.place, table, ActionText(_name(reader, "an action"), _arguments(reader)))


def _parse_remove(reader: TokenReader) -> Statement:
    target = _entry_id(reader, "'all' or an entry's id")
    return Remove(reader.place, None if target.lower() == "all" else target)


def _parse_check_counter(reader: TokenReader) -> Statement:
    counter = _name(reader, "a counter")
    reader.require("(")
    cell: int | str
    if reader.peek().kind == "number":
        cell = _number(reader, "an index")
    else:
        cell = _entry_id(reader, "an index or an entry's id")
    reader.require(")")
    if reader.peek() is END:
        return CheckCounter(reader.place, counter, cell, "packets", "==", 0)
    unit = reader.take("name", "'packets' or 'bytes'").lower()
    if unit not in _COUNTER_UNITS:
        raise StfSyntaxError(reader.place, f"a counter counts {' or '.join(_COUNTER_UNITS)}, not {unit!r}")
    comparison = reader.take("sign", "a comparison")
    if comparison not in COMPARISONS:
        raise StfSyntaxError(reader.place, f"{comparison!r} is no comparison: {' '.join(COMPARISONS)}")
    return CheckCounter(reader.place, counter, cell, unit, comparison, _number(reader, "a number"))


def _parse_command(command: str, reader: TokenReader) -> Statement:
    has_name, number_count, rate_count = _COMMANDS[command]
    read = read_number if command == "register_write" else read_bounded
    name = _name(reader, "a name") if has_name else ""
    numbers: list[int] = []
    while reader.peek().kind == "number" if number_count == _MANY else len(numbers) < number_count:
        numbers.append(read(reader.take("number", "a number"), reader.place))
    if number_count == _MANY and not numbers:
        raise reader.expected("a number")
    rates: list[tuple[float, int]] = []
    while len(rates) < rate_count:
        rates.append(_rate(reader))
    reader.end()
    return SwitchCommand(reader.place, command, name, tuple(numbers), tuple(rates))


def _rate(reader: TokenReader) -> tuple[float, int]:
    kind = reader.peek().kind
    text = reader.take("decimal" if kind == "decimal" else "number", "a rate")
    check_length(text, reader.place)
    per_microsecond = float(text) if kind == "decimal" else float(read_bounded(text, reader.place))
    reader.require(":")
    return per_microsecond, read_bounded(reader.take("number", "a burst"), reader.place)


def _name(reader: TokenReader, what: str) -> str:
    """Read a name: parts separated by dots, with indexes in brackets."""
    name = _name_part(reader, what)
    while reader.accept("."):
        name += "." + _name_part(reader, "the rest of the name")
    return name


def _name_part(reader: TokenReader, what: str) -> str:
    part = reader.take("name", what)
    while reader.accept("["):
        part += f"[{reader.take('number', 'an index')}]"
        reader.require("]")
    return part


def _arguments(reader: TokenReader) -> tuple[tuple[str | None, int], ...]:
    reader.require("(")
    arguments: list[tuple[str | None, int]] = []
    while not reader.accept(")"):
        if arguments:
            reader.require(",")
        name = None
        if reader.peek().kind == "name":
            name = _name(reader, "a parameter")
            reader.require(":")
        arguments.append((name, _number(reader, "a value")))
    return tuple(arguments)


def _entry_id(reader: TokenReader, what: str) -> str:
    """Read an entry's id, which scripts write with or without a `$`."""
    return reader.take("name", what).removeprefix("$")


def _number(reader: TokenReader, what: str) -> int:
    return read_number(reader.take("number", what), reader.place)


_PARSERS: dict[str, Callable[[TokenReader], Statement]] = {
    "add": _parse_add,
    "setdefault": _parse_set_default,
    "remove": _parse_remove,
    "wait": lambda reader: Wait(reader.place),
    "no_packet": lambda reader: NoPacket(reader.place),
    "check_counter": _parse_check_counter,
}
