"""Lets `weft controller` have a running lab's controller do something: `weft.controller.operations_protocol`, served.

Whoever may open the socket may: its directory lets in root and the lab's owner only.
"""

from __future__ import annotations

import json
import selectors
import socket
import socketserver
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.clocks.environment import CIRCUITS_STAY
from weft.clocks.ev_control import EvChoice, EvControl, EvRow
from weft.controller.blocking import BlockingFabricController
from weft.controller.elements import ELEMENT_KINDS, named_element
from weft.controller.errors import ControllerError, SettingError
from weft.controller.operations import FaultyLink, Operations
from weft.controller.operations_protocol import MOST_EV_ROWS, MOST_REQUEST_BYTES
from weft.quantities.readable import counted, format_time
from weft.quantities.units import PS_PER_S
from weft.topologies import TopologyError

_EV_REQUESTS = (
    "evs", "deny evs", "allow evs", "probe evs", "ev profiles", "modify ev profile", "assign ev profile", "ev events",
)  # fmt: skip


class OperationsServer:
    """Serves requests, each connection in a thread of its own, until closed."""

    def __init__(
        self,
        path: Path,
        controller: BlockingFabricController,
        operations: Operations,
        dilation: float,
        evs: EvControl,
    ) -> None:
        self.answers = RequestAnswers(controller, operations, dilation, evs)
        self._server = _Server(path, self.answers)
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="operations", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        """Take requests until `_stop` is closed. serve_forever would look for that every half second."""
        with selectors.DefaultSelector() as selector:
            for each in (self._server, self._stopped):
                selector.register(each, selectors.EVENT_READ)
            while all(key.fileobj is not self._stopped for key, _ in selector.select()):
                self._server.handle_request()

    def close(self) -> None:
        """Take no more requests."""
        self._stop.close()
        self._thread.join()
        self._stopped.close()
        self._server.server_close()


class RequestAnswers:
    """The lab controller's actions and answers, by request."""

    def __init__(
        self, controller: BlockingFabricController, operations: Operations, dilation: float, evs: EvControl
    ) -> None:
        self._controller = controller
        self._operations = operations
        self._dilation = dilation
        self._evs = evs

    def to(self, line: bytes) -> dict[str, Any]:
        """Return the answer to a request."""
        try:
            message = json.loads(line)
            if not isinstance(message, dict):
                raise SettingError("a request is an object of JSON")
            return self._do(message)
        except (SettingError, TopologyError, ValueError) as error:
            return {"error": str(error), "refused": False}
        except ControllerError as error:
            return {"error": str(error), "refused": True}

    def _do(self, message: dict[str, Any]) -> dict[str, Any]:
        do = message.get("do")
        if do == "events":
            log = self._operations.log
            return {"events": [event.as_dict() for event in log], "dropped": log.dropped}
        if do == "avoided":
            avoided = self._operations.controller.avoided
            links = [[[end.node, end.port] for end in sorted(ends)] for ends in avoided.links]
            return {"links": sorted(links), "switches": sorted(avoided.switches)}
        if do == "faulty":
            return {"links": [_described(each) for each in self._operations.faulty_in_use]}
        if do == "change circuits":
            raise ControllerError(CIRCUITS_STAY)
        if do in _EV_REQUESTS:
            return self._answer_evs(do, message)
        if do not in ("cordon", "drain", "restore"):
            valid = f"cordon, drain, restore, change circuits, events, avoided, faulty, {', '.join(_EV_REQUESTS)}"
            raise SettingError(f"{do!r} cannot be done", valid=valid)
        return {"done": self._operate(do, message)}

    def _answer_evs(self, do: str, message: dict[str, Any]) -> dict[str, Any]:
        host = str(message.get("host"))
        if do == "ev profiles":
            return {"profiles": self._evs.profiles(host)}
        if do == "ev events":
            return {"events": self._evs.take_events(host)}
        if do in ("modify ev profile", "assign ev profile"):
            return {"done": self._change_profile(do, host, message)}
        choice = EvChoice.of(message)
        if do == "evs":
            return self._listed(self._evs.rows(host, choice), _number(message, "start", 0))
        if do == "probe evs":
            if (count := len(self._evs.rows(host, choice))) > MOST_EV_ROWS:
                raise SettingError(f"{count} EVs to probe", valid=f"at most {MOST_EV_ROWS}: choose a peer or a plane")
            return self._listed(self._evs.probe(host, choice), 0)
        denied = do == "deny evs"
        count = self._evs.set_denied(host, choice, denied=denied)
        return {"done": f"{'denied' if denied else 'allowed'} {counted(count, 'EV')} of {host}"}

    @staticmethod
    def _listed(rows: Sequence[EvRow], start: int) -> dict[str, Any]:
        return {"evs": rows[start : start + MOST_EV_ROWS], "total": len(rows)}

    def _change_profile(self, do: str, host: str, message: dict[str, Any]) -> str:
        number = _number(message, "profile_id")
        if do == "assign ev profile":
            self._evs.assign_profile(host, number)
            return f"queue pairs of {host} that are made from now on have EV profile {number}"
        attributes = message.get("attributes")
        if not isinstance(attributes, dict):
            raise SettingError("attributes of an EV profile are an object of JSON")
        self._evs.modify_profile(host, number, attributes)
        return f"changed EV profile {number} of {host}"

    def _operate(self, do: str, message: dict[str, Any]) -> str:
        kind, name = str(message.get("kind")), str(message.get("name"))
        if kind not in ELEMENT_KINDS:
            raise SettingError(f"{kind!r} is nothing to {do}", valid=ELEMENT_KINDS)
        element = named_element(self._operations.controller.fabric, kind, name)
        if do == "drain":
            timeout_ps = int(float(message.get("timeout_s", 60.0)) * PS_PER_S / self._dilation)
            drained = self._controller.call(self._operations.drain(element, max(1, timeout_ps)))
            if not drained.is_quiet:
                raise ControllerError(
                    f"{element.name} is cordoned, but not drained after {format_time(drained.duration_ps)}: "
                    f"{drained.packets} packets in the last interval"
                )
            return f"{element.name} is drained, after {format_time(drained.duration_ps)}"
        operation = self._operations.cordon if do == "cordon" else self._operations.restore
        written = self._controller.call(operation(element))
        return (
            f"{element.name} is {do}{'' if do.endswith('e') else 'e'}d; {written.entries} entries written to "
            f"{len(written.switches)} switches"
        )


def _number(message: dict[str, Any], name: str, default: int | None = None) -> int:
    value = message.get(name, default)
    if type(value) is not int or value < 0:
        raise SettingError(f"{name} is {value!r}", valid="a whole number, 0 or more")
    return value


def _described(faulty: FaultyLink) -> dict[str, Any]:
    ends = [[end.node, end.port] for end in (faulty.link.a, faulty.link.b)]
    return {"ends": ends, "kind": faulty.kind, "detail": faulty.detail}


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    timeout = 0  # of handle_request, which is called when a request has come

    def __init__(self, path: Path, answers: RequestAnswers) -> None:
        self.answers = answers
        super().__init__(str(path), _Connection)


class _Connection(socketserver.StreamRequestHandler):
    server: _Server
    timeout = 10.0  # for the request, which is one line

    def handle(self) -> None:
        line = self.rfile.readline(MOST_REQUEST_BYTES)
        if line:
            self.wfile.write(json.dumps(self.server.answers.to(line)).encode() + b"\n")
