"""The directory of a sweep: what is kept of a point is what is read back."""

import pytest

from weft.sweeps.plan import Point
from weft.sweeps.store import Outcome, State, SweepStore

POINT = Point("0123456789abcdef", {"seed": 1}, {"name": "run"})


@pytest.fixture
def store(tmp_path):
    with SweepStore(tmp_path).locked():
        yield SweepStore(tmp_path)


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(State.FINISHED),
        Outcome(State.FAILED, "link 'a–b' is \"down\"\nat \\udc80"),
        Outcome(State.NOT_RUN),
    ],
)
def test_an_outcome_is_read_back(store, outcome):
    store.prepare(POINT)
    store.keep(POINT, outcome)
    assert store.outcome(POINT) == outcome


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"state": "finished"',
        '{"error": ""}',
        '{"state": "done", "error": ""}',
        '{"state": "failed", "error": 3}',
        '{"state": "failed", "error": null}',
        b"\xff\xfe",
    ],
)
def test_a_point_whose_outcome_is_damaged_has_not_run(store, text):
    store.prepare(POINT)
    store.keep(POINT, Outcome(State.FINISHED))
    data = text if isinstance(text, bytes) else text.encode()
    (store.directory_of(POINT) / "outcome.json").write_bytes(data)
    assert store.outcome(POINT) == Outcome(State.NOT_RUN)


def test_a_point_without_a_directory_has_not_run(store):
    assert store.outcome(POINT) == Outcome(State.NOT_RUN)
