"""How a header is described: its fields in wire order, with widths, values and sources.

Nothing here reads or writes packets. Scapy layers (`weft/traffic/layers/`), the Wireshark dissector and the tables in
docs/spec are made from these descriptions; tests compare the P4 headers and the engine's codec with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

from weft.errors import InvalidValueError

Notation = Literal["decimal", "hexadecimal", "signed", "mac", "ipv4", "ipv6"]


@dataclass(frozen=True)
class Field:
    """A number on the wire, most significant bit first.

    Args:
        name: as in Scapy and on pages.
        bits: its width.
        meaning: in a table of docs/spec (Markdown); `values` and `default` are not repeated there.
        default: the value in a header of which nothing else is known, and of frames that Scapy builds.
        is_fixed: no value but the default is valid.
        values: names of values.
        is_closed: no values but those with a name are valid.
        notes: remarks on single values, in a table of docs/spec.
        notation: how the number is written.
        label: in Wireshark; empty: made from the name.
        unit_bytes: bytes that one stands for; 0: the number counts no bytes.
        source: clause that defines the field, where it is not the header's.

    """

    name: str
    bits: int
    meaning: str = ""
    _: KW_ONLY
    default: int = 0
    is_fixed: bool = False
    values: Mapping[int, str] = field(default_factory=dict)
    is_closed: bool = True
    notes: Mapping[int, str] = field(default_factory=dict)
    notation: Notation = "decimal"
    label: str = ""
    unit_bytes: int = 0
    source: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for values that the width does not hold, and for notes on values without a name."""
        if self.bits < 1:
            raise InvalidValueError(f"field {self.name}: {self.bits} bits", valid="at least 1")
        for value in (self.default, *self.values):
            if not 0 <= value < 1 << self.bits:
                raise ValueError(f"field {self.name}: {value} does not fit {self.bits} bits")
        if not self.notes.keys() <= self.values.keys():
            raise ValueError(f"field {self.name}: notes on {sorted(self.notes)}, names of {sorted(self.values)}")

    @property
    def valid_values(self) -> range | tuple[int, ...]:
        """The values that a sender may write."""
        if self.is_fixed:
            return (self.default,)
        return tuple(self.values) if self.values and self.is_closed else range(1 << self.bits)

    def written(self, value: int) -> str:
        """Return a value in the field's notation."""
        if self.notation == "mac":
            return value.to_bytes(6, "big").hex(":")
        return f"0x{value:0{-(-self.bits // 4)}X}" if self.notation == "hexadecimal" else str(value)


def reserved(bits: int, name: str = "reserved") -> Field:
    """Return a field that is sent as 0."""
    return Field(name, bits, is_fixed=True)


@dataclass(frozen=True)
class Repeated:
    """The same field or header several times.

    Args:
        name: of the list.
        each: one of them.
        count: how many; 0 if packets differ in that.
        meaning: in a table of docs/spec, in place of one made from `each`.
        counted_by: the field of the header that says how many there are.

    """

    name: str
    each: Field | Header
    count: int
    meaning: str = ""
    _: KW_ONLY
    counted_by: str = ""

    @property
    def bits(self) -> int:
        """Width of all together, 0 where packets differ."""
        return self.count * self.each.bits


@dataclass(frozen=True)
class Header:
    """Fields that stand together on the wire.

    Args:
        name: of the header, and of its Scapy layer.
        title: in words, for a page.
        source: document and clause that define it.
        fields: in wire order.
        p4: name of the header type of `p4/`; empty: switches do not parse it.

    """

    name: str
    title: str
    source: str
    fields: tuple[Field | Repeated, ...]
    _: KW_ONLY
    p4: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for a name that occurs twice and a header that does not end with a byte."""
        names = [each.name for each in self.fields]
        if len(set(names)) < len(names):
            raise InvalidValueError(f"header {self.name}: fields {', '.join(names)}", valid="each name once")
        if self.bits % 8:
            raise InvalidValueError(f"header {self.name}: {self.bits} bits", valid="whole bytes")

    @property
    def bits(self) -> int:
        """Width of the header, without lists of varying length."""
        return sum(each.bits for each in self.fields)

    @property
    def size_bytes(self) -> int:
        """The same in bytes."""
        return self.bits // 8

    def __getitem__(self, name: str) -> Field | Repeated:
        """Return a field. Raises KeyError, which lists the names."""
        for each in self.fields:
            if each.name == name:
                return each
        raise KeyError(f"{self.name} has no field {name!r} (valid: {', '.join(each.name for each in self.fields)})")

    def field(self, name: str) -> Field:
        """Return a field that is a number. Raises KeyError for a list, and as indexing does."""
        found = self[name]
        if isinstance(found, Repeated):
            raise KeyError(f"{self.name}.{name} is a list")
        return found

    def numbers(self, place: str = "") -> Iterator[tuple[str, Field]]:
        """Return every number in wire order, lists of a fixed length spelt out: "hops[1].tx_units"."""
        for each in self.fields:
            if isinstance(each, Field):
                yield place + each.name, each
                continue
            for index in range(each.count):
                name = f"{place}{each.name}[{index}]"
                if isinstance(each.each, Field):
                    yield name, each.each
                else:
                    yield from each.each.numbers(f"{name}.")
