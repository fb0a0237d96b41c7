"""Where switches' P4Runtime servers are, and channels to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import grpc

from weft.topologies import FabricSpec

MAX_MESSAGE_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class GrpcTarget:
    """Where a switch's P4Runtime server listens, `host:port`, and the switch's device id there."""

    address: str
    device_id: int


class Channel(Protocol):
    """What of `grpc.aio.Channel` P4Runtime's generated stub and the controller use."""

    def unary_unary(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Return a call with one answer."""

    def unary_stream(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Return a call with a stream of answers."""

    def stream_stream(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Return a call with streams both ways."""

    async def close(self) -> None:
        """End it."""


def embedded_targets(fabric: FabricSpec, address: str) -> dict[str, GrpcTarget]:
    """One server with one device id per switch."""
    return {switch.name: GrpcTarget(address, switch.device_id) for switch in fabric.switches}


def open_channel(address: str) -> Channel:
    """Open a channel to a P4Runtime server, for messages as large as pipelines and wildcard reads are."""
    channel: Channel = grpc.aio.insecure_channel(
        address,
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.enable_http_proxy", 0),
        ],
    )
    return channel
