"""Parser errors, checksums, hashes and arithmetic: simple_switch, the native switch and the oracle say the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from native_twin import Twin
from reference_switch import AVAILABLE, ReferenceSwitch

from weft.compiler import compile_file

PROGRAM = Path(__file__).parent / "programs" / "observations.p4"
PACKET_COUNT = 300
PARSER_ERROR = slice(0, 4)


def _packets() -> list[bytes]:
    choose = random.Random(2)
    packets = []
    for _ in range(PACKET_COUNT):
        head = bytes([choose.randrange(11), choose.choice((0, 1, 2, 7, 16, 99, 100, choose.randrange(256)))])
        body = bytearray(choose.randbytes(choose.randrange(24)))
        for index in range(0, len(body), 2):  # ends the stack of items sooner or later, or is a short length
            if choose.randrange(3) == 0:
                body[index] = choose.choice((0, 8, 16, 24, 64, 72))
        packets.append(head + bytes(body))
    return packets


@pytest.fixture(scope="module")
def json_text() -> str:
    return compile_file(PROGRAM).json_text()


def test_native_and_oracle_agree(json_text: str) -> None:
    twin = Twin(json_text.encode())
    errors = {twin.process(0, data)[0][1][PARSER_ERROR] for data in _packets()}
    assert len(errors) == 7  # every error that the program distinguishes occurs, and none


@pytest.mark.reference
@pytest.mark.skipif(not AVAILABLE, reason="simple_switch is not on PATH")
def test_simple_switch_agrees(json_text: str, tmp_path: Path) -> None:
    (tmp_path / "program.json").write_text(json_text)
    with ReferenceSwitch(tmp_path / "program.json", tmp_path) as reference:
        reference.send((0, data) for data in _packets())
        left = reference.stop()
    twin = Twin(json_text.encode())
    assert list(left) == [1]
    for data, expected in zip(_packets(), left[1], strict=True):
        assert twin.process(0, data) == [(1, expected)], data.hex()
