"""Log targets of `weft switch`, with simple_switch_grpc's levels."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

from weft.command_errors import say_error

TRACE = 5
"""Level below DEBUG: every primitive that a packet's actions run."""

LEVELS = {
    "trace": TRACE,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}
_FORMAT = "[%(asctime)s.%(msecs)03d] [%(levelname)s] %(message)s"
_TIME_FORMAT = "%H:%M:%S"


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Targets and level. Without a target, only important messages go to stderr."""

    console: bool = False
    file: Path | None = None
    level: int = TRACE
    max_file_bytes: int = 5 * 1024 * 1024
    max_files: int = 3

    @property
    def asked_for(self) -> bool:
        """Whether the user wants a log."""
        return self.console or self.file is not None

    @property
    def follows_packets(self) -> bool:
        """Whether the log has lines about every packet."""
        return self.asked_for and self.level <= logging.DEBUG


class _FailureKeeping(logging.Handler):
    """A handler that reports its first failed write and keeps it for `require_complete`, without a traceback."""

    target = "standard output"
    failure: OSError | None = None

    def handleError(self, record: logging.LogRecord) -> None:
        """Called by logging when a record could not be written."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif self.failure is None:
            self.failure = error
            say_error(f"{self.target}: the log is incomplete: {error.strerror}")


class _Console(_FailureKeeping, logging.StreamHandler[TextIO]):
    pass


class _File(_FailureKeeping, RotatingFileHandler):
    pass


def require_complete() -> None:
    """Raise OSError, with the file's name, if the log is incomplete (a full disk)."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _FailureKeeping) and handler.failure is not None:
            raise OSError(handler.failure.errno, f"the log is incomplete: {handler.failure.strerror}", handler.target)


def set_up(options: LogOptions) -> None:
    """Set up the requested logs. Raises OSError if the file cannot be written."""
    logging.addLevelName(TRACE, "TRACE")
    handlers: list[logging.Handler] = []
    if options.console:
        handlers.append(_Console(sys.stdout))
    if options.file is not None:
        file = _File(options.file, maxBytes=options.max_file_bytes, backupCount=options.max_files, encoding="utf-8")
        file.target = str(options.file)
        handlers.append(file)
    level = options.level if options.asked_for else max(options.level, logging.INFO)
    logging.basicConfig(
        level=level,
        handlers=handlers or [logging.StreamHandler(sys.stderr)],
        format=_FORMAT,
        datefmt=_TIME_FORMAT,
        force=True,
    )
