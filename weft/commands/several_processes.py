"""A command that the processes of mpirun carry out together: one of them speaks, and all end if one fails."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from weft.errors import WeftError

if TYPE_CHECKING:
    from weft.clocks.virtual.mpi import MpiProcesses


def run_by_all(processes: MpiProcesses, command: Callable[[], int]) -> int:
    """Carry a command out in all processes; returns its exit code, or that of the process that failed.

    Process 0 reports errors, also those of others.
    """
    from weft.clocks.virtual.mpi import PeerFailedError, failure_of
    from weft.engine import OtherProcessFailed

    try:
        code = command()
        processes.of(0, "the end", lambda: None)
    except (PeerFailedError, OtherProcessFailed) as error:
        failure = error if isinstance(error, PeerFailedError) else processes.failure_of_another()
        return _leave(processes, str(failure), failure.exit_code)
    except (KeyboardInterrupt, SystemExit):
        # mpirun is ending all processes; those that are gone answer no more.
        click.echo("interrupted", err=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130)
    except BaseException as error:
        problem, code = failure_of(error)
        if not isinstance(error, WeftError | OSError | MemoryError):
            traceback.print_exc()
        processes.fail(error)
        return _leave(processes, problem, code)
    processes.leave(code)
    return code


def _leave(processes: MpiProcesses, problem: str, exit_code: int) -> int:
    if processes.number == 0:
        click.echo(f"weft: {problem}", err=True)
    processes.leave(exit_code)
    return exit_code
