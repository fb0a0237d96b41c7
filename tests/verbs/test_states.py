"""Transitions of queue pairs: what each needs and takes."""

from __future__ import annotations

import itertools

import pytest

from weft.traffic.verbs.states import Attribute, Kind, State, check_transition

A = Attribute
_WAY = {
    Kind.RC: [
        (State.INIT, A.PKEY_INDEX | A.PORT | A.ACCESS_FLAGS),
        (State.RTR, A.AV | A.PATH_MTU | A.DEST_QPN | A.RQ_PSN | A.MAX_DEST_RD_ATOMIC | A.MIN_RNR_TIMER),
        (State.RTS, A.SQ_PSN | A.TIMEOUT | A.RETRY_CNT | A.RNR_RETRY | A.MAX_QP_RD_ATOMIC),
    ],
    Kind.UC: [
        (State.INIT, A.PKEY_INDEX | A.PORT | A.ACCESS_FLAGS),
        (State.RTR, A.AV | A.PATH_MTU | A.DEST_QPN | A.RQ_PSN),
        (State.RTS, A.SQ_PSN),
    ],
    Kind.UD: [
        (State.INIT, A.PKEY_INDEX | A.PORT | A.QKEY),
        (State.RTR, A(0)),
        (State.RTS, A.SQ_PSN),
    ],
}
_STEPS = [
    (kind, present, wanted, needed)
    for kind, way in _WAY.items()
    for (present, _), (wanted, needed) in itertools.pairwise([(State.RESET, A(0)), *way])
]


@pytest.mark.parametrize(("kind", "present", "wanted", "needed"), _STEPS)
def test_a_step_needs_each_of_its_attributes_and_no_other(
    kind: Kind, present: State, wanted: State, needed: Attribute
) -> None:
    check_transition(kind, present, wanted, needed | A.STATE)
    for each in needed:
        with pytest.raises(OSError, match="needs"):
            check_transition(kind, present, wanted, needed & ~each)
    with pytest.raises(OSError, match="takes no"):
        check_transition(kind, present, wanted, needed | A.CAP)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("present", State)
def test_reset_and_error_are_reached_from_everywhere(kind: Kind, present: State) -> None:
    for wanted in (State.RESET, State.ERR):
        check_transition(kind, present, wanted, A.STATE)


@pytest.mark.parametrize(
    ("present", "wanted"),
    [(State.RESET, State.RTR), (State.RESET, State.RTS), (State.INIT, State.RTS), (State.ERR, State.RTS)],
)
def test_no_state_is_skipped(present: State, wanted: State) -> None:
    with pytest.raises(OSError, match="no transition"):
        check_transition(Kind.RC, present, wanted, A.STATE)
