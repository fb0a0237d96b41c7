"""What `weft controller` and the lab that runs say to each other: a line of JSON there, a line of JSON back.

The lab listens on a Unix socket beside P4Runtime's (`weft.clocks.real.operations_server`). A request has `do`:

- `cordon`, `drain`, `restore`, with `kind` and `name` of an element (`weft.controller.elements`), and for `drain` with
  `timeout_s`, seconds of the real clock; answered with what it came to, in words, as `done`;
- `change circuits`, with the `name` of a configuration; refused under the real clock, whose circuits stay;
- `events`: answered with `events` (`ControllerEvent.as_dict`) and `dropped`, how many older ones are not kept;
- `avoided`: answered with `links`, each as its two ends, and `switches`, which routes avoid although they may be up;
- `faulty`: answered with `links` that are lossy or slow and stay in use, because hosts need them: the two `ends` of
  each, its `kind` (`lossy`, `slow`) and, in words, the `detail`.

Instead there may be `error`, and `refused`: whether the operation is possible but not now.
"""

from __future__ import annotations

import json
import socket
from typing import Any

from weft.controller.errors import ControllerError, RequestRefusedError, SettingError
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.lab import Lab, NoLabError
from weft.topologies import Endpoint

MOST_REQUEST_BYTES = 4096
_MOST_ANSWER_BYTES = 16 * 2**20
_PATIENCE_S = 10.0


def request(lab: Lab, patience_s: float = _PATIENCE_S, **message: Any) -> dict[str, Any]:
    """Send a request to the lab that runs, and return its answer.

    Raises:
        NoLabError: there is none, or it does not answer.
        SettingError: what was asked for is not possible.
        RequestRefusedError: it is refused as things stand.

    """
    if not lab.operations:
        raise NoLabError("this needs a running lab: --address is a switch's, not its controller's")
    line = json.dumps(message).encode() + b"\n"
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(patience_s)
            connection.connect(lab.operations)
            connection.sendall(line)
            with connection.makefile("rb") as answers:
                answer = json.loads(answers.readline(_MOST_ANSWER_BYTES))
    except (OSError, ValueError) as error:
        raise NoLabError(f"the lab's controller does not answer at {lab.operations}: {error}") from None
    if "error" in answer:
        raise (RequestRefusedError if answer["refused"] else SettingError)(answer["error"])
    return dict(answer)


def avoided(lab: Lab) -> Failures:
    """Return what the lab's controller avoids besides what is down; nothing if it cannot be asked."""
    try:
        answer = request(lab, do="avoided")
    except ControllerError:
        return NO_FAILURES
    links = [frozenset(Endpoint(node, port) for node, port in ends) for ends in answer["links"]]
    return Failures(frozenset(links), frozenset(answer["switches"]))


def faulty_links(lab: Lab) -> dict[str, list[tuple[str, str]]]:
    """Return which links in use are lossy or slow, by node: the neighbour, and what is wrong; nothing if unknown."""
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
