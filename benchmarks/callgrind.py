"""Counts of callgrind and cachegrind: what their output files say, with the costs of a run by source folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

FIRST_LEVEL = "32768,64,64"
LAST_LEVEL = "1048576,16,64"
CACHES = (f"--I1={FIRST_LEVEL}", f"--D1={FIRST_LEVEL}", f"--LL={LAST_LEVEL}")
"""A cache's size in bytes, its ways and the bytes of a line. No machine has these; they make all machines count alike.

A first level of eight ways counts where the linker puts functions: a change of one line moved its instruction misses by
29 %, which 64 ways make 2.3 % (a fully associative one: 2.0 %).
"""
INSTRUCTIONS = "instructions"
INSTRUCTION_MISSES = "first-level instruction misses"
DATA_MISSES = "first-level data misses"
EVENTS = {
    INSTRUCTIONS: ("Ir",),
    INSTRUCTION_MISSES: ("I1mr",),
    DATA_MISSES: ("D1mr", "D1mw"),
    "last-level misses": ("ILmr", "DLmr", "DLmw"),
}
"""Counts, and the events of callgrind that each is the sum of."""
_COST = re.compile(r"[+\-*\d]")
_NAME = re.compile(r"\((\d+)\)(?: (.*))?")


@dataclass(frozen=True)
class Profile:
    """Events of a run by callgrind's name, and its instructions by folder."""

    events: Mapping[str, int]
    folders: Mapping[str, int]

    @property
    def counts(self) -> dict[str, int]:
        """Counts, by the names in EVENTS."""
        return {name: sum(self.events[each] for each in parts) for name, parts in EVENTS.items()}


def read_profile(text: str) -> Profile:
    """Return the counts in an output file of callgrind. Raises ValueError unless its lines add up to its total."""
    names: list[str] = []
    totals: list[int] = []
    known: dict[tuple[str, str], str] = {}
    source = object_file = ""
    folders: dict[str, int] = {}
    called = False
    for line in text.splitlines():
        if line.startswith("events: "):
            names = line.split()[1:]
        elif line.startswith("totals: "):
            totals = [int(each) for each in line.split()[1:]]
        elif line[:3] in ("fl=", "fi=", "fe="):
            source = _named(known, "file", line[3:])
        elif line.startswith("ob="):
            object_file = _named(known, "object", line[3:])
        elif line[:4] in ("cfi=", "cfl=", "cob="):
            _named(known, "object" if line[:4] == "cob=" else "file", line[4:])
        elif line.startswith("calls="):
            called = True  # the next line has the costs of the callee, which its own lines have as well
        elif names and _COST.match(line):
            fields = line.split()
            if not called and len(fields) > 1:
                folder = _folder(source, object_file)
                folders[folder] = folders.get(folder, 0) + int(fields[1])
            called = False
    if not names or not totals:
        raise ValueError("no output of callgrind: it has no line 'events:' or 'totals:'")
    # Trailing events that are 0 are left out.
    events = dict(zip(names, [*totals, *[0] * (len(names) - len(totals))], strict=True))
    if sum(folders.values()) != events["Ir"]:
        raise ValueError(f"callgrind's lines have {sum(folders.values())} instructions, its total {events['Ir']}")
    return Profile(events, folders)


def read_instructions(text: str) -> int:
    """Instructions in an output file of cachegrind. ValueError if it has none."""
    found = re.search(r"^summary:\s+(\d+)", text, re.MULTILINE)
    if found is None:
        raise ValueError("no output of cachegrind: it has no line 'summary:'")
    return int(found[1])


def _named(known: dict[tuple[str, str], str], kind: str, text: str) -> str:
    """A name, which the file writes in full once and as its number from then on."""
    found = _NAME.fullmatch(text)
    if found is None:
        return text
    if found[2] is not None:
        known[kind, found[1]] = found[2]
    return known[kind, found[1]]


def _folder(source: str, object_file: str) -> str:
    inside = re.search(r"(?:^|/)(engine/\w+)/", source)
    if inside:
        return inside[1]
    if "/include/c++/" in source:
        return "standard library"
    # Machine code of P4 programs is in no file.
    return "P4 program" if object_file in ("", "???") else "other"
