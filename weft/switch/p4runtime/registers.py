"""Registers (P4Runtime §9.7) of plain bit<W>, int<W> or bool cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finsy.proto import p4d, p4i, p4r

from weft.switch.p4runtime.cells import ArrayCells
from weft.switch.p4runtime.data import decode_data, encode_data
from weft.switch.p4runtime.errors import invalid, place, require_modify


class Registers(ArrayCells):
    """All registers of a device."""

    def write(self, update_type: int, message: p4r.RegisterEntry) -> None:
        """Set one cell, or all cells if no index is given."""
        require_modify(update_type, "a register entry")
        info = self.find(self.pipeline.registers, message.register_id, "register")
        name = info.preamble.name
        with place(f"register {name!r}"):
            if not message.HasField("data"):
                raise invalid("data is not set")
            value = decode_data(message.data, info.type_spec, self._width_bits(info))
            if message.HasField("index"):
                for index in self.indices(info, message, "register"):
                    self.backend.register_write(name, index, value)
            else:
                self.backend.register_fill(name, value)

    def read(self, query: p4r.RegisterEntry) -> Iterator[p4r.RegisterEntry]:
        """The cells that `query` selects, as they are now: id 0 all registers, no index all cells."""
        found: list[tuple[p4i.Register, int, Sequence[int]]] = []
        for info in self.selected(self.pipeline.registers, query.register_id, "register"):
            name = info.preamble.name
            if query.register_id and query.HasField("index"):
                (index,) = self.indices(info, query, "register")
                found.append((info, index, [self.backend.register_read(name, index)]))
            else:
                found.append((info, 0, self.backend.register_read_all(name)))
        return self._entries(found)

    def _entries(self, found: list[tuple[p4i.Register, int, Sequence[int]]]) -> Iterator[p4r.RegisterEntry]:
        for info, first, values in found:
            number, spec, width_bits = info.preamble.id, info.type_spec, self._width_bits(info)
            encoded, data = None, p4d.P4Data()
            for index, value in enumerate(values, first):
                if value != encoded:  # most of a large array's cells are alike
                    encoded, data = value, encode_data(value, spec, width_bits)
                yield p4r.RegisterEntry(register_id=number, index=p4r.Index(index=index), data=data)

    def read_nonzero(self) -> Iterator[p4r.RegisterEntry]:
        """Yield all cells that differ from their initial state."""
        for number, info in self.pipeline.registers.items():
            width_bits = self._width_bits(info)
            for index, value in enumerate(self.backend.register_read_all(info.preamble.name)):
                if value and index < info.size:
                    data = encode_data(value, info.type_spec, width_bits)
                    yield p4r.RegisterEntry(register_id=number, index=p4r.Index(index=index), data=data)

    def _width_bits(self, info: p4i.Register) -> int:
        return self.pipeline.program.register_arrays[info.preamble.name].width_bits
