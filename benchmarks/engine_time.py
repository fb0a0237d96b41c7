"""Processor time that a run spends in the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from weft.engine import Partitions


@contextmanager
def engine_time() -> Iterator[list[float]]:
    """Within it, the processor time that the engine's clock takes to run adds up in the list's one item."""
    spent = [0.0]
    whole = {name: getattr(Partitions, name) for name in ("run", "run_for")}

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def run(*arguments: Any) -> Any:
            began = time.process_time()
            try:
                return method(*arguments)
            finally:
                spent[0] += time.process_time() - began

        return run

    for name, method in whole.items():
        setattr(Partitions, name, timed(method))
    try:
        yield spent
    finally:
        for name, method in whole.items():
            setattr(Partitions, name, method)
