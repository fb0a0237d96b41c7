"""P4Data (P4Runtime §8.4) for the supported types of registers and digests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finsy.proto import p4d, p4t

from weft.switch.p4runtime.errors import invalid
from weft.switch.p4runtime.values import decode, decode_signed, encode, encode_signed


def _is_signed(spec: p4t.P4DataTypeSpec) -> bool:
    return spec.HasField("bitstring") and spec.bitstring.HasField("int")


def decode_data(data: p4d.P4Data, spec: p4t.P4DataTypeSpec, width_bits: int) -> int:
    """Return the value of a plain P4Data, as the bits of a cell."""
    kind = data.WhichOneof("data")
    if spec.HasField("bool"):
        if kind != "bool":
            raise invalid(f"expected P4Data of type 'bool', got {kind or 'nothing'!r}")
        return int(data.bool)
    if kind != "bitstring":
        raise invalid(f"expected P4Data of type 'bitstring', got {kind or 'nothing'!r}")
    if _is_signed(spec):
        return decode_signed(data.bitstring, width_bits)
    return decode(data.bitstring, width_bits)


def encode_data(value: int, spec: p4t.P4DataTypeSpec, width_bits: int) -> p4d.P4Data:
    """Return the plain P4Data of a cell."""
    if spec.HasField("bool"):
        return p4d.P4Data(bool=bool(value))
    if _is_signed(spec):
        return p4d.P4Data(bitstring=encode_signed(value, width_bits))
    return p4d.P4Data(bitstring=encode(value))


def encode_digest(
    values: Sequence[int], widths_bits: Sequence[int], spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo
) -> p4d.P4Data:
    """Return the data of one digest in its P4Info type: structs and tuples of plain values, possibly nested."""
    cells = iter(list(zip(values, widths_bits, strict=True)))
    data = _encode_cells(cells, spec, types)
    if next(cells, None) is not None:
        raise invalid(f"the digest has {len(values)} values, more than its type in P4Info")
    return data


def _encode_cells(cells: Iterator[tuple[int, int]], spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo) -> p4d.P4Data:
    if spec.HasField("struct"):
        specs = [member.type_spec for member in types.structs[spec.struct.name].members]
        return p4d.P4Data(struct=p4d.P4StructLike(members=[_encode_cells(cells, each, types) for each in specs]))
    if spec.HasField("tuple"):
        specs = list(spec.tuple.members)
        return p4d.P4Data(tuple=p4d.P4StructLike(members=[_encode_cells(cells, each, types) for each in specs]))
    cell = next(cells, None)
    if cell is None:
        raise invalid("the digest has fewer values than its type in P4Info")
    return encode_data(cell[0], spec, cell[1])
