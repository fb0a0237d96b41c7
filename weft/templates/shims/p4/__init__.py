"""P4Runtime's modules `p4.v1` and `p4.config.v1`, and PI's `p4.tmp`.

Written by `weft shims`. In Weft's Python the P4Runtime modules are finsy's, which Weft uses: two copies of one protobuf
file cannot be loaded. In another Python they are those of the package p4runtime, if it is installed.
"""

import importlib
import importlib.util
import pkgutil
import sys

__path__ = pkgutil.extend_path(__path__, __name__)

_MODULES = (
    "config.v1.p4types_pb2",
    "config.v1.p4info_pb2",
    "v1.p4data_pb2",
    "v1.p4runtime_pb2",
    "v1.p4runtime_pb2_grpc",
)
if importlib.util.find_spec("finsy") is not None:
    for _name in ("config", "config.v1", "v1", *_MODULES):
        sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"finsy.proto.p4.{_name}")
    config, v1 = sys.modules["p4.config"], sys.modules["p4.v1"]
