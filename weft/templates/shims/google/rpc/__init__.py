"""The modules of google.rpc that P4Runtime's clients read errors with.

Written by `weft shims`. In Weft's Python they are finsy's, as in `p4`.
"""

import importlib
import importlib.util
import pkgutil
import sys

__path__ = pkgutil.extend_path(__path__, __name__)

if importlib.util.find_spec("finsy") is not None:
    for _name in ("code_pb2", "status_pb2"):
        sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"finsy.proto.google.rpc.{_name}")
    code_pb2, status_pb2 = sys.modules["google.rpc.code_pb2"], sys.modules["google.rpc.status_pb2"]
