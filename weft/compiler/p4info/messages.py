"""P4Info's protobuf messages, which finsy brings, without finsy itself.

`import finsy.proto` imports all of finsy first, gRPC and asyncio included: a tenth of a second for a compiler that
needs one module of messages. Protobuf keeps one class for each message, so these are finsy's own classes.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from finsy.proto import p4i as p4info_pb2

__all__ = ["p4info_pb2"]

_PACKAGE = f"{__package__}.finsy_p4_config_v1"
"""By what name finsy's folder of p4info_pb2 and p4types_pb2, which imports its neighbour relatively, is a package."""


def _import_messages() -> Any:
    finsy = find_spec("finsy")
    if finsy is None or not finsy.submodule_search_locations:
        raise ModuleNotFoundError("the P4 compiler needs finsy for P4Info's messages", name="finsy")
    spec = ModuleSpec(_PACKAGE, None, is_package=True)
    spec.submodule_search_locations = [
        f"{folder}/proto/p4/config/v1" for folder in finsy.submodule_search_locations
    ]
    sys.modules[_PACKAGE] = module_from_spec(spec)
    return importlib.import_module(f"{_PACKAGE}.p4info_pb2")


if not TYPE_CHECKING:
    p4info_pb2 = _import_messages()
