"""States of queue pairs, and which attributes each transition needs and takes.

Source: InfiniBand Architecture Specification volume 1, section 11.2.5.2, tables 94 to 100 (`modify QP`).
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from weft.engine import _core


class State(IntEnum):
    """`enum ibv_qp_state`."""

    RESET = 0
    INIT = 1
    RTR = 2
    RTS = 3
    SQD = 4
    SQE = 5
    ERR = 6


class Kind(IntEnum):
    """`enum ibv_qp_type`: those that Weft has; and MRC, which is none of libibverbs'."""

    RC = 2
    UC = 3
    UD = 4
    MRC = _core.VERBS_TYPE_MRC


class Attribute(IntFlag):
    """`enum ibv_qp_attr_mask`."""

    STATE = 1 << 0
    CUR_STATE = 1 << 1
    EN_SQD_ASYNC_NOTIFY = 1 << 2
    ACCESS_FLAGS = 1 << 3
    PKEY_INDEX = 1 << 4
    PORT = 1 << 5
    QKEY = 1 << 6
    AV = 1 << 7
    PATH_MTU = 1 << 8
    TIMEOUT = 1 << 9
    RETRY_CNT = 1 << 10
    RNR_RETRY = 1 << 11
    RQ_PSN = 1 << 12
    MAX_QP_RD_ATOMIC = 1 << 13
    ALT_PATH = 1 << 14
    MIN_RNR_TIMER = 1 << 15
    SQ_PSN = 1 << 16
    MAX_DEST_RD_ATOMIC = 1 << 17
    PATH_MIG_STATE = 1 << 18
    CAP = 1 << 19
    DEST_QPN = 1 << 20
    RATE_LIMIT = 1 << 25


class Access(IntFlag):
    """`enum ibv_access_flags`: what a queue pair lets its peer do."""

    REMOTE_WRITE = 1 << 1
    REMOTE_READ = 1 << 2
    REMOTE_ATOMIC = 1 << 3


_A = Attribute
_NONE = Attribute(0)
_CONNECTED = _A.AV | _A.PATH_MTU | _A.DEST_QPN | _A.RQ_PSN
_SENDING = _A.TIMEOUT | _A.RETRY_CNT | _A.RNR_RETRY | _A.MAX_QP_RD_ATOMIC
_ANY = (State.RESET, State.ERR)


@dataclass(frozen=True)
class _Transition:
    needed: Mapping[Kind, Attribute]
    optional: Mapping[Kind, Attribute]


def _same(attributes: Attribute) -> Mapping[Kind, Attribute]:
    return dict.fromkeys(Kind, attributes)


_INIT = {
    Kind.RC: _A.PKEY_INDEX | _A.PORT | _A.ACCESS_FLAGS,
    Kind.UC: _A.PKEY_INDEX | _A.PORT | _A.ACCESS_FLAGS,
    Kind.UD: _A.PKEY_INDEX | _A.PORT | _A.QKEY,
    Kind.MRC: _A.ACCESS_FLAGS,
}
_LATER = {
    Kind.RC: _A.CUR_STATE | _A.ACCESS_FLAGS | _A.MIN_RNR_TIMER | _A.PATH_MIG_STATE,
    Kind.UC: _A.CUR_STATE | _A.ACCESS_FLAGS | _A.PATH_MIG_STATE,
    Kind.UD: _A.CUR_STATE | _A.QKEY,
    Kind.MRC: _A.CUR_STATE | _A.ACCESS_FLAGS,
}
_TRANSITIONS = {
    (State.RESET, State.INIT): _Transition(_INIT, {**_same(_NONE), Kind.MRC: _A.PKEY_INDEX}),
    (State.INIT, State.INIT): _Transition(_same(_NONE), {**_INIT, Kind.MRC: _A.PKEY_INDEX | _A.ACCESS_FLAGS}),
    (State.INIT, State.RTR): _Transition(
        {
            Kind.RC: _CONNECTED | _A.MAX_DEST_RD_ATOMIC | _A.MIN_RNR_TIMER,
            Kind.UC: _CONNECTED,
            Kind.UD: _NONE,
            Kind.MRC: _CONNECTED,
        },
        {
            Kind.RC: _A.ACCESS_FLAGS | _A.PKEY_INDEX,
            Kind.UC: _A.ACCESS_FLAGS | _A.PKEY_INDEX,
            Kind.UD: _A.PKEY_INDEX | _A.QKEY,
            Kind.MRC: _A.ACCESS_FLAGS | _A.PKEY_INDEX,
        },
    ),
    (State.RTR, State.RTS): _Transition({**_same(_A.SQ_PSN), Kind.RC: _SENDING | _A.SQ_PSN}, _LATER),
    (State.RTS, State.RTS): _Transition(_same(_NONE), _LATER),
    (State.RTS, State.SQD): _Transition(_same(_NONE), _same(_A.EN_SQD_ASYNC_NOTIFY)),
    (State.SQD, State.RTS): _Transition(_same(_NONE), _LATER),
    (State.SQD, State.SQD): _Transition(_same(_NONE), _LATER),
    (State.SQE, State.RTS): _Transition(_same(_NONE), _LATER),
}


def check_transition(kind: Kind, present: State, wanted: State, mask: Attribute) -> None:
    """Raise OSError (EINVAL) for a transition that there is not, or with other attributes than it needs and takes."""
    given = mask & ~(_A.STATE | _A.CUR_STATE)
    if wanted in _ANY:
        transition = _Transition(_same(_NONE), _same(_NONE))
    else:
        found = _TRANSITIONS.get((present, wanted))
        if found is None:
            raise OSError(errno.EINVAL, f"no transition from {present.name} to {wanted.name}")
        transition = found
    needed = transition.needed[kind]
    if missing := needed & ~given:
        raise OSError(errno.EINVAL, f"{present.name} to {wanted.name} needs {missing!r}")
    if excess := given & ~(needed | transition.optional[kind]):
        raise OSError(errno.EINVAL, f"{present.name} to {wanted.name} takes no {excess!r}")
