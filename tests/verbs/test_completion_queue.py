"""A provider's completion queue gives its ring the places back, of completions that nobody gets, too."""

from __future__ import annotations

import ctypes

import pytest

from tests.verbs.test_cm_channel import HERE, ROOT, compiled

SIZE = 4
ONE, OTHER = 5, 6


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    options = ("-x", "c++", "-std=c++20", f"-I{ROOT}/engine", f"-I{ROOT}/verbs/provider", f"-I{ROOT}/verbs")
    target = tmp_path_factory.mktemp("completions") / "completion_queue.so"
    source = str(ROOT / "verbs/provider/completions.cpp")
    loaded = ctypes.CDLL(str(compiled(HERE / "completion_queue.cpp", target, *options, source)))
    for name in ("polled", "polled_extended"):
        getattr(loaded, name).restype = ctypes.c_int64
    return loaded


def completed(library: ctypes.CDLL, queue_pair: int, *work_ids: int) -> list[bool]:
    return [bool(library.complete(queue_pair, ctypes.c_uint64(each))) for each in work_ids]


@pytest.mark.parametrize("poll", ["polled", "polled_extended"])
def test_completions_come_in_order_and_leave_room(library: ctypes.CDLL, poll: str) -> None:
    library.make_queue(SIZE)
    for first in range(0, 12, 3):
        assert completed(library, ONE, *range(first, first + 3)) == [True] * 3
        assert [getattr(library, poll)() for _ in range(4)] == [first, first + 1, first + 2, -1]


@pytest.mark.parametrize("poll", ["polled", "polled_extended"])
def test_polling_in_vain_gives_room_that_forgotten_completions_had(library: ctypes.CDLL, poll: str) -> None:
    """Some stand behind one that is somebody's, so that they are passed by a poll that finds nothing more."""
    library.make_queue(SIZE)
    assert completed(library, OTHER, 1) == [True]
    assert completed(library, ONE, 2, 3, 4, 5) == [True] * 3 + [False]
    library.forget_queue_pair(ONE)
    assert [getattr(library, poll)(), getattr(library, poll)()] == [1, -1]
    assert completed(library, OTHER, 6, 7, 8, 9) == [True] * 4
    assert getattr(library, poll)() == 6


def test_a_queue_that_nobody_polls_gets_room_from_a_queue_pair_that_goes(library: ctypes.CDLL) -> None:
    library.make_queue(SIZE)
    assert completed(library, ONE, 1, 2, 3, 4) == [True] * 4
    library.forget_queue_pair(ONE)
    assert completed(library, OTHER, 5, 6, 7, 8) == [True] * 4
    assert library.polled() == 5
