"""Keeps the garbage collector away: from large results being built, from what lives long, from forked processes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Suspend garbage collection inside: the trees being built are never garbage, and traversing them repeatedly
    takes a quarter of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def set_up_kept() -> Iterator[None]:
    """Suspend garbage collection inside, and keep what exists at the end out of later searches.

    Searching a large fabric for garbage takes a tenth of its set-up, and there is none. Call `gc.unfreeze` when the
    fabric is left.
    """
    with collector_paused():
        yield
        gc.freeze()


@contextmanager
def garbage_left_to_parent() -> Iterator[None]:
    """Fork within it: the child never collects what is garbage here.

    It may have threads and sockets, gRPC's for instance, that end with an error in a process that lacks them.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()  # a forked child does not come here: it ends within `Process.start`
