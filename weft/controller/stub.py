"""P4Runtime's stub, with requests that are bytes already where a fabric's are mostly alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from finsy.proto import p4r, p4r_grpc


@dataclass(frozen=True, slots=True)
class SharedRequest:
    """A request's bytes in two parts: its own fields, and those that other requests have as well.

    `bytes` joins them, which a channel within the process need not do.
    """

    own: bytes
    shared: bytes

    def __bytes__(self) -> bytes:
        return self.own + self.shared


class P4RuntimeStub:
    """The calls of the generated stub, but that `Write` and `SetForwardingPipelineConfig` take a request's bytes.

    A fabric's updates and its pipeline are serialised once for all switches; a request is its fields in a row. The
    pipeline's is a `SharedRequest`: a megabyte that a thousand switches get at the same time is one megabyte.
    """

    def __init__(self, channel: Any) -> None:
        generated: Any = p4r_grpc.P4RuntimeStub(channel)
        self.Capabilities = generated.Capabilities
        self.GetForwardingPipelineConfig = generated.GetForwardingPipelineConfig
        self.Read = generated.Read
        self.SetForwardingPipelineConfig = channel.unary_unary(
            "/p4.v1.P4Runtime/SetForwardingPipelineConfig",
            request_serializer=bytes,
            response_deserializer=p4r.SetForwardingPipelineConfigResponse.FromString,
        )
        self.StreamChannel = generated.StreamChannel
        self.Write = channel.unary_unary(
            "/p4.v1.P4Runtime/Write",
            request_serializer=bytes,
            response_deserializer=p4r.WriteResponse.FromString,
        )
