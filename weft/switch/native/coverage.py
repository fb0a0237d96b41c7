"""Coverage of programs on native switches: code that counts, and the entries that packets hit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from weft.switch.backend import NotReadyError
from weft.switch.bmv2json import Program
from weft.switch.coverage.counts import counts_of
from weft.switch.coverage.model import ProgramCoverage, program_coverage
from weft.switch.coverage.sources import shown_tables
from weft.switch.lowering import compile_program
from weft.switch.native.switch import NativeSwitch
from weft.switch.trace.values import key_text


def cover(switches: Sequence[NativeSwitch]) -> None:
    """Have switches count coverage, from zero. Raises NotReadyError if one has no program."""
    for program in _programs(switches):
        counts_of(program).clear()
    for switch in switches:
        _count_in(switch)


def _programs(switches: Sequence[NativeSwitch]) -> list[Program]:
    programs = {each.program.content_hash: each.program for each in switches if each.program is not None}
    return list(programs.values())


def _count_in(switch: NativeSwitch) -> None:
    program = switch.program
    if program is None:
        raise NotReadyError(f"switch '{switch.name}' has no forwarding pipeline yet")
    code = compile_program(program, counts=counts_of(program))
    with switch.engine.lock():
        switch.native.replace_code(code.native)


def coverage_of(switches: Sequence[NativeSwitch]) -> list[ProgramCoverage]:
    """Return the coverage of each program in switches passed to `cover`."""
    found = []
    for program in _programs(switches):
        entries: dict[str, Counter[str]] = {}
        for switch in switches:
            if switch.program is not None and switch.program.content_hash == program.content_hash:
                _count_entries(switch, entries)
        found.append(program_coverage(program, counts_of(program).by_place(), entries))
    return found


def _count_entries(switch: NativeSwitch, entries: dict[str, Counter[str]]) -> None:
    program = switch.program
    assert program is not None
    for table in shown_tables(program):
        widths, names = [key.field.width_bits for key in table.key], [key.name for key in table.key]
        hits = entries.setdefault(table.name, Counter())
        for entry in switch.table_entries(table.name):
            text = key_text(entry.key, widths, names)
            hits[text] += switch.entry_hits(table.name, entry.key, entry.priority)
