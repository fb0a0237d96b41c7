"""One controller's stream, apart from gRPC: messages in, messages out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from finsy.proto import p4r

from weft.switch.p4runtime.device import Client, Device, stream_error
from weft.switch.p4runtime.errors import NOT_FOUND, PERMISSION_DENIED, RequestError, choices


def find_device(devices: Mapping[int, Device], device_id: int) -> Device:
    """The device with this id. RequestError (NOT_FOUND) if there is none."""
    device = devices.get(device_id)
    if device is None:
        raise RequestError(NOT_FOUND, f"unknown device_id {device_id} ({choices(devices)})")
    return device


class ControllerStream:
    """A controller's stream to one of `devices`, which its first arbitration update names.

    `send` takes what the switch has to say, and must not block.
    """

    def __init__(
        self, devices: Mapping[int, Device], send: Callable[[p4r.StreamMessageResponse], None]
    ) -> None:
        self._devices = devices
        self._client = Client(send)
        self._device: Device | None = None

    def take(self, message: p4r.StreamMessageRequest) -> None:
        """Handle one message. RequestError ends the stream: its sender broke the rules of arbitration."""
        if message.WhichOneof("update") == "arbitration":
            if self._device is None:
                self._device = find_device(self._devices, message.arbitration.device_id)
            self._device.arbitrate(self._client, message.arbitration)
        elif self._device is None:
            error = RequestError(PERMISSION_DENIED, "an arbitration update must come first on a stream")
            self._client.send(stream_error(message, error))
        else:
            self._device.on_stream_message(self._client, message)

    def close(self) -> None:
        """The controller has gone."""
        if self._device is not None:
            self._device.disconnect(self._client)
