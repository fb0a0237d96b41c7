"""Compiles a case's program and runs its script, in this process or a separate one."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeAlias

from weft.cache import garbage_left_to_parent
from weft.switch.backend import BackendError, UnsupportedProgramError
from weft.switch.bmv2json import Bmv2JsonError, load_program
from weft.switch.coverage.model import ProgramCoverage
from weft.switch.stf.cases import Case, Outcome, Verdict, architecture
from weft.switch.stf.errors import ProgramRefusedError, StfError
from weft.switch.stf.parser import parse_file
from weft.switch.stf.script import run_script
from weft.switch.stf.target import SwitchName, Target, make_target

DEFAULT_TIMEOUT_S = 60.0
_FORK = multiprocessing.get_context("fork")

Compile: TypeAlias = Callable[[Path], str]
"""Compiles a P4 source file to BMv2 JSON. Raises ProgramRefusedError with the reasons."""


def run_case(case: Case, switch: SwitchName, compile_program: Compile, *, covered: bool = False) -> Outcome:
    """Run one case in this process; `covered`: with its coverage, on the native switch."""
    kind = architecture(case.program)

    def outcome(verdict: Verdict, *reasons: str) -> Outcome:
        return Outcome(case, kind, verdict, reasons)

    try:
        statements = parse_file(case.script)
        program = load_program(compile_program(case.program))
        target = make_target(switch, program, covered=covered)
    except ProgramRefusedError as error:
        return outcome(Verdict.REFUSED, *error.reasons)
    except (UnsupportedProgramError, StfError) as error:
        return outcome(Verdict.REFUSED, str(error))
    except (Bmv2JsonError, BackendError) as error:
        # The switch must accept the compiler's output.
        return outcome(Verdict.FAIL, f"the compiled program cannot be loaded: {error}")
    failures = run_script(statements, target, program)
    found = outcome(Verdict.FAIL if failures else Verdict.PASS, *failures)
    return replace(found, coverage=tuple(_reached(target))) if covered else found


def _reached(target: Target) -> list[ProgramCoverage]:
    from weft.switch.native import NativeSwitch
    from weft.switch.native.coverage import coverage_of

    assert isinstance(target.backend, NativeSwitch)
    return coverage_of([target.backend])


def run_cases(
    cases: Sequence[Case],
    switch: SwitchName,
    compile_program: Compile,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    *,
    covered: bool = False,
) -> Iterator[Outcome]:
    """Run cases one after the other, each in a separate process.

    So a crash or a hang only fails its own case.
    """
    for case in cases:
        yield _run_isolated(case, switch, compile_program, timeout_s, covered=covered)


def _run_isolated(
    case: Case, switch: SwitchName, compile_program: Compile, timeout_s: float, *, covered: bool
) -> Outcome:
    receiver, sender = _FORK.Pipe(duplex=False)
    arguments = case, switch, compile_program, sender, covered
    process = _FORK.Process(target=_run_and_send, args=arguments, daemon=True)
    with garbage_left_to_parent():
        process.start()
    sender.close()
    try:
        if not receiver.poll(timeout_s):
            process.kill()
            return _failed(case, f"no outcome within {timeout_s:g} s")
        outcome: Outcome = receiver.recv()
        return outcome
    except KeyboardInterrupt:
        process.kill()
        raise
    except EOFError:
        process.join()
        return _failed(case, f"the process that ran it {_ending(process.exitcode)}")
    finally:
        receiver.close()
        process.join()
        process.close()


def _run_and_send(case: Case, switch: SwitchName, compile_program: Compile, sender: Connection, covered: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends this process
    sender.send(run_case(case, switch, compile_program, covered=covered))
    sender.close()


def _failed(case: Case, reason: str) -> Outcome:
    return Outcome(case, architecture(case.program), Verdict.FAIL, (reason,))


def _ending(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"was ended by signal {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"
