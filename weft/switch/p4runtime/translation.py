"""Values with different representations for controllers: `@p4runtime_translation` (P4Runtime §8.4.6, §18.1).

- `sdn_bitwidth`: another width. Numbers are the same and must fit the data plane's width. For a 32-bit port type (its
  URI or name ends in "port", "port_id", "PortId_t" or similar), the reserved number of the CPU port denotes the
  switch's CPU port.
- `sdn_string`: text. For a port type, the name of an interface of the switch, or a port's number. For any other type,
  every text gets a unique number when a controller first writes it: the one in `@p4runtime_translation_mappings`, else
  the text itself if it is a free number, else the lowest free one from 1. Numbers last as long as the pipeline.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from finsy.proto import p4t

from weft.switch.p4runtime.errors import OUT_OF_RANGE, RESOURCE_EXHAUSTED, RequestError, choices, invalid
from weft.switch.p4runtime.values import decode, encode

CPU_SDN_PORT = 0xFFFFFFFD
"""P4Runtime's number of the CPU port, independent of its data plane number (§9.5, §18.1.1)."""
SDN_PORT_BITS = 32
PORT_BITS = 9
"""Width of v1model's port numbers."""
_PORT_TYPE = re.compile(r"port(_?id)?(_?num(ber)?)?(_?t)?$", re.IGNORECASE)
_MAPPING = re.compile(r'\{\s*"((?:[^"\\]|\\.)*)"\s*,\s*(0[xX][0-9a-fA-F]+|\d+)\s*\}')


@dataclass(frozen=True, slots=True)
class Ports:
    """Names and numbers of a switch's ports."""

    cpu_port: int
    names: Mapping[str, int] = field(default_factory=dict)
    numbers: frozenset[int] | None = None
    """Numbers of all ports; None if unknown."""


class Translation(Protocol):
    """Translation of one type between the controller's byte strings and data plane numbers."""

    def decode(self, data: bytes) -> int:
        """Return the number. OUT_OF_RANGE, INVALID_ARGUMENT or RESOURCE_EXHAUSTED without one."""

    def encode(self, value: int) -> bytes:
        """The canonical byte string."""

    def covers_all(self, mask: bytes) -> bool:
        """Return whether a controller's mask covers the whole value."""

    def full_mask(self) -> bytes:
        """Return the mask that covers the whole value."""


class Translated(Protocol):
    """A field, parameter or metadata."""

    @property
    def width_bits(self) -> int:
        """Width in the data plane."""

    @property
    def translation(self) -> Translation | None:
        """The translation; None if the controller sees the same value."""


def decode_value(data: bytes, of: Translated) -> int:
    """Return the data plane's number for a controller's byte string."""
    return decode(data, of.width_bits) if of.translation is None else of.translation.decode(data)


def encode_value(value: int, of: Translated) -> bytes:
    """Return the controller's byte string for a number."""
    return encode(value) if of.translation is None else of.translation.encode(value)


class WidthTranslation:
    """Translates between `sdn_bits` and `width_bits`."""

    def __init__(self, sdn_bits: int, width_bits: int, cpu_port: int | None) -> None:
        self.sdn_bits = sdn_bits
        self._width_bits = width_bits
        self._cpu_port = cpu_port if sdn_bits == SDN_PORT_BITS else None
        # reads return the form written: controllers use either the reserved number or the data plane's
        self._cpu_is_reserved = False

    def decode(self, data: bytes) -> int:
        """The number."""
        value = decode(data, self.sdn_bits)
        if self._cpu_port is not None and value == CPU_SDN_PORT:
            self._cpu_is_reserved = True
            return self._cpu_port
        if value >> self._width_bits:
            raise RequestError(
                OUT_OF_RANGE,
                f"value {value:#x} does not fit the data plane's {self._width_bits} bits",
                valid=f"0 to {(1 << self._width_bits) - 1:#x}",
            )
        return value

    def encode(self, value: int) -> bytes:
        """The controller's number."""
        return encode(CPU_SDN_PORT if self._cpu_is_reserved and value == self._cpu_port else value)

    def covers_all(self, mask: bytes) -> bool:
        """True for a mask of ones."""
        return decode(mask, self.sdn_bits) == (1 << self.sdn_bits) - 1

    def full_mask(self) -> bytes:
        """All ones."""
        return encode((1 << self.sdn_bits) - 1)


class TextTranslation:
    """Translates between texts and numbers of `width_bits`: `fixed` ones, and new ones if `open_ended`."""

    def __init__(self, width_bits: int, fixed: Mapping[str, int], *, open_ended: bool) -> None:
        self._width_bits = width_bits
        self._open_ended = open_ended
        self._numbers = dict(fixed)
        self._texts = {number: text for text, number in fixed.items()}
        self._next = 1

    def decode(self, data: bytes) -> int:
        """Return the number of a text, allocated now if it is new."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise invalid(f"{data!r} is not UTF-8 text") from None
        number = self._numbers.get(text)
        if number is not None:
            return number
        if not text:
            raise RequestError(OUT_OF_RANGE, "the text is empty")
        own = int(text) if text.isdecimal() and len(text) < 20 and str(int(text)) == text else None
        if own is not None and own < 1 << self._width_bits and own not in self._texts:
            return self._allot(text, own)
        if not self._open_ended:
            raise invalid(f"unknown port {text!r}", valid=f"{choices(self._numbers)}, or a port's number")
        while self._next in self._texts:
            self._next += 1
        if self._next >> self._width_bits:
            raise RequestError(RESOURCE_EXHAUSTED, f"no number of {self._width_bits} bits is left for {text!r}")
        return self._allot(text, self._next)

    def _allot(self, text: str, number: int) -> int:
        self._numbers[text] = number
        self._texts[number] = text
        return number

    def encode(self, value: int) -> bytes:
        """Return the text of a number; its digits if it has no text."""
        return self._texts.get(value, str(value)).encode()

    def covers_all(self, mask: bytes) -> bool:
        """Return False, as texts have no masks."""
        return False

    def full_mask(self) -> bytes:
        """Raise INVALID_ARGUMENT, as texts have no masks."""
        raise invalid("a text is matched as a whole", valid="exact and optional matches")


class Translations:
    """The translated types of one P4Info. Fields of one type share a translation."""

    def __init__(self, types: p4t.P4TypeInfo, ports: Ports) -> None:
        self._types = types
        self._ports = ports
        self._made: dict[tuple[str, int], Translation] = {}

    def of(self, type_name: str, width_bits: int) -> Translation | None:
        """Return the translation of a type with this data plane width; None without one."""
        spec = self._types.new_types.get(type_name) if type_name in self._types.new_types else None
        if spec is None or not spec.HasField("translated_type"):
            return None
        key = (type_name, width_bits)
        if key not in self._made:
            made = self._make(type_name, spec, width_bits)
            if made is None:
                return None
            self._made[key] = made
        return self._made[key]

    def of_ports(self) -> Translation | None:
        """Return the translation of the program's port type, for ports of groups, replicas and sessions."""
        for name, spec in sorted(self._types.new_types.items()):
            if spec.HasField("translated_type") and _is_port(name, spec):
                return self.of(name, PORT_BITS)
        return None

    def _make(self, name: str, spec: p4t.P4NewTypeSpec, width_bits: int) -> Translation | None:
        kind = spec.translated_type
        is_port = _is_port(name, spec)
        if kind.WhichOneof("sdn_type") == "sdn_string":
            fixed = {
                text.replace('\\"', '"'): int(number, 0)
                for annotation in spec.annotations
                if annotation.startswith("@p4runtime_translation_mappings")
                for text, number in _MAPPING.findall(annotation)
            }
            if is_port:
                fixed |= {text: port for text, port in self._ports.names.items() if text not in fixed}
            for text, number in fixed.items():
                if number >> width_bits:
                    raise invalid(f"type {name!r}: {text!r} is mapped to {number}, beyond {width_bits} bits")
            return TextTranslation(width_bits, fixed, open_ended=not is_port)
        if kind.sdn_bitwidth == width_bits:
            return None
        return WidthTranslation(kind.sdn_bitwidth, width_bits, self._ports.cpu_port if is_port else None)


def _is_port(name: str, spec: p4t.P4NewTypeSpec) -> bool:
    return bool(_PORT_TYPE.search(spec.translated_type.uri) or _PORT_TYPE.search(name))
