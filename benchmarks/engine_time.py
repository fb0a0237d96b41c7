"""Work around the calls of the engine's clock: the processor time of a run that passes in the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any

from weft.engine import Partitions


@contextmanager
def around_clock_calls(around: Callable[[Partitions], AbstractContextManager[None]]) -> Iterator[None]:
    """Within it, each call that lets a clock run is made within what `around` returns for the clock."""
    whole = {name: getattr(Partitions, name) for name in ("run", "run_for")}

    def wrapped(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def run(clock: Partitions, *arguments: Any) -> Any:
            with around(clock):
                return method(clock, *arguments)

        return run

    for name, method in whole.items():
        setattr(Partitions, name, wrapped(method))
    try:
        yield
    finally:
        for name, method in whole.items():
            setattr(Partitions, name, method)


@contextmanager
def engine_time() -> Iterator[list[float]]:
    """Within it, the processor time that the engine's clock takes to run adds up in the list's one item."""
    spent = [0.0]

    @contextmanager
    def timed(_clock: Partitions) -> Iterator[None]:
        began = time.process_time()
        try:
            yield
        finally:
            spent[0] += time.process_time() - began

    with around_clock_calls(timed):
        yield spent
