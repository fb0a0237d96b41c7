"""Facts about a program that P4Info states and the lowered program itself does not hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.compiler import ast
from weft.compiler.ir import Action
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.values import ActionValue, ExternValue
from weft.compiler.types import Type


@dataclass(slots=True)
class ControlPlane:
    """Declarations behind what was lowered, with the frames of their instances, in the order in which they were met.

    `action_sources` is by the action's identity, everything else by control-plane name. `called_actions` are called in
    apply blocks: the control plane knows them, too.
    """

    tree: ast.Program
    externs: list[ExternValue] = field(default_factory=list)
    table_sources: dict[str, tuple[ast.TableDeclaration, Frame]] = field(default_factory=dict)
    table_actions: dict[str, list[tuple[Action, ast.ActionReference | None]]] = field(default_factory=dict)
    action_sources: dict[int, tuple[ast.ActionDeclaration, Frame]] = field(default_factory=dict)
    called_actions: list[ActionValue] = field(default_factory=list)
    value_set_sources: dict[str, tuple[ast.ValueSetDeclaration, Frame]] = field(default_factory=dict)
    digest_types: dict[str, Type] = field(default_factory=dict)
    extern_functions: set[str] = field(default_factory=set)
