"""Programs of hosts under the real clock: each in its host's process; the runner carries messages between them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping

from weft.clocks.host_programs import HostProgram, ProgramOutcome, ProgramRun, unended_message
from weft.engine import ExtensionError
from weft.errors import CheckFailedError
from weft.rdma.out_of_band import OutOfBandMessage
from weft.rdma.reports import ProgramReport
from weft.system.child_processes import ChildError
from weft.traffic.answers import ProgramLeft
from weft.traffic.commands.programs import EndProgram, FollowProgram, StartProgram
from weft.traffic.control import EndpointGroup

_BETWEEN_TURNS_S = 0.002


class RealPrograms:
    """Runs programs of the hosts of a group, which load them from their files."""

    def __init__(self, group: EndpointGroup, ip_version: int) -> None:
        self._group, self._ip_version = group, ip_version
        self._run = 0

    def run(self, asked: ProgramRun) -> list[ProgramOutcome]:
        """Run programs to their end; errors as of `Lab.run_programs`."""
        self._run += 1
        programs = {asked.ranks[each.host]: each for each in asked.programs}
        names = tuple(each.host for each in asked.programs)
        try:
            self._group.ask_hosts({host: self._start(each, names, asked) for host, each in programs.items()})
            left_running = self._follow(programs, asked)
        except BaseException:
            # The first error counts: hosts that never started a program refuse to end one.
            with contextlib.suppress(ChildError):
                self._end(programs)
            raise
        left = self._end(programs)
        if left_running:
            waiting = {f"{programs[host].host} ({programs[host].name})": left[host].awaited for host in left_running}
            raise CheckFailedError(unended_message(waiting, asked.timeout_s))
        return [_outcome(each, left[host]) for host, each in programs.items()]

    def _start(self, program: HostProgram, names: tuple[str, ...], asked: ProgramRun) -> StartProgram:
        assert program.spec is not None, "checked: under the real clock programs are in files"
        return StartProgram(
            self._run,
            program.spec.reference,
            program.spec.parameters,
            names,
            asked.ranks,
            asked.first_queue_pair,
            asked.telemetry,
            6 if self._ip_version == 6 else 4,
        )

    def _follow(self, programs: Mapping[int, HostProgram], asked: ProgramRun) -> list[int]:
        """Carry messages until all programs have ended or time is up; returns the hosts where programs still run."""
        deadline_s = time.monotonic() + asked.timeout_s
        running = list(programs)
        mail: dict[int, list[OutOfBandMessage]] = {host: [] for host in programs}
        while running:
            commands = {host: FollowProgram(self._run, tuple(mail[host])) for host in running}
            mail = {host: [] for host in programs}
            answers = self._group.ask_hosts(commands)
            for answer in answers.values():
                if answer.raised is not None:
                    raise ExtensionError(answer.raised)
                for message in answer.sent:
                    mail[asked.ranks[message.destination]].append(message)
            running = [host for host in running if not answers[host].has_ended]
            if running and time.monotonic() >= deadline_s:
                break
            time.sleep(_BETWEEN_TURNS_S if running else 0)
        return running

    def _end(self, programs: Mapping[int, HostProgram]) -> dict[int, ProgramLeft]:
        return self._group.ask_hosts({host: EndProgram(self._run) for host in programs})


def _outcome(program: HostProgram, left: ProgramLeft) -> ProgramOutcome:
    report = ProgramReport(
        dict(left.values) | dict(left.texts),
        {name: list(points) for name, points in left.series.items()},
        list(left.operations),
    )
    return ProgramOutcome(program.host, program.name, left.started_ps, left.finished_ps, report)
