"""The message being built, its ids, and what every part of it needs."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

from weft.compiler import ast
from weft.compiler.diagnostics import Diagnostics
from weft.compiler.ir import LoweredProgram
from weft.compiler.lower.control_plane import ControlPlane
from weft.compiler.lower.values import ActionValue
from weft.compiler.p4info.annotations import add_annotations, add_documentation
from weft.compiler.p4info.ids import IdAllocator, Prefix
from weft.compiler.p4info.types import TypeSpecs, type_name
from weft.compiler.types import (
    Type,
)

if TYPE_CHECKING:
    from finsy.proto import p4i as p4info_pb2


_PACKAGE = f"{__package__}.finsy_p4_config_v1"
"""By what name finsy's folder of p4info_pb2 and p4types_pb2, which imports its neighbour relatively, is a package."""


def _import_messages() -> Any:
    finsy = find_spec("finsy")
    if finsy is None or not finsy.submodule_search_locations:
        raise ModuleNotFoundError("the P4 compiler needs finsy for P4Info's messages", name="finsy")
    spec = ModuleSpec(_PACKAGE, None, is_package=True)
    spec.submodule_search_locations = [f"{folder}/proto/p4/config/v1" for folder in finsy.submodule_search_locations]
    sys.modules[_PACKAGE] = module_from_spec(spec)
    return importlib.import_module(f"{_PACKAGE}.p4info_pb2")


if not TYPE_CHECKING:
    p4info_pb2 = _import_messages()


MATCH_TYPES: dict[str, Any] = {"exact": 2, "lpm": 3, "ternary": 4, "range": 5, "optional": 6}
EXTERN_PREFIXES = {
    "counter": Prefix.COUNTER,
    "direct_counter": Prefix.DIRECT_COUNTER,
    "meter": Prefix.METER,
    "direct_meter": Prefix.DIRECT_METER,
    "register": Prefix.REGISTER,
    "action_profile": Prefix.ACTION_PROFILE,
    "action_selector": Prefix.ACTION_PROFILE,
}


def is_hidden(annotations: ast.Annotations) -> bool:
    """Whether @hidden keeps an object from the control plane."""
    return any(annotation.name == "hidden" for annotation in annotations)


class InfoContext:
    """Given to every function that adds to the message: the message, its ids, and what lowering found."""

    def __init__(self, program: LoweredProgram, control_plane: ControlPlane, diagnostics: Diagnostics) -> None:
        self.program = program
        self.control_plane = control_plane
        self.diagnostics = diagnostics
        self.ids = IdAllocator()
        self.info = p4info_pb2.P4Info()
        self.types = TypeSpecs(self.info.type_info, program.errors)
        self.tables = [table for pipeline in program.pipelines for table in pipeline.tables if not table.hidden]
        self.actions = self._collect_actions()
        self.controller_headers = [
            declaration
            for declaration in control_plane.tree.declarations
            if isinstance(declaration, ast.StructDeclaration)
            and declaration.kind == "header"
            and declaration.annotation("controller_header") is not None
        ]

    def _collect_actions(self) -> dict[str, tuple[ast.ActionDeclaration, Any]]:
        actions: dict[str, tuple[ast.ActionDeclaration, Any]] = {}
        for table in self.tables:
            for action in table.actions:
                declaration, frame = self.control_plane.action_sources[id(action)]
                known, _ = actions.setdefault(action.name, (declaration, frame))
                if known is not declaration:
                    self.diagnostics.error(
                        f"two actions have the control-plane name '{action.name}'", declaration.span
                    ).note("the other one", known.span)
        called: list[ActionValue] = self.control_plane.called_actions
        for value in called:
            actions.setdefault(value.frame.name_of(value.declaration), (value.declaration, value.frame))
        return {name: entry for name, entry in actions.items() if not is_hidden(entry[0].annotations)}

    def preamble(self, message: Any, prefix: Prefix, name: str, annotations: ast.Annotations) -> None:
        """Fill the id, names, annotations and documentation of an object."""
        preamble = message.preamble
        preamble.id = self.ids.id(prefix, name)
        preamble.name = name
        preamble.alias = self.ids.alias(name)
        add_annotations(preamble, annotations)
        add_documentation(preamble, annotations)

    def name_type(self, message: Any, type_: Type) -> None:
        """Name the type of a key, parameter or field, if it is a `type`."""
        self.info.type_info.SetInParent()
        self.types.note(type_)
        name = type_name(type_)
        if name is not None:
            message.type_name.name = name
