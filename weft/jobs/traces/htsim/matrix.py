"""Reads a connection matrix, by the rules of htsim's own reader (connection_matrix.cpp).

The header counts nodes, connections, triggers and failures. A connection, `SRC->DST`, starts at a time in picoseconds
or by a trigger, and fires triggers once it is sent and acknowledged, or received.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from weft.errors import InvalidValueError
from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.tables.lines import MAX_ROWS, whole
from weft.quantities.definitions import TIME
from weft.quantities.limits import MAX_FLOW_BYTES
from weft.quantities.readable import format_time
from weft.quantities.units import shown

ONESHOT, MULTISHOT, BARRIER = KINDS = ("oneshot", "multishot", "barrier")
_COUNTS = ("Nodes", "Connections", "Triggers", "Failures")
_VALID = "Nodes, Connections, Triggers, Failures, SRC->DST, trigger, failure, or # for a comment"
_PICOSECONDS = re.compile(r"[0-9]{1,19}(\.[0-9]{1,12})?", re.ASCII)
_MOST_NUMBER = (1 << 31) - 1
"""Largest identifier and count: htsim reads them as 32-bit integers."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection or, with `msg`, a message of one. Triggers are identifiers; 0 is none. `line` is its line."""

    line: int
    source: int
    destination: int
    size_bytes: int
    identifier: int
    start_ps: int
    trigger: int
    send_done: int
    receive_done: int


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger: a barrier fires at the `count`-th activation."""

    line: int
    kind: str
    count: int


@dataclass
class Matrix:
    """A connection matrix. `left_out` counts the keys that were read and have no meaning here."""

    source: str
    nodes: int
    connections: list[Connection] = field(default_factory=list)
    triggers: dict[int, Trigger] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)

    def place(self, line: int) -> str:
        """Return a line's place in the file."""
        return f"{self.source}, line {line}"


def header_counts(lines: Iterable[str]) -> dict[str, str]:
    """Return the counts at the beginning of a text, by name; {} if it is no connection matrix."""
    counts: dict[str, str] = {}
    for text in lines:
        words = text.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] not in _COUNTS or len(words) < 2:
            break
        counts[words[0]] = words[1]
    return counts if {"Nodes", "Connections"} <= counts.keys() else {}


def read_matrix(lines: Iterable[str], source: str, most_nodes: int) -> Matrix:
    """Return the matrix of a text. Raises TraceError with file and line."""
    return _Reader(source, most_nodes).read(lines)


class _Reader:
    def __init__(self, source: str, most_nodes: int) -> None:
        self._matrix = Matrix(source, 0)
        self._most_nodes = most_nodes
        self._counts: dict[str, int] = {}
        self._place = ""
        self._messages: dict[int, bool] = {}
        """Whether an identifier was given with `msg`."""

    def read(self, lines: Iterable[str]) -> Matrix:
        for line, text in enumerate(lines, 1):
            words = text.split()
            if not words or words[0].startswith("#"):
                continue
            self._place = self._matrix.place(line)
            if words[0] in _COUNTS:
                self._add_count(words)
            elif "->" in words[0]:
                self._add_connection(line, words)
            elif words[0] == "trigger":
                self._add_trigger(line, words)
            elif words[0] == "failure":
                raise self._refused("a failed link", "none; `events` of a scenario fail links")
            else:
                raise self._refused(f"{shown(words[0])} begins no line of a connection matrix", _VALID)
        self._require_counts()
        return self._matrix

    def _refused(self, problem: str | Exception, valid: str = "") -> TraceError:
        return TraceError(problem, place=self._place, valid=valid)

    def _number(self, words: Iterator[str], key: str, least: int, most: int) -> int:
        return self._read(next(words, ""), key, whole(least, most))

    def _read(self, text: str, key: str, reader: Callable[[str], int]) -> int:
        try:
            return reader(text)
        except ValueError as error:
            raise TraceError(error, place=f"{self._place}: {key}") from None

    def _add_count(self, words: list[str]) -> None:
        name, *values = words
        if name in self._counts:
            raise self._refused(f"{name} occurs twice", "once")
        if self._matrix.connections or self._matrix.triggers:
            raise self._refused(f"{name} after connections or triggers", "before them")
        if len(values) != 1:
            raise self._refused(f"{name} with {len(values)} values", "one number")
        least, most = (1, self._most_nodes) if name == "Nodes" else (0, MAX_ROWS)
        self._counts[name] = self._number(iter(values), name, least, most)
        if name == "Nodes":
            self._matrix.nodes = self._counts[name]

    def _add_connection(self, line: int, words: list[str]) -> None:
        if "Nodes" not in self._counts:
            raise self._refused("a connection before the number of nodes", "Nodes N first")
        if len(self._matrix.connections) == self._counts.get("Connections", 0):
            raise self._refused(
                f"connection {len(self._matrix.connections) + 1}",
                f"{self._counts.get('Connections', 0)} connections, as the header says",
            )
        source, destination = (
            self._read(text, "SRC->DST", whole(0, self._matrix.nodes - 1)) for text in words[0].split("->", 1)
        )
        if source == destination:
            raise self._refused(f"node {source} sends to itself", "another node")
        found = self._keys(words[1:])
        if "size" not in found:
            raise self._refused("has no size", f"size B, 1 to {MAX_FLOW_BYTES}")
        if ("start" in found) == ("trigger" in found):
            given = "both" if "start" in found else "neither"
            raise self._refused(f"has {given} of start and trigger", "one of the two")
        self._matrix.connections.append(
            Connection(
                line,
                source,
                destination,
                found["size"],
                found.get("id", 0),
                found.get("start", 0),
                found.get("trigger", 0),
                found.get("send_done_trigger", 0),
                found.get("recv_done_trigger", 0),
            )
        )

    def _keys(self, words: list[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        at = 0
        while at < len(words):
            key, value = words[at], words[at + 1] if at + 1 < len(words) else ""
            if key in found:
                raise self._refused(f"{key} occurs twice", "once")
            if key not in _READERS:
                raise self._refused(f"unknown key {shown(key)} of a connection", ", ".join(_READERS))
            # The number of a message may be missing.
            has_value = key != "msg" or value.isdigit()
            found[key] = self._read(value, key, _READERS[key]) if has_value else 0
            at += 1 + has_value
        self._note(found)
        return found

    def _note(self, found: dict[str, int]) -> None:
        for key in found.keys() & {"prio", "msg"}:
            self._matrix.left_out[key] = self._matrix.left_out.get(key, 0) + 1
        identifier, is_message = found.get("id"), "msg" in found
        if identifier is None:
            return
        if not (is_message and self._messages.get(identifier, True)) and identifier in self._messages:
            raise self._refused(f"id {identifier} occurs twice", "once, or with msg in each line")
        self._messages[identifier] = is_message

    def _add_trigger(self, line: int, words: list[str]) -> None:
        identifier, count, kind = 0, 0, ""
        rest = iter(words[1:])
        for key in rest:
            if key == "id":
                identifier = self._number(rest, key, 1, _MOST_NUMBER)
            elif key == "count":
                count = self._number(rest, key, 1, MAX_ROWS)
            elif key in KINDS and not kind:
                kind = key
            else:
                raise self._refused(
                    f"{shown(key)} in a trigger", "id I, and one of oneshot, multishot, barrier count N"
                )
        if not identifier or not kind or (kind == BARRIER) != bool(count):
            raise self._refused(
                "an incomplete trigger", "trigger id I oneshot, trigger id I multishot, trigger id I barrier count N"
            )
        if identifier in self._matrix.triggers:
            raise self._refused(f"trigger {identifier} occurs twice", "once")
        self._matrix.triggers[identifier] = Trigger(line, kind, count)

    def _require_counts(self) -> None:
        held = {"Connections": len(self._matrix.connections), "Triggers": len(self._matrix.triggers), "Failures": 0}
        for name in ("Nodes", "Connections"):
            if name not in self._counts:
                raise TraceError(f"the header has no {name}", place=self._matrix.source, valid=f"{name} N")
        for name, count in held.items():
            if count != (counted := self._counts.get(name, 0)):
                problem = f"{count} {name.lower()}"
                raise TraceError(problem, place=self._matrix.source, valid=f"{counted}, as the header says")


def _start_ps(text: str) -> int:
    """Return a start in picoseconds, which htsim reads as a decimal number."""
    if not _PICOSECONDS.fullmatch(text):
        raise InvalidValueError(f"{shown(text)} is no time in picoseconds", valid="1000000 for 1 µs, say")
    start_ps = round(Decimal(text))
    if not TIME.holds(start_ps):
        raise InvalidValueError(f"a start at {format_time(start_ps)}", valid=TIME.range_text)
    return start_ps


_IDENTIFIER = whole(1, _MOST_NUMBER)
_READERS = {
    "id": _IDENTIFIER,
    "start": _start_ps,
    "size": whole(1, MAX_FLOW_BYTES),
    "trigger": _IDENTIFIER,
    "send_done_trigger": _IDENTIFIER,
    "recv_done_trigger": _IDENTIFIER,
    "prio": whole(0, _MOST_NUMBER),
    "msg": whole(1, _MOST_NUMBER),
}
"""Readers of the keys of a connection."""
