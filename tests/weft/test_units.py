import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from weft.quantities.limits import whole_ps
from weft.quantities.units import parse_rate_bps, parse_size_bytes, parse_size_range_bytes, parse_time_ps, shown


@pytest.mark.parametrize(
    ("text", "bps"),
    [("10Gbps", 10**10), ("2.5 Gbps", 2_500_000_000), ("400Gbps", 4 * 10**11), (7, 7), ("1bps", 1)],
)
def test_rates(text, bps):
    assert parse_rate_bps(text) == bps


@pytest.mark.parametrize(("text", "ps"), [("1us", 10**6), ("1µs", 10**6), ("250ns", 250_000), ("0.5ns", 500)])
def test_times(text, ps):
    assert parse_time_ps(text) == ps


@pytest.mark.parametrize(
    ("text", "size"),
    [("4K", 4096), ("512KiB", 524288), ("100KB", 100_000), ("1M", 2**20), (12, 12), ("12", 12)],
)
def test_sizes(text, size):
    assert parse_size_bytes(text) == size


@pytest.mark.parametrize("text", ["10", "10 Gigabit", "-1Gbps", "Gbps", "", "1e9bps", True])
def test_a_bad_rate_is_reported_with_its_value_and_the_units(text):
    with pytest.raises(ValueError, match=r"Gb/s") as caught:
        parse_rate_bps(text)
    assert str(text) in str(caught.value)


def test_a_fraction_of_a_byte_is_refused():
    with pytest.raises(ValueError, match="whole number"):
        parse_size_bytes("0.3B")


def test_size_ranges_are_nccl_tests():
    assert parse_size_range_bytes("4K:64K:4") == [4096, 16384, 65536]
    assert parse_size_range_bytes("1K:5K:2") == [1024, 2048, 4096]
    assert parse_size_range_bytes("1M") == [2**20]
    assert parse_size_range_bytes("4,8K") == [4, 8192]


@pytest.mark.parametrize("text", ["4K:4M", "4K:1K:2", "4K:8K:1", "0:8K:2", "4K:8K:x", "1:2:3:4"])
def test_bad_size_ranges_are_refused(text):
    with pytest.raises(ValueError, match="size"):
        parse_size_range_bytes(text)


@given(st.integers(1, 10**9), st.integers(0, 4), st.integers(2, 10))
def test_a_size_range_starts_at_begin_and_ends_by_end(begin, steps, factor):
    end = begin * factor**steps
    sizes = parse_size_range_bytes(f"{begin}:{end}:{factor}")
    assert sizes[0] == begin
    assert sizes[-1] == end
    assert len(sizes) == steps + 1


@pytest.mark.parametrize("time_ps", [float("nan"), float("inf"), 0.5, 10**400, -(10**400)])
def test_times_of_users_classes_are_whole_and_bounded(time_ps: float) -> None:
    assert whole_ps(1e6) == 1_000_000
    with refused(ValueError, valid="a whole number, up to 1000000000000000"):
        whole_ps(time_ps)


@pytest.mark.parametrize("value", [[], (), {}, (1,), [1, "a"], {"a": [None, (2.5, True)], 3: {}}, [[["é'"]]]])
def test_short_containers_are_shown_as_python_writes_them(value: object) -> None:
    assert shown(value) == str(value)


def test_containers_are_shown_at_a_bounded_cost() -> None:
    deep: list[object] = []
    for _ in range(200_000):
        deep = [deep]
    assert shown(deep) == "[" * 60 + "… (a list of 1)"
    # Written out, it has 10^30 parts.
    shared: tuple[object, ...] = ()
    for _ in range(30):
        shared = (shared,) * 10
    assert shown({"a": shared}).endswith("… (a dict of 1)")
    assert shown(["x" * 10**6]) == f"['{'x' * 58}… (a list of 1)"
    assert shown([10**5000]) == "a list"
