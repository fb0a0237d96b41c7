"""Opens read-only sessions to several switches concurrently, without taking part in an election."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import grpc
from finsy.proto import p4i

from weft.controller.errors import RequestRefusedError
from weft.controller.grpc_targets import open_channel
from weft.controller.lab import Lab
from weft.controller.pipeline import Pipeline
from weft.controller.session import SwitchSession
from weft.controller.stub import P4RuntimeStub

TIMEOUT_S = 10.0
_Result = TypeVar("_Result")


async def for_each_switch(
    lab: Lab,
    names: Sequence[str],
    action: Callable[[SwitchSession], Awaitable[_Result]],
    primary: bool = False,
    need_program: bool = True,
) -> list[_Result]:
    """Run an action on a session to each named switch, concurrently; return the results in the order of the names.

    Args:
        lab: the lab with the switches.
        names: names of the switches.
        action: coroutine function called with each session.
        primary: become primary in place of the running controller during the action, in order to write.
        need_program: ask the switch for its P4Info if the lab does not know it.

    """
    channels: dict[str, grpc.aio.Channel] = {}
    for name in names:
        channels.setdefault(lab.targets[name].address, open_channel(lab.targets[name].address))
    try:
        return list(
            await asyncio.gather(
                *(_run(lab, name, channels[lab.targets[name].address], action, primary, need_program) for name in names)
            )
        )
    finally:
        await asyncio.gather(*(channel.close() for channel in channels.values()))


async def _run(
    lab: Lab,
    name: str,
    channel: grpc.aio.Channel,
    action: Callable[[SwitchSession], Awaitable[_Result]],
    primary: bool,
    need_program: bool,
) -> _Result:
    stub = P4RuntimeStub(channel)
    device_id = lab.targets[name].device_id
    known = lab.pipelines.get(name)
    session = SwitchSession(name, device_id, stub, known or Pipeline(p4i.P4Info()), TIMEOUT_S)
    if known is None and need_program:
        config = await session.read_pipeline()
        if config is None:
            raise RequestRefusedError("no program is loaded", place=name)
        session = SwitchSession(name, device_id, stub, Pipeline(config.p4info), TIMEOUT_S)
    try:
        if primary:
            await session.negotiate_version()
            await session.become_primary(preempt=True)
        return await action(session)
    finally:
        await session.close()
