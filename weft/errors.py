"""What can go wrong, by exit code of the `weft` command."""

from __future__ import annotations


class WeftError(Exception):
    """Base of all errors that the command reports without a traceback."""

    exit_code = 1


class CheckFailedError(WeftError):
    """A run finished, but its result is not what it must be."""

    exit_code = 1


class DeadlockError(CheckFailedError):
    """A lossless fabric in which packets wait for each other for ever; `cycle` names the full buffers, hop by hop."""

    def __init__(self, problem: str, cycle: str) -> None:
        super().__init__(problem)
        self.cycle = cycle


class BadInputError(WeftError):
    """A scenario, P4 program, JSON or option value that cannot be used."""

    exit_code = 3


class EnvironmentLacksError(WeftError):
    """Something the machine must offer is missing: root, a program, a kernel feature."""

    exit_code = 4
