"""Forked processes leave their parent's garbage alone."""

from __future__ import annotations

import gc
import multiprocessing
import os
from contextlib import AbstractContextManager, nullcontext

import pytest

from weft.cache import garbage_left_to_parent

_FORK = multiprocessing.get_context("fork")


class _Trap:
    """Garbage, as part of a cycle; ends a process that is not the one that made it, when that collects it."""

    def __init__(self) -> None:
        self.me, self.made_by = self, os.getpid()

    def __del__(self) -> None:
        if os.getpid() != self.made_by:
            os._exit(70)


@pytest.mark.parametrize(("forking", "exit_code"), [(garbage_left_to_parent(), 0), (nullcontext(), 70)])
def test_a_forked_process_collects_only_its_own_garbage(forking: AbstractContextManager[None], exit_code: int) -> None:
    enabled = gc.isenabled()
    gc.disable()  # until the child looks
    try:
        _Trap()
        process = _FORK.Process(target=gc.collect)
        with forking:
            process.start()
        process.join()
    finally:
        if enabled:
            gc.enable()
        gc.collect()
    assert process.exitcode == exit_code
