"""Protocol between `weft controller` and a running lab: one line of JSON as request, one as answer.

The lab listens on a Unix socket, separate from P4Runtime's (`weft.clocks.real.operations_server`). A request has `do`:

- `cordon`, `drain`, `restore`, with `kind` and `name` of an element (`weft.controller.elements`); `drain` also takes
  `timeout_s`, seconds of the real clock. The answer describes the outcome in `done`.
- `change circuits`, with the `name` of a configuration; rejected under the real clock, where circuits are fixed.
- `events`: the answer has `events` (`ControllerEvent.as_dict`) and `dropped`, the number of older ones not kept.
- `avoided`: the answer has `links`, each as its two ends, and `switches`, which routes avoid although they may be up.
- `faulty`: the answer has `links` that are lossy or slow but stay in use because hosts need them, each with its two
  `ends`, `kind` (`lossy`, `slow`) and a description, `detail`.
- `evs`: the entropy values (EVs) of a `host`'s queue pairs of MRC, all or those to a `peer`, of a `value` or a `plane`,
  or over a `link` or `switch`. The answer has `evs`, a row for each (`weft.clocks.ev_control.EvRow`), from the row
  `start` on (0) at most `MOST_EV_ROWS`, and `total`, how many there are.
- `deny evs`, `allow evs`: choose in the same way; the answer has `done`.
- `probe evs`: sends an EV probe over each; the answer has `evs` with their round trips, None for no answer, and
  `total`. At most `MOST_EV_ROWS` EVs can be probed at once.
- `ev profiles`: the answer has a host's `profiles` (`weft.clocks.ev_control.EvProfileRow`).
- `modify ev profile`, with `profile_id` and the `attributes` to change, and `assign ev profile`: they answer `done`.
- `ev events`: takes a host's oldest EV events; the answer has `events` (`weft.clocks.ev_control.EvEventRow`).

An answer may have `error` instead, with `refused`: whether the operation is possible but not now.
"""

from __future__ import annotations

import json
import socket
from typing import Any

from weft.controller.errors import ControllerError, RequestRefusedError, SettingError
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.lab import Lab, NoLabError
from weft.topologies import Endpoint

MOST_REQUEST_BYTES = 1 << 20
"""The EVs of an explicit EV profile are the longest that a request has."""
_MOST_ANSWER_BYTES = 16 * 2**20
MOST_EV_ROWS = 20_000
"""Entries of some 300 B each, or 700 B with the names of a long path: below the limit of an answer."""
_PATIENCE_S = 10.0


def request(lab: Lab, patience_s: float = _PATIENCE_S, **message: Any) -> dict[str, Any]:
    """Send a request to the running lab and return its answer.

    Raises:
        NoLabError: no lab runs, or it does not answer.
        SettingError: the request is invalid.
        RequestRefusedError: the lab rejects the request at present.

    """
    if not lab.operations:
        raise NoLabError("this needs a running lab: --address is a switch's, not its controller's")
    asked = json.dumps(message).encode() + b"\n"
    if len(asked) > MOST_REQUEST_BYTES:
        raise SettingError(f"the request has {len(asked)} B", valid=f"at most {MOST_REQUEST_BYTES} B")
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(patience_s)
            connection.connect(lab.operations)
            connection.sendall(asked)
            with connection.makefile("rb") as answers:
                line = answers.readline(_MOST_ANSWER_BYTES)
            if len(line) == _MOST_ANSWER_BYTES:
                raise NoLabError(f"the answer is longer than {_MOST_ANSWER_BYTES >> 20} MiB: ask for less")
            answer = json.loads(line)
    except (OSError, ValueError) as error:
        raise NoLabError(f"the lab's controller does not answer at {lab.operations}: {error}") from None
    if "error" in answer:
        raise (RequestRefusedError if answer["refused"] else SettingError)(answer["error"])
    return dict(answer)


def avoided(lab: Lab) -> Failures:
    """Return the elements that the lab's controller avoids although they may be up; empty if it does not answer."""
    try:
        answer = request(lab, do="avoided")
    except ControllerError:
        return NO_FAILURES
    links = [frozenset(Endpoint(node, port) for node, port in ends) for ends in answer["links"]]
    return Failures(frozenset(links), frozenset(answer["switches"]))


def faulty_links(lab: Lab) -> dict[str, list[tuple[str, str]]]:
    """Return the lossy or slow links in use, by node: the neighbour and the problem; empty if unknown."""
    try:
        answer = request(lab, do="faulty")
    except ControllerError:
        return {}
    found: dict[str, list[tuple[str, str]]] = {}
    for link in answer["links"]:
        (a, _), (b, _) = link["ends"]
        what = f"{link['kind']} ({link['detail']})"
        for node, peer in ((a, b), (b, a)):
            found.setdefault(node, []).append((peer, what))
    return found
