"""The state of variables and headers at one point of a program, as far as it is known.

A place is a path: the identity of a declaration, then names of fields, constant indices of stacks, and for a header's
validity `VALIDITY`. A state holds only the places that may lack a value or be
invalid. Every other place has a value; for a header's validity, something outside may decide the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weft.compiler import types

Path = tuple[object, ...]
VALIDITY = "#"

# A scalar's: it has a value, it has none.
WRITTEN, UNWRITTEN = 1, 2
# A header's: it is valid, it is invalid, unknown, or isValid() has just said that it is not.
VALID, INVALID, UNKNOWN_VALIDITY, TESTED_INVALID = 1, 2, 4, 8

# Larger types are not followed field by field.
_LEAF_LIMIT = 4096


class State:
    """Possibilities of each place as a set of bits, on the paths that lead to one point."""

    __slots__ = ("bits",)

    def __init__(self, bits: dict[Path, int] | None = None) -> None:
        self.bits = bits if bits is not None else {}

    def copy(self) -> State:
        """An independent copy."""
        return State(dict(self.bits))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.bits == other.bits

    __hash__ = None  # type: ignore[assignment]

    def get(self, path: Path) -> int:
        """The possibilities of a place."""
        return self.bits.get(path, _usual(path))

    def set(self, path: Path, bits: int) -> None:
        """Set the possibilities of a place."""
        if bits == _usual(path):
            self.bits.pop(path, None)
        else:
            self.bits[path] = bits

    def below(self, path: Path) -> list[Path]:
        """The places at and below `path` that may lack a value or be invalid."""
        size = len(path)
        return [known for known in self.bits if known[:size] == path]

    def forget(self, path: Path) -> None:
        """Note that everything at and below `path` has been written."""
        for known in self.below(path):
            del self.bits[known]

    def copy_from(self, target: Path, source: Path) -> None:
        """Give `target` the possibilities of `source`."""
        size = len(source)
        found = {target + known[size:]: self.bits[known] for known in self.below(source)}
        self.forget(target)
        self.bits.update(found)


def _usual(path: Path) -> int:
    return UNKNOWN_VALIDITY if path[-1] == VALIDITY else WRITTEN


def join(first: State | None, second: State | None) -> State | None:
    """The state where two paths meet; None is a point that is never reached."""
    if first is None or second is None or first is second:
        return (first or second).copy() if (first or second) is not None else None  # type: ignore[union-attr]
    joined = State()
    for path in first.bits.keys() | second.bits.keys():
        joined.set(path, first.get(path) | second.get(path))
    return joined


def join_all(states: Iterable[State | None]) -> State | None:
    """`join` of any number."""
    result: State | None = None
    for state in states:
        result = join(result, state)
    return result


def join_outcomes(states: Iterable[State | None]) -> State | None:
    """`join_all` of a table's actions: which one runs is up to the control plane, which may know of the headers'
    validity, so what the actions disagree about counts as unknown.
    """
    reached = [state for state in states if state is not None]
    joined = join_all(reached)
    if joined is not None:
        for path in [path for path in joined.bits if path[-1] == VALIDITY]:
            if any(state.get(path) != joined.bits[path] for state in reached):
                joined.set(path, UNKNOWN_VALIDITY)
    return joined


def scalars(type_: types.Type | None, path: Path) -> Iterator[Path]:
    """The places of a value that are neither headers nor within one."""
    for leaf, kind in _leaves(type_, path):
        if kind == "scalar":
            yield leaf


def declare_unwritten(state: State, type_: types.Type | None, path: Path) -> None:
    """A variable without a value: scalars unwritten, headers invalid."""
    state.forget(path)
    leaves = []
    for leaf in _leaves(type_, path):
        leaves.append(leaf)
        if len(leaves) > _LEAF_LIMIT:
            return
    for place, kind in leaves:
        if kind == "scalar":
            state.set(place, UNWRITTEN)
        else:
            state.set((*place, VALIDITY), INVALID)


def header_fields(type_: types.Type | None, path: Path) -> Iterator[Path]:
    """The places of a header's fields."""
    plain = types.strip_new(type_) if type_ is not None else None
    if isinstance(plain, types.StructType):
        for name in plain.fields:
            yield (*path, name)


def _leaves(type_: types.Type | None, path: Path) -> Iterator[tuple[Path, str]]:
    plain = types.strip_new(type_) if type_ is not None else None
    if isinstance(plain, types.StructType):
        if types.is_header(plain):
            yield path, "header"
            return
        for name, field_type in plain.fields.items():
            yield from _leaves(field_type, (*path, name))
    elif isinstance(plain, types.AnonymousStructType):
        for name, field_type in plain.fields:
            yield from _leaves(field_type, (*path, name))
    elif isinstance(plain, types.StackType):
        for index in range(plain.size):
            yield from _leaves(plain.element, (*path, index))
    elif isinstance(plain, types.TupleType):
        for index, element in enumerate(plain.elements):
            yield from _leaves(element, (*path, index))
    elif plain is not None:
        yield path, "scalar"
