"""Carries out calls on a switch over P4Runtime, one after the other for all clients of its Thrift port."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from enum import IntEnum
from typing import Any

from weft.controller.errors import ControllerError, RequestRefusedError
from weft.controller.grpc_targets import GrpcTarget
from weft.controller.switch_cli import CommandSession
from weft.controller.switch_cli.opening import SIMPLE_SWITCH_ROLE, opened
from weft.thrift.bmv2 import TableError
from weft.thrift.calls import CALLS, CallRefusedError, CallUnsupportedError, Target
from weft.thrift.declaration import Method

_LOGGER = logging.getLogger(__name__)
_MOST_LOGGED = 1000
_TABLE_CODES = {
    "ALREADY_EXISTS": TableError.DUPLICATE_ENTRY,
    "RESOURCE_EXHAUSTED": TableError.TABLE_FULL,
    "PERMISSION_DENIED": TableError.IMMUTABLE_TABLE_ENTRIES,
}
"""Codes of what a switch refuses on a table, by P4Runtime's status."""


class Gateway:
    """The session with a switch that all clients of its Thrift port share: BMv2's handles are the switch's.

    The session is opened with the first call. After another program has been loaded, it is opened again for the next
    client, or for the next call that is refused.
    """

    def __init__(self, name: str, target: GrpcTarget, thrift_port: int) -> None:
        self.name = name
        self.thrift_port = thrift_port
        self._target = target
        self._one_at_a_time = asyncio.Lock()
        self._session: CommandSession | None = None
        self._opened = contextlib.AsyncExitStack()

    async def welcome(self) -> None:
        """Prepare for a new client: end a session with a program that the switch no longer runs."""
        async with self._one_at_a_time:
            await self._close_if_outdated()

    async def _close_if_outdated(self) -> bool:
        """End a session with a program that the switch no longer runs. Return whether there was one."""
        if self._session is None:
            return False
        try:
            config = await self._session.switch.read_pipeline()
        except ControllerError:
            config = None
        if config is not None and config.p4info == self._session.info:
            return False
        await self._close()
        return True

    async def carry_out(self, name: str, method: Method, arguments: Mapping[str, Any]) -> Any:
        """Carry out a call and return its result.

        Raises:
            CallRefusedError: with a code of the method's. CallUnsupportedError: for any other reason.
        """
        given = dict(arguments)
        if given.pop("cxt_id", 0) != 0:
            raise CallUnsupportedError("a switch has one context, 0")
        async with self._one_at_a_time:
            try:
                return await self._run_on_current_program(CALLS[name], given)
            except (CallRefusedError, CallUnsupportedError) as error:
                self._log(name, error)
                raise
            except (ControllerError, ValueError) as error:  # ValueError: a number that its P4Runtime field cannot hold
                self._log(name, error)
                raise _as_refusal(method.codes, error) from None

    def _log(self, name: str, error: Exception) -> None:
        # As text: a log's records outlive the call, and an error holds the session that it comes from.
        _LOGGER.info("Thrift port %d: %s is refused: %s", self.thrift_port, name, str(error)[:_MOST_LOGGED])

    async def _run_on_current_program(self, carry: Callable[..., Awaitable[Any]], arguments: Mapping[str, Any]) -> Any:
        """Carry out a call; once more if it was refused because a controller has replaced the switch's program."""
        try:
            return await self._run(carry, arguments)
        except (CallRefusedError, CallUnsupportedError, ControllerError, ValueError):
            if not await self._close_if_outdated():
                raise
        return await self._run(carry, arguments)

    async def _run(self, carry: Callable[..., Awaitable[Any]], arguments: Mapping[str, Any]) -> Any:
        if self._session is None:
            self._session = await self._opened.enter_async_context(
                opened(self.name, self._target, role=SIMPLE_SWITCH_ROLE)
            )
        return await carry(Target(self._session, self.thrift_port), **arguments)

    async def close(self) -> None:
        """End the session."""
        async with self._one_at_a_time:
            await self._close()

    async def _close(self) -> None:
        self._session = None
        await self._opened.aclose()


def _as_refusal(codes: type[IntEnum] | None, error: Exception) -> Exception:
    """Return the refusal of a call for what P4Runtime refuses."""
    if codes is TableError and isinstance(error, RequestRefusedError):
        return CallRefusedError(_TABLE_CODES.get(error.status, TableError.ERROR), error)
    code = None if codes is None else codes.__members__.get("ERROR")
    return CallUnsupportedError(str(error)) if code is None else CallRefusedError(code, error)
