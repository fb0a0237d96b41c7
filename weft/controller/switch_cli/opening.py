"""Opens a session of commands on a switch by its address."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

from finsy.proto import p4i

from weft.controller.errors import RequestRefusedError
from weft.controller.grpc_targets import GrpcTarget, open_channel
from weft.controller.pipeline import Pipeline
from weft.controller.readers import TIMEOUT_S
from weft.controller.session import SwitchSession
from weft.controller.stub import P4RuntimeStub
from weft.controller.switch_cli.management import over_grpc
from weft.controller.switch_cli.session import CommandSession

SIMPLE_SWITCH_ROLE = "simple_switch_CLI"
"""Role of clients that stand for Thrift's, which has no elections: controllers over P4Runtime stay primary."""


@contextlib.asynccontextmanager
async def opened(
    name: str,
    target: GrpcTarget,
    ports: Sequence[str] = (),
    role: str = "",
    kind: type[SwitchSession] = SwitchSession,
) -> AsyncIterator[CommandSession]:
    """Open a session; with the first command that writes, it becomes primary for `role`, in place of another client.

    With `SIMPLE_SWITCH_ROLE` it does so again whenever another client of the role has written in between.

    P4Info is the switch's. `name` is for messages, `ports` are the switch's ports in words, `kind` is the class of the
    session's P4Runtime client.

    Raises:
        RequestRefusedError: the switch runs no program. SwitchUnavailableError: it does not answer.
    """
    channel = open_channel(target.address)
    try:
        stub = P4RuntimeStub(channel)
        config = await SwitchSession(name, target.device_id, stub, Pipeline(p4i.P4Info()), TIMEOUT_S).read_pipeline()
        if config is None:
            raise RequestRefusedError("no program is loaded", place=name)
        session = kind(name, target.device_id, stub, Pipeline(config.p4info), TIMEOUT_S, role=role)

        async def take_over() -> None:
            await session.negotiate_version()
            await session.become_primary(preempt=True)

        try:
            manage = over_grpc(target.address, name, target.device_id)
            yield CommandSession(session, ports, take_over, manage, retakes=role == SIMPLE_SWITCH_ROLE)
        finally:
            await session.close()
    finally:
        await channel.close()
