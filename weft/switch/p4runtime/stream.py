"""One controller's stream, independent of gRPC: messages in, messages out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from finsy.proto import p4r

from weft.switch.p4runtime.device import Client, Device, stream_error
from weft.switch.p4runtime.errors import NOT_FOUND, PERMISSION_DENIED, RequestError, choices


def find_device(devices: Mapping[int, Device], device_id: int) -> Device:
    """Return the device with this id. Raises RequestError (NOT_FOUND) if it does not exist."""
    device = devices.get(device_id)
    if device is None:
        raise RequestError(NOT_FOUND, f"unknown device_id {device_id}", valid=choices(devices))
    return device


class ControllerStream:
    """A controller's stream to one of `devices`, which its first arbitration update names.

    `send` gets the switch's messages, and must not block.
    """

    def __init__(self, devices: Mapping[int, Device], send: Callable[[p4r.StreamMessageResponse], None]) -> None:
        self._devices = devices
        self._client = Client(send)
        self._device: Device | None = None

    def take(self, message: p4r.StreamMessageRequest) -> None:
        """Handle one message. A RequestError ends the stream: the controller violated the rules of arbitration."""
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
        """Process the end of the stream."""
        if self._device is not None:
            self._device.disconnect(self._client)
