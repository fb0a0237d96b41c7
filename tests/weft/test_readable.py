"""Quantities as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.quantities.readable import (
    SIZE_UNITS,
    TIME_UNITS,
    counted,
    format_rate,
    format_size,
    format_time,
    time_unit,
    unit_for,
)

S = 10**12


@pytest.mark.parametrize(
    ("time_ps", "text"),
    [
        (0, "0 ps"),
        (999, "999 ps"),
        (1000, "1 ns"),
        (1_500_000, "1.5 µs"),
        (13_442_155_000, "13.4422 ms"),
        (999 * S, "999 s"),
        (90 * 60 * S, "1.5 h"),
        (36 * 3600 * S, "1.5 d"),
        (86_400 * 10**7 * S, "10,000,000 d"),
    ],
)
def test_a_time_has_the_unit_of_its_size(time_ps, text):
    assert format_time(time_ps) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (127 * 2**20, "127 MiB"), (2**60, "1024 PiB")],
)
def test_a_size_has_the_unit_of_its_size(size_bytes, text):
    assert format_size(size_bytes) == text


def test_with_fewer_digits_whole_parts_stay_whole():
    assert format_size(1023.4 * 2**20, digits=3) == "1,023 MiB"
    assert format_size(121.34 * 2**20, digits=3) == "121 MiB"


def test_a_rate_has_the_unit_of_its_size():
    assert (format_rate(400 * 10**9), format_rate(999)) == ("400 Gb/s", "999 b/s")


@given(st.integers(0, 2**70), st.sampled_from([TIME_UNITS, SIZE_UNITS]))
def test_what_is_shown_is_near_the_value_and_never_an_exponent(value, units):
    show = format_time if units is TIME_UNITS else format_size
    number, name = show(value).split()
    assert "e" not in number
    unit = unit_for(value, units)
    assert name == unit.name
    assert float(number.replace(",", "")) * unit.factor == pytest.approx(value, rel=1e-3)


def test_a_column_has_the_unit_of_its_largest_time():
    assert time_unit([5, 2 * 10**9, 10**6]).name == "ms"
    assert time_unit([]).name == "ps"


def test_one_of_a_thing_is_not_several():
    assert counted(1, "rank") == "1 rank"
    assert counted(0, "rank") == "0 ranks"
    assert (counted(1024, "rank"), counted(65_536, "rank")) == ("1024 ranks", "65,536 ranks")
    assert counted(2, "switch", "switches") == "2 switches"
