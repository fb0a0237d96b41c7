"""A command that the processes of mpirun carry out together: one of them speaks, and all end if one fails."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from weft.command_errors import say_error
from weft.errors import WeftError

if TYPE_CHECKING:
    from weft.clocks.virtual.mpi import MpiProcesses


def run_by_all(processes: MpiProcesses, command: Callable[[], int]) -> int:
    """Run a command in all processes; returns its exit code, or the failed process's.

    Process 0 reports every process's errors; if it cannot, the process that ends the run does.
    """
    from weft.clocks.virtual.processes import of_all

    try:
        code = command()
        of_all(processes, "the end", None)  # so none is left behind that may still fail
    except (KeyboardInterrupt, SystemExit):
        # mpirun is ending all processes; those that are gone answer no more.
        say_error("interrupted")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130)
    except BaseException as error:
        return _leave(processes, processes.fail(error))
    processes.leave(code)
    return code


def _leave(processes: MpiProcesses, failure: BaseException) -> int:
    from weft.clocks.virtual.mpi import failure_of
    from weft.engine import OtherProcessFailed

    if isinstance(failure, OtherProcessFailed):
        failure = processes.failure_of_another()
    elif not isinstance(failure, WeftError | OSError | MemoryError):
        traceback.print_exception(failure)
    problem, code = failure_of(failure)
    if processes.number == 0:
        say_error(problem)
    processes.leave(code, problem)
    return code
