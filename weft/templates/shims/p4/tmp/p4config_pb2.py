"""The message P4DeviceConfig, in which the tutorials' controllers send a program (PI, proto/p4/tmp/p4config.proto).

Written by `weft shims`.
"""

from google.protobuf import descriptor_pool, message_factory

SERIALISED = b""
"""The file's descriptor."""

_pool = descriptor_pool.DescriptorPool()
DESCRIPTOR = _pool.AddSerializedFile(SERIALISED)
_P4_DEVICE_CONFIG = _pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig")
if hasattr(message_factory, "GetMessageClass"):
    P4DeviceConfig = message_factory.GetMessageClass(_P4_DEVICE_CONFIG)
else:  # protobuf before 4.22
    P4DeviceConfig = message_factory.MessageFactory(_pool).GetPrototype(_P4_DEVICE_CONFIG)
