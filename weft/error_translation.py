"""Errors of the packages below, raised as the command's own: bad input (exit code 3) or a failed run (exit code 1)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from weft.controller.errors import ControllerError, JobError, PipelineError, RequestRefusedError, SettingError
from weft.errors import BadInputError, CheckFailedError, WeftError
from weft.system.signals import SignalExit, interruptions_first
from weft.topologies import TopologyError
from weft.traffic.extensions import ExtensionError, is_user_error, user_report
from weft.traffic.jobs import JobError as TrafficJobError
from weft.traffic.jobs import OperationsError
from weft.traffic.prepared_runs import RunError


@contextlib.contextmanager
def raised_as_weft_errors() -> Iterator[None]:
    """Raise BadInputError for what the caller asked for wrongly, CheckFailedError for what went wrong on the way.

    A program that lacks a table, or that refuses an entry, is the caller's P4.
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
        raise BadInputError(str(error)) from error
    except (ControllerError, RunError) as error:
        raise CheckFailedError(str(error)) from error
    except BaseException as error:
        # A user's class that exits would end the command without a word, and perhaps with 0. Interruptions may come
        # while its code runs; what else is no Exception (CancelledError, classes of its own) is its mistake.
        if not is_user_error(error) or isinstance(error, WeftError | SignalExit | KeyboardInterrupt):
            raise
        raise BadInputError(user_report(error, "a class of yours")) from error
