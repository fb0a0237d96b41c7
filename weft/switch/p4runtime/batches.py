"""Batches of updates in the three modes of atomicity (P4Runtime §12.2)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from finsy.proto import p4r

from weft.switch.backend import BackendError
from weft.switch.p4runtime.encoded_messages import decode_update
from weft.switch.p4runtime.errors import ABORTED, UNIMPLEMENTED, RequestError, invalid
from weft.switch.p4runtime.roles import Role, require_access
from weft.switch.p4runtime.session import Session
from weft.switch.p4runtime.undo import Undo, inverse

_LOGGER = logging.getLogger(__name__)
Outcome = list[RequestError | None]
"""The error of every update in a batch, None for success."""


def apply_batch(session: Session, encoded: Sequence[bytes], atomicity: int, role: Role) -> Outcome:
    """Apply a batch of serialised updates by a controller of this role; return the outcome of each.

    INVALID_ARGUMENT for a malformed update in a batch that is applied as a whole, UNIMPLEMENTED for a DATAPLANE_ATOMIC
    batch that cannot be atomic for packets.
    """
    match atomicity:
        case p4r.WriteRequest.CONTINUE_ON_ERROR:
            return _each_by_itself(session, encoded, role)
        case p4r.WriteRequest.ROLLBACK_ON_ERROR:
            return _all_or_none(session, [decode_update(update) for update in encoded], role)
        case p4r.WriteRequest.DATAPLANE_ATOMIC:
            updates = [decode_update(update) for update in encoded]
            _check_atomic(session, updates)
            with session.backend.atomically():
                return _all_or_none(session, updates, role)
    raise invalid(f"atomicity {atomicity} is unknown", valid=p4r.WriteRequest.Atomicity.keys())


def _each_by_itself(session: Session, encoded: Sequence[bytes], role: Role) -> Outcome:
    """Apply updates in order; adjacent plain inserts are applied together."""
    plain = session.plain_inserts if role.full_access else None
    if plain is None:
        return [_attempt(session, update, role) for update in encoded]
    outcome: Outcome = [None] * len(encoded)
    prepared = plain.prepare_all(encoded)
    first = 0
    while first < len(encoded):
        if prepared[first] is None:
            outcome[first] = _attempt(session, encoded[first], role)
            first += 1
            continue
        end = first + 1
        while end < len(encoded) and prepared[end] is not None:
            end += 1
        first += plain.insert(prepared[first:end])
        if first < end:  # refused; the ordinary way says why
            outcome[first] = _attempt(session, encoded[first], role)
            first += 1
    return outcome


def _attempt(session: Session, encoded: bytes, role: Role) -> RequestError | None:
    try:
        update = decode_update(encoded)
        require_access(role, update)
        session.write(update)
    except RequestError as error:
        return error
    return None


def _all_or_none(session: Session, updates: Sequence[p4r.Update], role: Role) -> Outcome:
    undo: list[list[Undo]] = []
    for number, update in enumerate(updates):
        try:
            require_access(role, update)
            restore = inverse(session, update)
            session.write(update)
        except RequestError as error:
            _take_back(undo)
            return _aborted(len(updates), number, error)
        except BaseException:
            _take_back(undo)
            raise
        undo.append(restore)
    return [None] * len(updates)


def _take_back(undo: list[list[Undo]]) -> None:
    for steps in reversed(undo):
        for step in steps:
            try:
                step()
            except (RequestError, BackendError) as error:
                # state read from the switch should never be refused: a bug, but the other steps must continue
                _LOGGER.error("an update of a failed batch could not be taken back: %s", error)


def _aborted(count: int, failed: int, error: RequestError) -> Outcome:
    taken_back = RequestError(ABORTED, f"taken back, because update {failed} of the batch failed")
    not_tried = RequestError(ABORTED, f"not tried, because update {failed} of the batch failed")
    return [*[taken_back] * failed, error, *[not_tried] * (count - failed - 1)]


def _check_atomic(session: Session, updates: Sequence[p4r.Update]) -> None:
    if len(updates) < 2:
        return
    pipelines = frozenset[str]().union(*(session.reach.of(update.entity) for update in updates))
    if len(pipelines) > 1:
        raise RequestError(
            UNIMPLEMENTED,
            "the batch is not atomic for packets that wait between ingress and egress: it changes what both look at",
            valid="batches for one of them",
        )
