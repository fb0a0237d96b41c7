"""A packet may jump backward 16,384 times; then it is dropped and counted, and the next one starts afresh."""

from __future__ import annotations

from pathlib import Path

from native_twin import Twin

from weft.compiler import compile_file

PROGRAM = Path(__file__).parents[1] / "stf" / "cases" / "loops.p4"


FOREVER = 0xA5


def test_a_loop_without_end_ends_with_its_packet() -> None:
    twin = Twin(compile_file(PROGRAM).json_text().encode())
    assert twin.process(0, bytes([1, FOREVER]).ljust(9, b"\0")) == []
    assert twin.native.drops()["loop_limit"] == twin.oracle.drops["loop_limit"] == 1
    ((port, data),) = twin.process(0, bytes([3, 0]).ljust(9, b"\0"))
    assert (port, data[3:7]) == (1, (6).to_bytes(4, "big"))
