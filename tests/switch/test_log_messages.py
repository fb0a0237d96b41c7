"""Messages of log_msg, with values of any width and sign."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from native_twin import Twin

from weft.compiler import compile_file

PROGRAM = Path(__file__).parent / "programs" / "messages.p4"

SMALL_ASSERTED = 7
"""The program asserts that a packet does not have it."""


@pytest.fixture(scope="module")
def twin() -> Twin:
    both = Twin(compile_file(PROGRAM).json_text().encode())
    both.native.native.set_logging(True)
    return both


def _signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@settings(max_examples=60, deadline=None)
@given(
    small=st.integers(0, 255),
    negative=_signed(8),
    word=st.integers(0, 2**64 - 1),
    wide=st.integers(0, 2**200 - 1),
    wide_negative=_signed(72),
)
@example(small=0, negative=-128, word=2**64 - 1, wide=10**54, wide_negative=-(2**71))
@example(small=0, negative=0, word=10**18, wide=2**200 - 1, wide_negative=-1)
def test_values_in_decimal(twin: Twin, small: int, negative: int, word: int, wide: int, wide_negative: int) -> None:
    twin.oracle.objects.log_messages.clear()
    fields = (
        (small, 1, False),
        (negative, 1, True),
        (word, 8, False),
        (wide, 25, False),
        (wide_negative, 9, True),
    )
    twin.process(0, b"".join(value.to_bytes(size, "big", signed=signed) for value, size, signed in fields))
    messages = list(twin.native.native.take_log())
    assert messages == twin.oracle.objects.log_messages
    assert messages[:3] == ["no values", f"{small} {negative}", f"a {word}, b {wide}, c {wide_negative}."]
    assert len(messages) == (4 if small == SMALL_ASSERTED else 3)


def test_a_failed_assertion_is_reported_with_its_place(twin: Twin) -> None:
    twin.oracle.objects.log_messages.clear()
    assert twin.process(0, bytes([SMALL_ASSERTED]).ljust(44, b"\0")) == []
    messages = list(twin.native.native.take_log())
    assert messages == twin.oracle.objects.log_messages
    line = PROGRAM.read_text().split("assert(")[0].count("\n") + 1
    place = f"{PROGRAM}:{line}: assert(hdr.values.small != {SMALL_ASSERTED})"
    assert messages[-1] == f"assert does not hold at {place}: the packet is dropped"


def test_a_log_that_nobody_reads_says_what_it_lost(twin: Twin) -> None:
    twin.native.native.take_log()
    packets, lines_each, kept = 1500, 3, 4096
    for _ in range(packets):
        twin.native.process(0, bytes(44))
    messages = list(twin.native.native.take_log())
    assert messages[0] == f"{packets * lines_each - kept} earlier lines were lost"
    assert len(messages) == 1 + kept
    assert list(twin.native.native.take_log()) == []
