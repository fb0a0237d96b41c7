"""Plain calls from a user's methods into the controller's event loop.

The methods run in a thread of their own. It goes on only while the loop's thread waits for it, and waits while the loop
does what it asked for: at any moment one of the two runs, so a run in virtual time repeats exactly.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from weft.errors import BadInputError
from weft.system.signals import raise_held

_Result = TypeVar("_Result")
_LOOK_FOR_SIGNALS_S = 0.25


class _Closed(BaseException):
    """Ends a controller's method when its fabric is left."""


class Handoff:
    """One thread, and who of it and the loop has the floor."""

    def __init__(self) -> None:
        self._to_user: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        self._to_loop: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="user's controller", daemon=True)
        self._thread.start()

    async def call(self, method: Callable[[], object]) -> BaseException | None:
        """Run a method to its end, doing meanwhile what it asks for; return what it raises.

        Raised here, a method's CancelledError or SystemExit could not be told from an end of the run.
        """
        self._to_user.put(method)
        while True:
            kind, value = self._next()
            if kind == "ended":
                raised: BaseException | None = value
                return raised
            self._answers.put(await _outcome(value))

    def ask(self, make: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
        """Have the loop run a coroutine, and return its result; to be called from the methods.

        Raises:
            BadInputError: another thread calls, or none of the methods is running.

        """
        if threading.current_thread() is not self._thread:
            raise BadInputError("a controller's switches answer only within its methods")
        self._to_loop.put(("asks", make))
        result: _Result = self._answers.get()()
        return result

    def close(self) -> None:
        """End the thread, and a method that still waits; a call in progress, of another thread, is cancelled."""

        def closed() -> None:
            raise _Closed

        self._to_user.put(None)
        self._answers.put(closed)

    def _next(self) -> tuple[str, Any]:
        while True:
            try:
                return self._to_loop.get(timeout=_LOOK_FOR_SIGNALS_S)
            except queue.Empty:
                if not self._thread.is_alive():
                    raise asyncio.CancelledError from None
                if threading.current_thread() is threading.main_thread():
                    raise_held()

    def _run(self) -> None:
        while (method := self._to_user.get()) is not None:
            try:
                method()
            except _Closed:
                return
            except BaseException as error:
                self._to_loop.put(("ended", error))
            else:
                self._to_loop.put(("ended", None))


async def _outcome(make: Callable[[], Coroutine[Any, Any, Any]]) -> Callable[[], Any]:
    """Run a coroutine; return what returns its result, or raises its error."""
    try:
        result = await make()
    except Exception as caught:
        error = caught

        def fail() -> Any:
            raise error

        return fail
    return lambda: result
