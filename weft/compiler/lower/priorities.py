"""Priorities of the entries that a table lists (P4_16 specification, section 14.2.1.4)."""

from __future__ import annotations

from typing import NamedTuple

from weft.compiler import ast
from weft.compiler.budgets import CONTROL_PLANE_SIZE
from weft.compiler.diagnostics import Diagnostics


class Priority(NamedTuple):
    """An entry's priority: the smallest wins in BMv2, the largest in P4Runtime."""

    bmv2: int
    control: int


def entry_priorities(declaration: ast.TableDeclaration, diagnostics: Diagnostics) -> list[Priority]:
    """The priority of each entry, from 1; an entry without one gets it from the entry before."""
    entries = declaration.entries or []
    if not entries:
        return []
    annotated = [_annotated(entry) for entry in entries]
    if any(number is not None for number in annotated):
        values = [index + 1 if number is None else number for index, number in enumerate(annotated)]
        _check_largest(values, declaration, diagnostics)
        return _ranked(values, largest_wins=False)
    if declaration.entries_const and not any(entry.priority is not None for entry in entries):
        return _ranked(list(range(1, len(entries) + 1)), largest_wins=False)
    largest = declaration.properties.get("largest_priority_wins")
    largest_wins = largest is None or bool(largest.expression.value)
    values = _numbered(declaration, largest_wins, diagnostics)
    for entry, value in zip(entries, values, strict=True):
        if value < 1:
            diagnostics.error(f"this entry gets the priority {value}; the smallest is 1", entry.span)
    _check_largest(values, declaration, diagnostics)
    return _ranked(values, largest_wins)


def _check_largest(values: list[int], declaration: ast.TableDeclaration, diagnostics: Diagnostics) -> None:
    for entry, value in zip(declaration.entries or [], values, strict=True):
        if value >= CONTROL_PLANE_SIZE:
            diagnostics.error(
                f"this entry gets the priority {value}; the largest is {CONTROL_PLANE_SIZE - 1}", entry.span
            )


def _numbered(declaration: ast.TableDeclaration, largest_wins: bool, diagnostics: Diagnostics) -> list[int]:
    """As the program means them: those given, the others apart by `priority_delta`."""
    entries = declaration.entries or []
    delta_property = declaration.properties.get("priority_delta")
    delta = int(delta_property.expression.value) if delta_property is not None else 1
    some_given = any(entry.priority is not None for entry in entries)
    if largest_wins and some_given and entries[0].priority is None:
        diagnostics.error("the first entry needs a priority, since another one has it", entries[0].span)
    values: list[int] = []
    for index, entry in enumerate(entries):
        if entry.priority is not None:
            values.append(int(entry.priority.value))
        elif index == 0:
            values.append((len(entries) - 1) * delta + 1 if largest_wins else 1)
        else:
            values.append(values[-1] - delta if largest_wins else values[-1] + delta)
    return values


def _ranked(values: list[int], largest_wins: bool) -> list[Priority]:
    mirror = max(values) + 1
    return [Priority(mirror - value, value) if largest_wins else Priority(value, mirror - value) for value in values]


def _annotated(entry: ast.TableEntry) -> int | None:
    """The number in `@priority`, which p4c's BMv2 back end takes as BMv2's."""
    return next((note.integers()[0] for note in entry.annotations if note.name == "priority"), None)
