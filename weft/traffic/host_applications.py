"""One run's programs on a host's IP stack."""

from __future__ import annotations

from typing import Literal

from weft.engine.records import RunStatus
from weft.traffic.answers import ApplicationRecords, Memory
from weft.traffic.commands.applications import PrepareApplications
from weft.traffic.commands.runs import Start
from weft.traffic.host import Host
from weft.traffic.programs.base import OpenProgram

State = Literal["waiting", "running", "finished", "failed", "cancelled"]


class HostApplications:
    """The programs of one run; it ends when all have ended, and fails with the first that fails."""

    def __init__(self, host: Host, command: PrepareApplications) -> None:
        self._run = command.run
        self._open: list[OpenProgram] = []
        try:
            for program in command.programs:
                self._open.append(program.open(host))
        except BaseException:
            self.release()
            raise

    def memory(self) -> Memory:
        """Return nothing: peers write nowhere."""
        return {}

    def start(self, command: Start) -> None:
        """Begin at the run's time. Raises RuntimeError the second time."""
        for each in self._open:
            each.application.start(command.start_ps)

    def status(self) -> RunStatus | None:
        """Return the state of all: nodes are what they have to do."""
        statuses = [each.application.status() for each in self._open]
        started = [each["started_ps"] for each in statuses if each["started_ps"] is not None]
        finished = [each["finished_ps"] for each in statuses if each["finished_ps"] is not None]
        state = _state_of({each["state"] for each in statuses})
        return {
            "state": state,
            "started_ps": min(started, default=None),
            "finished_ps": max(finished, default=None) if state == "finished" else None,
            "nodes_done": sum(each["nodes_done"] for each in statuses),
            "node_count": sum(each["node_count"] for each in statuses),
            "error": "; ".join(each["error"] for each in statuses if each["error"]),
        }

    def records(self) -> ApplicationRecords:
        """Return what each program has found."""
        return ApplicationRecords(self._run, tuple(each.record() for each in self._open))

    def release(self) -> None:
        """End those that have not ended, and give back ports."""
        for each in self._open:
            each.application.close()
        self._open.clear()


def _state_of(states: set[State]) -> State:
    """Return the state of programs with these: the worst, and running if some wait and others have begun."""
    if states == {"waiting"}:
        return "waiting"
    if bad := states & {"failed", "cancelled"}:
        return max(bad)
    return "running" if states & {"waiting", "running"} else "finished"
