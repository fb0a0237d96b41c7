"""Translates errors of lower packages to the command's errors: bad input (exit code 3), failed run (exit code 1)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from weft.controller.errors import (
    ControllerError,
    JobError,
    PipelineError,
    RequestRefusedError,
    SettingError,
    SwitchUnavailableError,
)
from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError, WeftError
from weft.system.signals import SignalExit, interruptions_first
from weft.topologies import TopologyError
from weft.traffic.extensions import ExtensionError, is_user_error, user_report
from weft.traffic.jobs import JobError as TrafficJobError
from weft.traffic.jobs import OperationsError
from weft.traffic.prepared_runs import RunError


@contextlib.contextmanager
def raised_as_weft_errors() -> Iterator[None]:
    """Raise BadInputError for the caller's mistakes and CheckFailedError for failures during the run.

    A program that lacks a table or rejects an entry is the caller's mistake, because it is the caller's P4.
    """
    try:
        with interruptions_first():
            yield
    except (
        TopologyError,
        SettingError,
        JobError,
        OperationsError,
        TrafficJobError,
        PipelineError,
        RequestRefusedError,
        ExtensionError,
    ) as error:
        raise BadInputError(error) from error
    except (ControllerError, RunError) as error:
        raise CheckFailedError(error) from error
    except BaseException as error:
        # A user's class that exits would silently end the command, perhaps with code 0. Interruptions may arrive while
        # its code runs; any other BaseException (CancelledError, its own classes) is its mistake.
        if not is_user_error(error) or isinstance(error, WeftError | SignalExit | KeyboardInterrupt):
            raise
        raise BadInputError(user_report(error, "a class of yours")) from error


@contextlib.contextmanager
def controller_errors_of_commands() -> Iterator[None]:
    """Raise a controller's errors as errors of commands on a running switch, with their exit codes."""
    try:
        yield
    except SettingError as error:
        raise BadInputError(error) from None
    except SwitchUnavailableError as error:
        raise EnvironmentLacksError(error) from None
    except ControllerError as error:
        raise WeftError(error) from None
