"""The program that switches run: P4Info and the target's device configuration (BMv2 JSON)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import finsy
from finsy.p4schema import P4RuntimeVersion
from finsy.proto import p4i
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from weft.controller.encoding import EntityEncoder
from weft.controller.errors import PipelineError
from weft.controller.program_names import ProgramNames

SLOT_REGISTER = "slot_tag"
_LANE_REGISTERS = "slot_lane"
_VERSIONS_PER_SLOT = 2


@dataclass(frozen=True)
class Pipeline:
    """P4Info and device configuration; the configuration is empty for sessions that only read.

    `left_out` lists what was not written: by table or selector, what the program lacks.
    """

    p4info: p4i.P4Info
    device_config: bytes = b""
    left_out: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    _encoders: dict[str, EntityEncoder] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def load(cls, p4info: str | Path, device_config: str | Path | None = None, binary: bytes | None = None) -> Pipeline:
        """Read P4Info (protobuf text, or binary if the name ends in .bin) and the BMv2 JSON.

        `binary` is the content of the P4Info file in binary format, if it is known; then the file is not read.

        Raises:
            PipelineError: a file is unreadable or not P4Info.

        """
        try:
            config = Path(device_config).read_bytes() if device_config is not None else b""
            return cls(read_p4info(Path(p4info), binary), config)
        except OSError as error:
            raise PipelineError(f"cannot read {error.filename}: {error.strerror}") from None

    @cached_property
    def names(self) -> ProgramNames:
        """The program's tables and actions by name."""
        return _shared_names(self.p4info.SerializeToString(deterministic=True))

    def schema(self) -> finsy.P4Schema:
        """Return a new schema, which maps names to ids and values to bytes, and has a P4Runtime version."""
        return finsy.P4Schema(self.p4info, self.device_config or None)

    def encoder(self, version: P4RuntimeVersion | None = None) -> EntityEncoder:
        """Return the encoder for a P4Runtime version (None: not known yet); the same object for each version."""
        name = str(version)
        if name not in self._encoders:
            info = self.p4info.SerializeToString(deterministic=True)
            schema = _shared_schema(info, self.device_config or None, version)
            self._encoders[name] = EntityEncoder(schema, self.names, self.left_out)
        return self._encoders[name]

    def lane_count(self) -> int:
        """Lanes of an aggregation data packet, each with a register; 0 if the program does not aggregate."""
        return sum(register.preamble.alias.startswith(_LANE_REGISTERS) for register in self.p4info.registers)

    def slot_capacity(self) -> int:
        """Return a switch's aggregation slots: half the slot registers' size, as slots have two versions; 0 if none."""
        for register in self.p4info.registers:
            if register.preamble.alias == SLOT_REGISTER:
                return int(register.size) // _VERSIONS_PER_SLOT
        return 0


Pipelines = Mapping[str, Pipeline]
"""Programs by switch name; switches with the same program share an object."""


def read_p4info(path: Path, binary: bytes | None = None) -> p4i.P4Info:
    """Read a P4Info file, text or (.bin) binary, unless its content is given in binary format."""
    try:
        if binary is None:
            content = path.read_bytes()
            binary = content if path.suffix == ".bin" else _binary_of(content)
        info: p4i.P4Info = p4i.P4Info.FromString(binary)
    except (DecodeError, text_format.ParseError, ValueError) as error:  # ValueError: an enum beyond 32 bits
        raise PipelineError(f"not P4Info: {error}", place=path) from None
    if not info.tables and not info.pkg_info.arch:
        raise PipelineError("P4Info without tables or architecture", place=path)
    return info


@lru_cache(maxsize=8)
def _binary_of(text: bytes) -> bytes:
    """Return text-format P4Info in binary format, because parsing text takes a hundred times as long."""
    binary: bytes = text_format.Parse(text.decode(), p4i.P4Info()).SerializeToString()
    return binary


@lru_cache(maxsize=8)
def _shared_schema(p4info: bytes, device_config: bytes | None, version: P4RuntimeVersion | None) -> finsy.P4Schema:
    """Return the schema shared by all pipelines of a program; do not change it. Creating one takes milliseconds."""
    schema = finsy.P4Schema(p4i.P4Info.FromString(p4info), device_config)
    if version is not None:
        schema.set_p4runtime_version(version)
    return schema


@lru_cache(maxsize=8)
def _shared_names(p4info: bytes) -> ProgramNames:
    """Return the names shared by all pipelines of a program, as every fabric makes pipelines of its own."""
    return ProgramNames.of(p4i.P4Info.FromString(p4info))
