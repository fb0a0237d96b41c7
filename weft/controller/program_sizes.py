"""Sizes declared by a compiled program: registers, table entries, and per-packet state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from finsy.proto import p4i

from weft.controller.errors import PipelineError

_COUNT_BITS = 64
"""Width of a packet or byte count: int64 in P4Runtime's CounterData."""


@dataclass(frozen=True)
class RegisterSize:
    """A register array: its name in P4Info, bits per cell, and number of cells."""

    name: str
    cell_bits: int
    cells: int

    @property
    def bits(self) -> int:
        """Bits of all cells."""
        return self.cell_bits * self.cells

    @property
    def control(self) -> str:
        """Name of the control that declares the register."""
        return self.name.rpartition(".")[0]


@dataclass(frozen=True)
class EntrySize:
    """Size of a table's entry.

    Attributes:
        table: alias of the table.
        key_bits: all fields, twice the width for fields that are not exact, because of their mask.
        action_bits: the largest parameter list of the allowed actions, plus the action's number.
        counter_bits: direct counters.
        table_size: entries that the table holds.

    """

    table: str
    key_bits: int
    action_bits: int
    counter_bits: int
    table_size: int

    @property
    def bits(self) -> int:
        """Bits of a whole entry."""
        return self.key_bits + self.action_bits + self.counter_bits


@dataclass(frozen=True)
class PacketSize:
    """Bits of state for each packet: the program's local variables and metadata, and header fields."""

    metadata_bits: int
    header_bits: int


def register_sizes(p4info: p4i.P4Info) -> list[RegisterSize]:
    """Return all registers of a program, in P4Info's order. PipelineError: one holds a struct, without a width."""
    found = []
    for register in p4info.registers:
        if register.type_spec.WhichOneof("type_spec") != "bitstring":
            raise PipelineError(f"register {register.preamble.name} is not one of bits")
        kind = register.type_spec.bitstring
        bits = getattr(kind, kind.WhichOneof("type_spec")).bitwidth
        found.append(RegisterSize(register.preamble.name, int(bits), int(register.size)))
    return found


def entry_size(p4info: p4i.P4Info, table: str) -> EntrySize:
    """Return the entry size of a table, given its alias. Raises PipelineError if there is no such table."""
    found = next((each for each in p4info.tables if each.preamble.alias == table), None)
    if found is None:
        raise PipelineError(f"P4Info has no table {table!r}")
    exact = p4i.MatchField.EXACT
    key_bits = sum(each.bitwidth * (1 if each.match_type == exact else 2) for each in found.match_fields)
    of_entries = {each.id for each in found.action_refs if each.scope != p4i.ActionRef.DEFAULT_ONLY}
    parameters = [
        sum(each.bitwidth for each in action.params) for action in p4info.actions if action.preamble.id in of_entries
    ]
    choice_bits = (len(parameters) - 1).bit_length() if parameters else 0
    counter_bits = sum(
        _COUNT_BITS * (2 if counter.spec.unit == p4i.CounterSpec.BOTH else 1)
        for counter in p4info.direct_counters
        if counter.direct_table_id == found.preamble.id
    )
    action_bits = max(parameters, default=0) + choice_bits
    return EntrySize(table, key_bits, action_bits, counter_bits, int(found.size))


def parameter_bits(p4info: p4i.P4Info, action: str, parameter: str) -> int:
    """Return the width of an action's parameter, given the action's alias. Raises PipelineError if there is none."""
    for each in p4info.actions:
        if each.preamble.alias == action:
            for found in each.params:
                if found.name == parameter:
                    return int(found.bitwidth)
    raise PipelineError(f"P4Info has no action {action!r} with a parameter {parameter!r}")


def packet_size(program: Mapping[str, Any]) -> PacketSize:
    """Return the per-packet state of a program, given its BMv2 JSON; v1model's standard metadata are not counted."""
    bits = {each["name"]: _bits_of(each) for each in program["header_types"]}
    metadata, headers = 0, 0
    for header in program["headers"]:
        if not header["metadata"]:
            headers += bits[header["header_type"]]
        elif header["name"] != "standard_metadata":
            metadata += bits[header["header_type"]]
    return PacketSize(metadata, headers)


def standard_field_bits(program: Mapping[str, Any], name: str) -> int:
    """Return the width of a field of v1model's standard metadata, given a program's BMv2 JSON."""
    (standard,) = (each for each in program["header_types"] if each["name"] == "standard_metadata")
    return next(int(width) for field, width, *_ in standard["fields"] if field == name)


def _bits_of(header_type: Mapping[str, Any]) -> int:
    # The width of a variable-length field is "*", and padding does not count.
    return sum(width for name, width, *_ in header_type["fields"] if isinstance(width, int) and name != "_padding")
