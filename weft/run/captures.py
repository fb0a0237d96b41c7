"""Reads captures: pcap (microseconds or nanoseconds, either byte order) and pcapng, of Ethernet frames.

The IETF drafts draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng define the formats. Errors give the byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weft.cache import read_bytes
from weft.errors import BadInputError
from weft.quantities.units import NS_PER_S, shown

MOST_FILE_BYTES = 256 * 2**20
MOST_FRAMES = 1_000_000
_LEAST_FRAME_BYTES, _MOST_FRAME_BYTES = 14, 9216 + 14
_ETHERNET = 1
_PCAP_MAGIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
_SECTION, _INTERFACE, _SIMPLE_PACKET, _ENHANCED_PACKET = 0x0A0D0D0A, 1, 3, 6
_BYTE_ORDER_MAGIC = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_OPTION_END, _OPTION_RESOLUTION, _OPTION_OFFSET = 0, 9, 14


@dataclass(frozen=True)
class CapturedFrame:
    """A frame and its capture time, in nanoseconds since the capture's epoch."""

    time_ns: int
    data: bytes


def read_capture(path: Path) -> tuple[CapturedFrame, ...]:
    """Return the frames of a capture, in the file's order.

    Raises:
        BadInputError: it cannot be read, is larger than 256 MiB, has more than a million frames, is truncated, has a
            link type other than Ethernet, or a frame of invalid size or captured in part; gives the byte.
    """
    data = _read(path)
    frames: list[CapturedFrame] = []
    for offset, frame, original_bytes in _frames(path, data):
        if original_bytes != len(frame.data):
            raise _bad(path, offset, f"a frame of {original_bytes} B of which {len(frame.data)} B were captured")
        if not _LEAST_FRAME_BYTES <= len(frame.data) <= _MOST_FRAME_BYTES:
            raise _bad(
                path,
                offset,
                f"a frame of {len(frame.data)} B",
                valid=f"{_LEAST_FRAME_BYTES} to {_MOST_FRAME_BYTES}",
            )
        if len(frames) == MOST_FRAMES:
            raise _bad(path, offset, f"more than {MOST_FRAMES:,} frames")
        frames.append(frame)
    return tuple(frames)


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path, MOST_FILE_BYTES)
    except OSError as error:
        problem = f"{shown(str(path))}: {error.strerror}" if error.strerror else str(error)
        raise BadInputError(problem) from None
    except ValueError as error:  # a null byte in the name
        raise BadInputError(error, place=shown(str(path))) from None


def _bad(path: Path, offset: int, problem: str, *, valid: str = "") -> BadInputError:
    return BadInputError(problem, place=f"{path.name}, byte {offset}", valid=valid)


def _frames(path: Path, data: bytes) -> Iterator[tuple[int, CapturedFrame, int]]:
    """Yield each frame with its offset and its original length."""
    if data[:4] in _PCAP_MAGIC:
        yield from _pcap_frames(path, data)
    elif data[:4] == _SECTION.to_bytes(4, "big"):
        yield from _pcapng_frames(path, data)
    else:
        raise _bad(path, 0, "neither pcap nor pcapng: the first four bytes are none of their numbers")


def _require_ethernet(path: Path, offset: int, link_type: int) -> None:
    if link_type != _ETHERNET:
        raise _bad(path, offset, f"link type {link_type}", valid=f"{_ETHERNET}, Ethernet")


def _pcap_frames(path: Path, data: bytes) -> Iterator[tuple[int, CapturedFrame, int]]:
    order, ns_per_tick = _PCAP_MAGIC[data[:4]]
    if len(data) < 24:
        raise _bad(path, len(data), "the file's header is cut: it has 24 B")
    _require_ethernet(path, 20, struct.unpack_from(order + "I", data, 20)[0] & 0x0FFFFFFF)
    offset = 24
    while offset < len(data):
        if len(data) - offset < 16:
            raise _bad(path, offset, f"cut: {len(data) - offset} B are left of a frame's header of 16 B")
        seconds, ticks, captured_bytes, original_bytes = struct.unpack_from(order + "IIII", data, offset)
        begin = offset + 16
        if captured_bytes > len(data) - begin:
            raise _bad(path, offset, f"cut: {len(data) - begin} B are left of a frame of {captured_bytes} B")
        frame = CapturedFrame(seconds * NS_PER_S + ticks * ns_per_tick, data[begin : begin + captured_bytes])
        yield offset, frame, original_bytes
        offset = begin + captured_bytes


@dataclass(frozen=True)
class _Interface:
    ticks_per_s: int = 10**6
    offset_s: int = 0
    snap_bytes: int = 0

    def time_ns(self, ticks: int) -> int:
        return self.offset_s * NS_PER_S + ticks * NS_PER_S // self.ticks_per_s


def _pcapng_frames(path: Path, data: bytes) -> Iterator[tuple[int, CapturedFrame, int]]:
    offset, order = 0, "<"
    interfaces: list[_Interface] = []
    while offset < len(data):
        if len(data) - offset < 12:
            raise _bad(path, offset, f"cut: {len(data) - offset} B are left of a block's header")
        if data[offset : offset + 4] == _SECTION.to_bytes(4, "big"):
            found = _BYTE_ORDER_MAGIC.get(data[offset + 8 : offset + 12])
            if found is None:
                raise _bad(path, offset + 8, "a section with an unknown byte order")
            order, interfaces = found, []
        kind, length = struct.unpack_from(order + "II", data, offset)
        if length % 4 or not 12 <= length <= len(data) - offset:
            raise _bad(path, offset, f"a block of {length} B, of which {len(data) - offset} B are left in the file")
        if struct.unpack_from(order + "I", data, offset + length - 4)[0] != length:
            raise _bad(path, offset + length - 4, "a block with different lengths at its beginning and its end")
        body = data[offset + 8 : offset + length - 4]
        if kind == _INTERFACE:
            interfaces.append(_interface(path, offset, order, body))
        elif kind in (_ENHANCED_PACKET, _SIMPLE_PACKET):
            yield _packet(path, offset, order, kind, body, interfaces)
        offset += length


def _interface(path: Path, offset: int, order: str, body: bytes) -> _Interface:
    if len(body) < 8:
        raise _bad(path, offset, "an interface's description is cut")
    link_type, _, snap_bytes = struct.unpack_from(order + "HHI", body)
    _require_ethernet(path, offset + 8, link_type)
    ticks_per_s, offset_s, at = 10**6, 0, 8
    while at + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, at)
        value = body[at + 4 : at + 4 + length]
        if code == _OPTION_END or len(value) < length:
            break
        if code == _OPTION_RESOLUTION and length == 1:
            exponent = value[0] & 0x7F
            if exponent > (63 if value[0] & 0x80 else 19):
                raise _bad(path, offset + 8 + at, f"a resolution of {exponent} digits or bits")
            ticks_per_s = 2**exponent if value[0] & 0x80 else 10**exponent
        if code == _OPTION_OFFSET and length == 8:
            offset_s = struct.unpack(order + "q", value)[0]
        at += 4 + -(-length // 4) * 4
    return _Interface(ticks_per_s, offset_s, snap_bytes)


def _packet(
    path: Path, offset: int, order: str, kind: int, body: bytes, interfaces: list[_Interface]
) -> tuple[int, CapturedFrame, int]:
    header = 20 if kind == _ENHANCED_PACKET else 4
    if len(body) < header:
        raise _bad(path, offset, f"a packet's block is cut: {len(body)} B of a header of {header} B")
    number, time_ns = 0, 0
    if kind == _ENHANCED_PACKET:
        number, high, low, captured_bytes, original_bytes = struct.unpack_from(order + "IIIII", body)
    else:
        # It has no timestamp; its frame is truncated to the interface's snap length.
        original_bytes = captured_bytes = struct.unpack_from(order + "I", body)[0]
    if number >= len(interfaces):
        raise _bad(path, offset, f"a frame of interface {number}, of which there are {len(interfaces)} so far")
    if kind == _ENHANCED_PACKET:
        time_ns = interfaces[number].time_ns(high << 32 | low)
    elif interfaces[number].snap_bytes:
        captured_bytes = min(captured_bytes, interfaces[number].snap_bytes)
    data = body[header : header + captured_bytes]
    if len(data) < captured_bytes:
        raise _bad(path, offset, f"a frame of {captured_bytes} B in a block with {len(data)} B for it")
    return offset, CapturedFrame(time_ns, data), original_bytes
