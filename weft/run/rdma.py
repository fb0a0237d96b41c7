"""Loads hosts' RDMA programs, runs them on a fabric, and makes their result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.clocks.host_programs import HostProgram, ProgramOutcome, ProgramRun
from weft.clocks.lab import Lab
from weft.errors import BadInputError, EnvironmentLacksError
from weft.hints import did_you_mean
from weft.quantities.units import shown
from weft.rdma.enums import WCStatus
from weft.rdma.program import Run, as_run
from weft.rdma.reports import Operation
from weft.results.latencies import latencies_of
from weft.results.rdma import DatagramsResult, OperationResult, ProgramResult, RdmaResult
from weft.run.exchanges import Exchanges
from weft.traffic.class_reference import is_class_reference, short_reference
from weft.traffic.extensions import ClassSpec, load_program

OTHERS = "others"
"""Stands for all hosts not named."""
_FIRST_QUEUE_PAIR = 0x10000
_QUEUE_PAIRS_OF_A_RUN = 0x1000
_QUEUE_PAIR_NUMBERS = 1 << 24


def of_each_host(given: Mapping[str, Any], hosts: Sequence[str]) -> dict[str, Any]:
    """Return each host's value, directly or through "others". Raises BadInputError for unknown hosts."""
    for name in given:
        if name not in (*hosts, OTHERS):
            raise BadInputError(f"no host {shown(name)}; {did_you_mean(name, [*hosts, OTHERS])}")
    return {host: given[host if host in given else OTHERS] for host in hosts if host in given or OTHERS in given}


def host_programs(
    given: Mapping[str, object], parameters: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]
) -> list[HostProgram]:
    """Return the checked programs of hosts.

    Raises:
        BadInputError: no such host, its value is not a program, or parameters without a program.
        ExtensionError: a file's class or function cannot be used.
    """
    programs = []
    own_parameters = of_each_host(parameters, hosts)
    for host, program in of_each_host(given, hosts).items():
        own = dict(own_parameters.get(host, {}))
        if isinstance(program, str) and is_class_reference(program):
            spec = ClassSpec(program, own)
            load_program(spec)
            programs.append(HostProgram(host, spec))
            continue
        run = as_run(program)
        if run is None:
            raise BadInputError(
                f"{host}: {shown(str(program))} is no program",
                valid="path/to/file.py:Name, an 'async def' function, a weft.rdma.Program",
            )
        programs.append(HostProgram(host, None, _with_parameters(run, own)))
    without = [host for host in own_parameters if host not in {each.host for each in programs}]
    if OTHERS not in parameters and without:
        raise BadInputError(f"parameters for {without[0]}, which has no program")
    if not programs:
        raise BadInputError("no host has a program", valid="one or more")
    return programs


def _with_parameters(run: Run, parameters: Mapping[str, Any]) -> Run:
    if not parameters:
        return run

    async def with_parameters(device: Any) -> None:
        await run(device, **parameters)

    with_parameters.__qualname__ = getattr(run, "__qualname__", "program")
    return with_parameters


class RdmaRuns:
    """Runs programs on a lab, one run after the other."""

    def __init__(self, lab: Lab, exchanges: Exchanges) -> None:
        self._lab, self._exchanges = lab, exchanges
        self._runs = 0

    def run(self, programs: Sequence[HostProgram], timeout_s: float) -> RdmaResult:
        """Run programs to the end. Raises as `Lab.run_programs`, and BadInputError or EnvironmentLacksError."""
        options, hosts = self._lab.options, self._lab.fabric.hosts
        if objection := options.transport.kind.objection_to_programs(options.transport):
            raise BadInputError(objection, place="transport.retransmission", valid="go-back-n")
        if options.clock == "real" and (own := [each for each in programs if each.spec is None]):
            raise EnvironmentLacksError(
                "under the real clock a host is a process, which loads programs from files",
                place=own[0].host,
                valid="path/to/file.py:Name",
            )
        before = self._exchanges.begin()
        outcomes = self._lab.run_programs(
            ProgramRun(
                programs,
                timeout_s,
                telemetry=options.int_telemetry,
                first_queue_pair=self._first_queue_pair(),
                ranks={host.name: host.index for host in hosts},
            )
        )
        counted = self._exchanges.end("rdma", _span_ps(outcomes), before)
        is_reliable = options.transport.kind.is_reliable
        datagrams = None if is_reliable else DatagramsResult.of(counted.datagrams)
        return rdma_result(outcomes, counted.retransmissions, datagrams)

    def _first_queue_pair(self) -> int:
        """Return a queue pair number that no packet in flight uses; in virtual time none is in flight."""
        if self._lab.options.clock == "virtual":
            return _FIRST_QUEUE_PAIR
        self._runs += 1
        return (_FIRST_QUEUE_PAIR + self._runs * _QUEUE_PAIRS_OF_A_RUN) % _QUEUE_PAIR_NUMBERS


def _span_ps(outcomes: Sequence[ProgramOutcome]) -> tuple[int, int]:
    return min(each.started_ps for each in outcomes), max(each.finished_ps for each in outcomes)


def rdma_result(
    outcomes: Sequence[ProgramOutcome], retransmissions: int, datagrams: DatagramsResult | None = None
) -> RdmaResult:
    """Return the result of finished programs."""
    began_ps, ended_ps = _span_ps(outcomes)
    return RdmaResult(
        ended_ps - began_ps,
        [_program_result(each) for each in outcomes],
        _operation_results([each for outcome in outcomes for each in outcome.report.operations]),
        retransmissions,
        datagrams,
    )


def _program_result(outcome: ProgramOutcome) -> ProgramResult:
    values = outcome.report.values
    return ProgramResult(
        outcome.host,
        short_reference(outcome.name),
        outcome.finished_ps - outcome.started_ps,
        {name: value for name, value in values.items() if not isinstance(value, str)},
        {name: value for name, value in values.items() if isinstance(value, str)},
        {name: [list(point) for point in points] for name, points in outcome.report.series.items()},
    )


def _operation_results(operations: Sequence[Operation]) -> list[OperationResult]:
    by_opcode: dict[str, list[Operation]] = {}
    for operation in operations:
        by_opcode.setdefault(operation.opcode, []).append(operation)
    success = WCStatus.IBV_WC_SUCCESS.name
    results = []
    for opcode in sorted(by_opcode):
        done = [each for each in by_opcode[opcode] if each.status == success]
        failed = Counter(each.status for each in by_opcode[opcode] if each.status != success)
        timed = [each.completed_ps - each.posted_ps for each in done] if opcode.startswith("IBV_WR") else []
        results.append(
            OperationResult(
                opcode,
                len(done),
                dict(sorted(failed.items())),
                sum(each.bytes for each in done),
                latencies_of(np.array(timed, np.int64)) if timed else None,
            )
        )
    return results
