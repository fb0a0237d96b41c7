"""Addresses of switches' P4Runtime servers, and channels to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import grpc

from weft.topologies import FabricSpec

MAX_MESSAGE_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class GrpcTarget:
    """Address of a switch's P4Runtime server, `host:port`, and the switch's device id there."""

    address: str
    device_id: int


class Channel(Protocol):
    """The part of `grpc.aio.Channel` that P4Runtime's generated stub and the controller use."""

    def unary_unary(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Return a call with one answer."""

    def unary_stream(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Return a call with a stream of answers."""

    def stream_stream(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Return a call with streams both ways."""

    async def close(self) -> None:
        """Close the channel."""


def embedded_targets(fabric: FabricSpec, address: str) -> dict[str, GrpcTarget]:
    """Return the targets of one server that has a device id for each switch."""
    return {switch.name: GrpcTarget(address, switch.device_id) for switch in fabric.switches}


def open_channel(address: str) -> Channel:
    """Open a channel to a P4Runtime server that allows messages as large as pipelines and wildcard reads."""
    channel: Channel = grpc.aio.insecure_channel(
        address,
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.enable_http_proxy", 0),
        ],
    )
    return channel
