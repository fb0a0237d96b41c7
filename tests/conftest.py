"""What holds for all tests."""

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # for its helper modules, after all that has those names, too

import parts
import processor_time
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from p4c import p4c  # noqa: F401

# Every run tries the same examples, whatever the machine's load; `--hypothesis-profile default` looks for new ones.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")
# Hypothesis would also try numbers that it finds in the modules of this project that are loaded, which depends on the
# tests that a process has run before. It has no setting for that.
providers._get_local_constants = Constants

# A process of the tests that has used gRPC may fork (a pool of STF cases, say); the children never use it, and gRPC's
# own handlers, which start its threads again in them, abort there. gRPC reads this as it is imported.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# Compiled programs are the tests' own, which `weft clean` in a test may delete. They are kept from one run to the next.
os.environ.setdefault("WEFT_CACHE_DIR", str(Path(__file__).parents[1] / "build" / "test-cache"))
OF_MANY_PROGRAMS = {"compiler", "fuzz", "stf"}
"""Folders of tests whose programs, each compiled once, would drive all others out of the cache."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parts.add_option(parser)
    processor_time.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Restore the signals that background jobs and nohup ignore, as do their children: tests send these signals."""
    parts.register(config)
    processor_time.register(config)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_finish() -> None:
    """Let the collector pass over modules and items, half a million objects that stay: it is a tenth of the time."""
    gc.collect()
    gc.freeze()


# Those of Dask, which has one event loop for all its clients, and keeps it.
KEPT_THREADS = ("IO loop", "Dask-")
ENDING_PATIENCE_S = 60.0


@pytest.fixture(scope="module", autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """A module's tests and fixtures end the threads that they begin; those that are about to end have the time."""
    before = set(threading.enumerate())
    yield
    if not begun_since(before):
        return
    gc.collect()  # pools of threads end with what holds them
    deadline_s = time.monotonic() + ENDING_PATIENCE_S
    for each in begun_since(before):
        each.join(max(0.0, deadline_s - time.monotonic()))
    left = [repr(each) for each in begun_since(before)]
    assert not left, f"threads that this module's tests have begun and not ended: {left}"


@pytest.fixture(scope="module", autouse=True)
def signals_do_what_they_did_before() -> Iterator[None]:
    """A handler that stays would have a later module's signals do nothing."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    after = [signal.getsignal(number) for number in numbers]
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
    assert after == before


@pytest.fixture(scope="module", autouse=True)
def programs_compiled_once_are_not_cached(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if OF_MANY_PROGRAMS & set(request.path.parts):
            patch.setenv("WEFT_CACHE_DIR", "")
        yield


def begun_since(before: set[threading.Thread]) -> list[threading.Thread]:
    """Threads of Python that are there now and were not before."""
    return [each for each in threading.enumerate() if each not in before and not each.name.startswith(KEPT_THREADS)]
