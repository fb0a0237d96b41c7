"""States of entropy values (EVs) against a model of them, and the order in which packets take them."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engine import EvTable

AFTER = {
    "congestion": {"good": "skip"},
    "failure": {"good": "assumed_bad", "skip": "assumed_bad"},
    "answer": {"assumed_bad": "good"},
    "marked answer": {"assumed_bad": "skip"},
    "deny": {"good": "denied", "skip": "denied", "assumed_bad": "denied"},
    "allow": {"denied": "good"},
}
"""The state after an event, by the state before; others stay."""


def apply(table: EvTable, event: str, ev: int) -> None:
    if event == "congestion":
        table.on_congestion(ev)
    elif event == "failure":
        table.on_failure(ev)
    elif event == "deny":
        table.deny(ev)
    elif event == "allow":
        table.allow(ev)
    else:
        table.on_probe_answer(ev, marked=event == "marked answer")


def states(table: EvTable) -> list[str]:
    return [each["state"] for each in table.evs()]


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, int, int]:
    planes = draw(st.integers(1, 3))
    return planes, planes * draw(st.integers(1, 5)), planes * draw(st.integers(0, 3))


@given(
    shape=shapes(),
    seed=st.integers(0, 1 << 64 - 1),
    events=st.lists(st.tuples(st.sampled_from([*AFTER, "next", "next"]), st.integers(0, 30)), max_size=120),
)
@settings(max_examples=300, deadline=None)
def test_states_change_as_the_model_s(shape: tuple[int, int, int], seed: int, events: list[tuple[str, int]]) -> None:
    planes, active, backups = shape
    table = EvTable(planes, active, backups, seed)
    model = states(table)
    for event, number in events:
        if event == "next":
            _take_next(table, model, number % planes)
            continue
        ev = number % len(model)
        apply(table, event, ev)
        model[ev] = AFTER[event].get(model[ev], model[ev])
        assert states(table) == model
        evs = table.evs()
        for plane in range(planes):
            own = [each for each in evs if each["plane"] == plane]
            usable = [each for each in own if each["state"] in ("good", "skip")]
            assert len([each for each in own if each["active"]]) == min(active // planes, len(usable))
            assert all(each in usable for each in own if each["active"])


def _take_next(table: EvTable, model: list[str], plane: int) -> None:
    """Take an EV, and note in the model which were passed over."""
    before = table.evs()
    ev = table.next(plane)
    after = table.evs()
    own = [number for number, each in enumerate(before) if each["plane"] == plane]
    usable = [number for number in own if before[number]["active"]]
    if ev is None:
        assert all(model[number] == "denied" for number in own)
        return
    assert ev in own
    if not usable:
        assert model[ev] == "assumed_bad"
    else:
        assert after[ev]["state"] == "good"
        assert before[ev]["active"]
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        assert new["turns"] == old["turns"] + (number == ev)
        if old["state"] != new["state"]:
            assert (old["state"], new["state"]) == ("skip", "good")
            assert number in usable
            model[number] = "good"


@given(shape=shapes(), seed=st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_active_evs_take_turns_in_another_order_each_time(shape: tuple[int, int, int], seed: int) -> None:
    planes, active, backups = shape
    table = EvTable(planes, active, backups, seed)
    own = active // planes
    for plane in range(planes):
        rotations = [[table.next(plane) for _ in range(own)] for _ in range(3)]
        assert all(sorted(each) == sorted(rotations[0]) for each in rotations)  # type: ignore[type-var]
    assert Counter(each["plane"] for each in table.evs() if each["active"]) == dict.fromkeys(range(planes), own)


def test_a_skipped_ev_is_passed_over_once() -> None:
    table = EvTable(1, 4, 0, 7)
    first = table.next()
    assert first is not None
    for _ in range(3):
        table.next()
    table.on_congestion(first)
    assert first not in [table.next() for _ in range(3)]
    assert table.evs()[first]["state"] in ("good", "skip")
    assert first in [table.next() for _ in range(5)]
    assert table.counters()["evs_to_skip"] == 1


def test_a_backup_of_the_same_plane_takes_the_place_of_a_bad_ev() -> None:
    table = EvTable(2, 8, 2, 1)
    bad = table.next(1)
    assert bad is not None
    assert table.on_failure(bad)
    assert not table.on_failure(bad)
    evs = table.evs()
    assert not evs[bad]["active"]
    assert Counter(each["plane"] for each in evs if each["active"]) == {0: 4, 1: 4}
    table.on_probe_answer(bad)
    assert table.evs()[bad] == {**evs[bad], "state": "good"}  # a backup now
    assert table.counters()["evs_to_assumed_bad"] == table.counters()["evs_to_good"] == 1


def test_values_are_all_different_and_found_by_their_upper_half() -> None:
    table = EvTable(4, 256, 64, 3)
    values = [each["value"] for each in table.evs()]
    assert len({value >> 16 for value in values}) == len(values) == 320
    for number, value in enumerate(values):
        assert table.find(value) == table.find(value & 0xFFFF0000) == number
    assert table.find(0) is None


@pytest.mark.parametrize(("planes", "active", "backups"), [(0, 1, 0), (4, 3, 0), (1, 8000, 193)])
def test_tables_that_cannot_be_are_refused(planes: int, active: int, backups: int) -> None:
    with pytest.raises(ValueError, match="valid: an EV for each plane, 8192 together"):
        EvTable(planes, active, backups)


def test_evs_and_planes_that_there_are_not_are_refused() -> None:
    table = EvTable(1, 2, 0)
    with pytest.raises(ValueError, match=r"no entropy value 2 .*0 to 1"):
        table.on_failure(2)
    with pytest.raises(ValueError, match=r"no plane 1 .*0 to 0"):
        table.next(1)
