"""Headers and metadata, their types, stacks and unions, as the loader has checked them.

Source: behavioral-model docs/JSON_format.md, format version 2.x.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a header type; `width_bits` of a variable-length field is its largest width."""

    name: str
    width_bits: int
    signed: bool = False
    variable: bool = False


@dataclass(frozen=True, slots=True)
class HeaderType:
    """`fields` in wire order; `width_bits` includes the largest variable-length field."""

    name: str
    id: int
    fields: tuple[Field, ...]

    @property
    def width_bits(self) -> int:
        """Largest width of the whole header."""
        return sum(field.width_bits for field in self.fields)

    @property
    def variable_field(self) -> Field | None:
        """The variable-length field, None without one."""
        return next((field for field in self.fields if field.variable), None)

    def field(self, name: str) -> Field:
        """The field called `name`. Raises KeyError if it does not exist."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Header:
    """A header instance, or a metadata instance (always valid, never on the wire)."""

    name: str
    id: int
    type: HeaderType
    metadata: bool


@dataclass(frozen=True, slots=True)
class HeaderStack:
    """`headers` are the names of the instances, from index 0."""

    name: str
    id: int
    type: HeaderType
    headers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeaderUnionType:
    """`members` are pairs of member name and header type."""

    name: str
    id: int
    members: tuple[tuple[str, HeaderType], ...]

    def member_index(self, name: str) -> int:
        """Position of the member called `name`. Raises KeyError if it does not exist."""
        for index, (member, _) in enumerate(self.members):
            if member == name:
                return index
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class HeaderUnion:
    """`headers` are the names of the instances, in the order of the type's members."""

    name: str
    id: int
    type: HeaderUnionType
    headers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeaderUnionStack:
    """`unions` are the names of the unions, from index 0."""

    name: str
    id: int
    type: HeaderUnionType
    unions: tuple[str, ...]
