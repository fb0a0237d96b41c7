"""Programs that a switch loads for longer than other calls may take, as on a slow machine."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from finsy.proto import p4r
from p4info_fixture import fabric_p4info
from p4runtime_double import P4RuntimeDouble, serve

from tests.refusals import refused
from weft.controller import session
from weft.controller.errors import SwitchUnavailableError
from weft.controller.grpc_targets import open_channel
from weft.controller.pipeline import Pipeline
from weft.controller.session import SwitchSession
from weft.controller.stub import P4RuntimeStub

PIPELINE = Pipeline(fabric_p4info(), b'{"program": "for the double"}')
TIMEOUT_S = 0.01


class Loading:
    """A stub of a switch that has loaded its program after so many other calls."""

    def __init__(self, calls: int) -> None:
        self.calls_left = calls
        self.is_cancelled = False
        self._loaded = asyncio.Event()

    async def Capabilities(self, request: Any, timeout: float) -> p4r.CapabilitiesResponse:
        self.calls_left -= 1
        if self.calls_left == 0:
            self._loaded.set()
        return p4r.CapabilitiesResponse(p4runtime_api_version="1.4.1")

    async def SetForwardingPipelineConfig(self, request: Any, timeout: float) -> Any:
        try:
            await asyncio.wait_for(self._loaded.wait(), timeout)
        except TimeoutError:
            raise grpc.aio.AioRpcError(
                grpc.StatusCode.DEADLINE_EXCEEDED, grpc.aio.Metadata(), grpc.aio.Metadata(), "too late"
            ) from None
        except asyncio.CancelledError:
            self.is_cancelled = True
            raise
        return p4r.SetForwardingPipelineConfigResponse()


def session_with(stub: Any) -> SwitchSession:
    return SwitchSession("p0l0", 1, stub, PIPELINE, TIMEOUT_S)


def test_a_switch_that_answers_meanwhile_has_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_LOADING_PATIENCE", 10**6)

    async def body() -> None:
        loading = Loading(calls=3)
        await session_with(loading).push_pipeline()
        assert loading.calls_left <= 0

    asyncio.run(body())


def test_one_that_never_loads_is_found_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_LOADING_PATIENCE", 3)

    async def body() -> None:
        with refused(SwitchUnavailableError, problem="p0l0"):
            await session_with(Loading(calls=0)).push_pipeline()

    asyncio.run(body())


def test_a_load_that_is_interrupted_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_LOADING_PATIENCE", 10**6)

    async def body() -> None:
        loading = Loading(calls=0)
        pushing = asyncio.create_task(session_with(loading).push_pipeline())
        while loading.calls_left == 0:
            await asyncio.sleep(0)
        pushing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pushing
        assert loading.is_cancelled

    asyncio.run(body())


class Hung(P4RuntimeDouble):
    """A server that takes calls and answers none."""

    async def Capabilities(self, request: Any, context: Any) -> p4r.CapabilitiesResponse:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    async def SetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        return await self.Capabilities(request, context)


def test_a_switch_that_answers_nothing_is_found_after_one_deadline_more() -> None:
    async def body() -> None:
        server, address = await serve(Hung())
        try:
            async with open_channel(address) as channel:
                with refused(SwitchUnavailableError, problem="SetForwardingPipelineConfig: no"):
                    await session_with(P4RuntimeStub(channel)).push_pipeline()
        finally:
            await server.stop(None)

    asyncio.run(body())
