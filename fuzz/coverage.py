"""Which lines of some packages have run: the measure of whether a case does anything new.

A function that has reached no new line for a while is traced in only one call of sixteen, so that tracing
costs little once most lines have been seen.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_CALLS_WITHOUT_NEWS = 64
_SAMPLE = 16


class LineCoverage:
    """Traces all threads that are started after `start`, and the calling one."""

    def __init__(self, path_beginnings: tuple[str, ...]) -> None:
        root = Path(__file__).resolve().parent.parent
        # Lines of Python, traced by Python: atheris' edges would stop at Python, too, and it is one more toolchain.
        self._roots = tuple(str(root / beginning) for beginning in path_beginnings)
        self._seen: dict[CodeType, set[int]] = {}
        self._idle_calls: dict[CodeType, int] = {}
        self.lines = 0

    def start(self) -> None:
        """Begin to trace."""
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)

    def stop(self) -> None:
        """Stop tracing this thread and new ones."""
        sys.settrace(None)
        threading.settrace(None)

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        idle = self._idle_calls.get(code)
        if idle is None:
            followed = code.co_filename.startswith(self._roots)
            self._idle_calls[code] = idle = 0 if followed else -1
            if followed:
                self._seen[code] = set()
        if idle < 0:
            return None
        self._idle_calls[code] = idle + 1
        if idle > _CALLS_WITHOUT_NEWS and idle % _SAMPLE:
            return None
        return self._on_line

    def _on_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        seen = self._seen[frame.f_code]
        if event == "line" and frame.f_lineno not in seen:
            seen.add(frame.f_lineno)
            self.lines += 1
            self._idle_calls[frame.f_code] = 0
        return self._on_line
