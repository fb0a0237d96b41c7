"""Errors of Weft, with the exit code of the `weft` command for each."""

from __future__ import annotations


class WeftError(Exception):
    """Base of all errors that the command reports without a traceback."""

    exit_code = 1


class CheckFailedError(WeftError):
    """A run finished with an incorrect result."""

    exit_code = 1


class DeadlockError(CheckFailedError):
    """Packets of a lossless fabric wait for each other for ever; `cycle` names the full buffers, hop by hop."""

    def __init__(self, problem: str, cycle: str) -> None:
        super().__init__(problem)
        self.cycle = cycle


class BadInputError(WeftError):
    """A scenario, P4 program, JSON or option value is invalid."""

    exit_code = 3


class EnvironmentLacksError(WeftError):
    """The machine lacks a requirement: root, a program, a kernel feature."""

    exit_code = 4
