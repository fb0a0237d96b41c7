"""A client of one switch that blocks, for controllers without an event loop: it runs simple_switch_CLI's commands."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import re
import shlex
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, ParamSpec, TypeVar

from finsy.proto import p4i, p4r

from weft.controller.blocking import LoopThread
from weft.controller.errors import ControllerError
from weft.controller.grpc_targets import GrpcTarget
from weft.controller.session import SwitchSession
from weft.controller.switch_cli import CommandSession
from weft.controller.switch_cli.opening import opened
from weft.controller.switch_cli.tables import key_and_rest, table_named
from weft.errors import BadInputError, EnvironmentLacksError

_Result = TypeVar("_Result")
_Given = ParamSpec("_Given")
_HANDLE = re.compile(r"handle ([0-9]+)\Z")


class _SharedLoop:
    """An event loop in one thread for all clients of a controller, from the first to the last."""

    def __init__(self) -> None:
        self._loop: LoopThread | None = None
        self._users = 0

    def enter(self) -> LoopThread:
        """Return the loop, which runs until `leave` has been called as often."""
        if self._loop is None:
            self._loop = LoopThread()
            self._loop.start()
        self._users += 1
        return self._loop

    def leave(self) -> None:
        """End the loop with its last user."""
        self._users -= 1
        if self._users == 0 and self._loop is not None:
            self._loop.stop()
            self._loop = None


_SHARED_LOOP = _SharedLoop()


class UIn_Error(Exception):
    """A call's arguments are wrong, as p4-utils says it."""


def prints_errors(method: Callable[_Given, _Result]) -> Callable[_Given, _Result | None]:
    """Have a method print what a switch refuses and return None, as p4-utils' clients do."""

    @functools.wraps(method)
    def printing(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result | None:
        try:
            return method(*args, **kwargs)
        except (ControllerError, UIn_Error) as error:
            print(f"Error: {error}")
            return None

    return printing


class SwitchClient:
    """A session of commands on a switch. Raises EnvironmentLacksError if the switch cannot be reached.

    Attributes:
        session: the session; use it with `wait`.
    """

    def __init__(self, name: str, target: GrpcTarget, role: str, kind: type[SwitchSession] = SwitchSession) -> None:
        self._loop = _SHARED_LOOP.enter()
        self._is_open = True
        self._opened = contextlib.AsyncExitStack()
        try:
            self.session: CommandSession = self.wait(
                self._opened.enter_async_context(opened(name, target, role=role, kind=kind))
            )
        except BaseException as error:
            self.close()
            if isinstance(error, ControllerError):
                raise EnvironmentLacksError(error) from None
            raise
        atexit.register(self.close)

    def close(self) -> None:
        """End the session; it may have ended before."""
        if self._is_open:
            self._is_open = False
            atexit.unregister(self.close)
            self.wait(self._opened.aclose())
            _SHARED_LOOP.leave()

    def wait(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine to its end and return its result."""
        return self._loop.run(coroutine)

    def run(self, *words: object) -> str:
        """Run a command and return what it says. Raises ControllerError."""
        return self.wait(self.session.run(shlex.join(str(word) for word in words)))

    def run_for_handle(self, *words: object) -> int:
        """Run a command that says which handle it gave, and return it."""
        found = _HANDLE.search(self.run(*words))
        assert found is not None, words
        return int(found[1])

    def table(self, name: str) -> p4i.Table:
        """Return a table of the program. Raises CommandError."""
        return table_named(self.session, name)

    def entries_with_key(self, table_name: str, match_keys: Iterable[object]) -> list[p4r.TableEntry]:
        """Return the entries with a key, of any priority; several only if the key needs a priority."""
        table = self.table(table_name)
        words = [str(key) for key in match_keys]
        wanted, _ = key_and_rest(table, [*words, "0"] if has_priority(table) else words)
        matches = _matches(wanted)
        return [each for each in self.wait(self.session.entries(table)) if _matches(each) == matches]

    def reload(self) -> None:
        """Load the running program again, which empties tables, registers, counters, groups and clone sessions."""
        self.wait(self.session.reload())

    def document(self) -> dict[str, Any]:
        """Return the running program in BMv2's JSON."""
        found: dict[str, Any] = json.loads(self.wait(self.session.switch.read_device_config()))
        return found


def has_priority(table: p4i.Table) -> bool:
    """Return whether entries of a table need a priority."""
    from weft.controller.switch_cli.tables import has_priority as of_table

    return of_table(table)


def _matches(entry: p4r.TableEntry) -> list[bytes]:
    ordered = sorted(entry.match, key=lambda each: each.field_id)
    return [each.SerializeToString(deterministic=True) for each in ordered]


def local_target(ip: str, port: int, device_id: int) -> GrpcTarget:
    """Return the address of a switch of this machine. Raises BadInputError for an address of another."""
    if ip not in ("0.0.0.0", "127.0.0.1", "localhost", "::1"):
        raise BadInputError(f"{ip!r}: switches are on this machine only", valid="127.0.0.1")
    return GrpcTarget(f"127.0.0.1:{int(port)}", int(device_id))
