"""Where `weft switch` logs to, and the levels that simple_switch_grpc has."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path

TRACE = 5
"""Below DEBUG: every primitive that a packet's actions run."""

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
    """Targets and level. Without a target, only what is worth knowing goes to stderr."""

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


def set_up(options: LogOptions) -> None:
    """Log as asked for. OSError if the file cannot be written."""
    logging.addLevelName(TRACE, "TRACE")
    handlers: list[logging.Handler] = []
    if options.console:
        handlers.append(logging.StreamHandler(sys.stdout))
    if options.file is not None:
        handlers.append(
            RotatingFileHandler(
                options.file,
                maxBytes=options.max_file_bytes,
                backupCount=options.max_files,
                encoding="utf-8",
            )
        )
    level = options.level if options.asked_for else max(options.level, logging.INFO)
    logging.basicConfig(
        level=level,
        handlers=handlers or [logging.StreamHandler(sys.stderr)],
        format=_FORMAT,
        datefmt=_TIME_FORMAT,
        force=True,
    )
