"""Bounds on what a program may demand of the compiler; all of them are in this module.

Each is far above what programs need, and keeps a typing error or a malicious program from taking minutes and
gigabytes. A program that exceeds one is refused at the place where it does, with a message that names the bound.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from weft.compiler.diagnostics import CompileError, Diagnostics
from weft.compiler.source import Span, Token

SOURCE_BYTES = 1 << 24
"""Most bytes in one source file."""
INCLUDED_FILES = 10_000
"""Most files read for one program; a file that is included twice counts twice."""
INCLUDE_DEPTH = 64
MACRO_TOKENS = 500_000
"""Most tokens that the expansion of macros may make."""
MACRO_DEPTH = 1_000
"""How deep the expansion of macros may nest."""
TEXT_CHARACTERS = 1 << 16
"""Most characters in a token that macros make, and in a string that `++` joins."""
NESTING = 1_000
"""How deep parentheses, braces, types or blocks may nest."""
CHAIN_LENGTH = 50_000
"""Most operators, members and calls in one expression, and branches in one `if … else if`."""
WIDTH_BITS = 1 << 16
"""Widest type and constant. simple_switch itself has no bound."""
TYPE_PARTS = 1 << 16
"""Most fields and elements of a type, with all that is within them."""
STATEMENTS = 100_000
"""Most statements after inlining and unrolling."""
INLINED_BLOCKS = 10_000
"""Most instances and calls that are inlined."""
CALL_DEPTH = 200
UNROLLED_ROUNDS = 20_000
"""Most rounds of all unrolled loops together."""
SELECT_ALTERNATIVES = 4_096
"""Most transitions of one select case: crossing many ranges multiplies them."""
ARRAY_CELLS = 1 << 24
"""Most cells of a register, counter or meter; the embedded switch has the same bound."""
CONTROL_PLANE_SIZE = (1 << 31) - 1
"""Largest table, profile, value set, and priority of an entry: the largest number of 32 bits with a sign."""

_PYTHON_FRAMES = 1_000_000
_STACK_BYTES = 1 << 30
_STARTS, _PAUSE_S = 100, 0.02
"""Address space, of which only what is used becomes memory."""
_NUMBER_DIGITS = 25_000
"""Enough digits to read and print WIDTH_BITS in decimal."""

Result = TypeVar("Result")


def exceeded(diagnostics: Diagnostics, message: str, where: Span | Token | None) -> NoReturn:
    """Report that a budget is spent, and end the compilation."""
    diagnostics.error(message, where)
    raise CompileError(diagnostics.messages)


class Spending:
    """Keeps how much of a budget is left; `message` is the error when it is spent."""

    def __init__(self, diagnostics: Diagnostics, limit: int, message: str) -> None:
        self._diagnostics = diagnostics
        self._left = limit
        self._message = message

    def take(self, count: int, where: Span | Token | None) -> None:
        """Spend some of it. Raises CompileError when nothing is left."""
        self._left -= count
        if self._left < 0:
            exceeded(self._diagnostics, self._message, where)


def on_deep_stack(work: Callable[[], Result]) -> Result:
    """The result of `work`, called where recursion may go as deep as the budgets allow.

    The compiler's stages follow the tree, which is as deep as an expression is long. So they run in a thread with a
    large stack; another thread's, such as the main thread's 8 MiB, could overflow.
    """
    if getattr(_here, "is_deep", False):
        return work()
    outcome: list[Result] = []
    failure: list[BaseException] = []

    def run() -> None:
        _here.is_deep = True
        try:
            outcome.append(work())
        except BaseException as error:
            failure.append(error)

    with _raised_limits():
        thread = _start(run)
        thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


_here = threading.local()
_lock = threading.Lock()
_users = 0
_usual_limits = (0, 0)


def _start(run: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=run, name="compiler", daemon=True)
    tries = _STARTS
    while True:
        with _lock:
            # The stages recurse along the tree, and chains of operators may be as long as their budget.
            usual = threading.stack_size(_STACK_BYTES)
            try:
                thread.start()
                return thread
            except RuntimeError:
                # Under a limit of address space there may be room for one stack only. The system unmaps the stack of a
                # thread that has just been joined a moment later.
                tries -= 1
                if tries == 0:
                    raise
            finally:
                threading.stack_size(usual)
        time.sleep(_PAUSE_S)


@contextmanager
def _raised_limits() -> Iterator[None]:
    """Python's limits hold for all threads: they are raised while at least one thread compiles."""
    global _users, _usual_limits
    with _lock:
        if _users == 0:
            _usual_limits = sys.getrecursionlimit(), sys.get_int_max_str_digits()
            sys.setrecursionlimit(max(_PYTHON_FRAMES, _usual_limits[0]))
            if _usual_limits[1]:
                sys.set_int_max_str_digits(max(_NUMBER_DIGITS, _usual_limits[1]))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                sys.setrecursionlimit(_usual_limits[0])
                sys.set_int_max_str_digits(_usual_limits[1])
