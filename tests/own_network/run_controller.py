"""Run a controller of the tutorials, whose library imports PI's p4.tmp.p4config_pb2: SCRIPT LIBRARY.

No package has that module: the tutorials' VM builds it with PI (proto/p4/tmp/p4config.proto). Run by `.venv-shell`.
"""

from __future__ import annotations

import runpy
import sys
from types import ModuleType

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def device_config_module() -> ModuleType:
    """Return a module with the message P4DeviceConfig, without its extras."""
    file = descriptor_pb2.FileDescriptorProto(name="p4config.proto", package="p4.tmp", syntax="proto3")
    message = file.message_type.add(name="P4DeviceConfig")
    message.field.add(name="reassign", number=1, type=8, label=1)  # bool
    message.field.add(name="device_data", number=3, type=12, label=1)  # bytes
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig")
    module = ModuleType("p4.tmp.p4config_pb2")
    module.__dict__["P4DeviceConfig"] = message_factory.MessageFactory(pool).GetPrototype(found)
    return module


if __name__ == "__main__":
    script, library = sys.argv[1:]
    module = device_config_module()
    package = ModuleType("p4.tmp")
    package.__dict__["p4config_pb2"] = module
    sys.modules["p4.tmp"], sys.modules[module.__name__] = package, module
    sys.path.append(library)
    sys.argv = [script]
    runpy.run_path(script, run_name="__main__")
