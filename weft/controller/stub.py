"""P4Runtime's stub, which takes already encoded requests where a fabric's switches get mostly equal ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from finsy.proto import p4r, p4r_grpc


@dataclass(frozen=True, slots=True)
class SharedRequest:
    """A request's bytes in two parts: fields of this request, and fields shared with other requests.

    `bytes` joins the parts; a channel within the process need not join them.
    """

    own: bytes
    shared: bytes

    def __bytes__(self) -> bytes:
        return self.own + self.shared


class P4RuntimeStub:
    """The generated stub's calls, except that `Read`, `Write` and `SetForwardingPipelineConfig` take encoded requests.

    A fabric's queries, its updates and its pipeline are serialised once for all switches; a request concatenates
    encoded fields. Reads and the pipeline's request are a `SharedRequest`, so that a thousand switches share one copy.
    """

    def __init__(self, channel: Any) -> None:
        generated: Any = p4r_grpc.P4RuntimeStub(channel)
        self.Capabilities = generated.Capabilities
        self.GetForwardingPipelineConfig = generated.GetForwardingPipelineConfig
        self.Read = channel.unary_stream(
            "/p4.v1.P4Runtime/Read",
            request_serializer=bytes,
            response_deserializer=p4r.ReadResponse.FromString,
        )
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
