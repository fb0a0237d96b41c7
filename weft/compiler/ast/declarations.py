"""Declarations of types, functions, actions, variables and instances."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weft.compiler.ast.expressions import Argument, Call, Expression
from weft.compiler.ast.nodes import Annotation, Annotations, Node
from weft.compiler.ast.statements import Block
from weft.compiler.ast.types import TypeNode

if TYPE_CHECKING:
    from weft.compiler.types import Type


@dataclass(slots=True, eq=False)
class Declaration(Node):
    """Something with a name."""

    name: str
    annotations: Annotations

    def annotation(self, name: str) -> Annotation | None:
        """The first annotation of that name."""
        for annotation in self.annotations:
            if annotation.name == name:
                return annotation
        return None

    def external_name(self) -> str:
        """The name for the control plane: @name's, or the declared one."""
        annotation = self.annotation("name")
        if annotation is not None:
            strings = annotation.strings()
            if strings:
                return strings[0]
        return self.name


@dataclass(slots=True, eq=False)
class Parameter(Declaration):
    """direction type name = default; `direction` is "", "in", "out" or "inout"."""

    direction: str
    node: TypeNode
    default: Expression | None
    type: Type | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class TypeParameter(Declaration):
    """A type variable."""

    type: Type | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Field(Declaration):
    """A field of a header, struct or union."""

    node: TypeNode
    type: Type | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class StructDeclaration(Declaration):
    """`kind` is "header", "struct" or "header_union"."""

    kind: str
    type_parameters: list[TypeParameter]
    fields: list[Field]


@dataclass(slots=True, eq=False)
class EnumMember(Declaration):
    """A member, with a value in a serializable enum."""

    expression: Expression | None


@dataclass(slots=True, eq=False)
class EnumDeclaration(Declaration):
    """enum, or `enum bit<W>` with `underlying`."""

    underlying: TypeNode | None
    members: list[EnumMember]


@dataclass(slots=True, eq=False)
class MembersDeclaration(Declaration):
    """error {…} or match_kind {…} (`name`)."""

    members: list[EnumMember]


@dataclass(slots=True, eq=False)
class TypedefDeclaration(Declaration):
    """typedef, or `type` when `is_new`."""

    node: TypeNode | None
    derived: Declaration | None
    is_new: bool


@dataclass(slots=True, eq=False)
class FunctionDeclaration(Declaration):
    """A function, an extern function or method (`body` None), or a constructor (`result` None)."""

    result: TypeNode | None
    type_parameters: list[TypeParameter]
    parameters: list[Parameter]
    body: Block | None
    is_abstract: bool = False
    signature: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class ExternDeclaration(Declaration):
    """An extern object type."""

    type_parameters: list[TypeParameter]
    methods: list[FunctionDeclaration]


@dataclass(slots=True, eq=False)
class ActionDeclaration(Declaration):
    """An action."""

    parameters: list[Parameter]
    body: Block


@dataclass(slots=True, eq=False)
class VariableDeclaration(Declaration):
    """type name = initial."""

    node: TypeNode
    initial: Expression | None
    type: Type | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class ConstantDeclaration(Declaration):
    """const type name = initial."""

    node: TypeNode
    initial: Expression
    type: Type | None = field(default=None, init=False)
    value: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class InstanceDeclaration(Declaration):
    """type(arguments) name, maybe with a block of abstract methods' bodies."""

    node: TypeNode
    arguments: list[Argument]
    block: list[Declaration] | None
    type: Type | None = field(default=None, init=False)
    call: Call | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class ValueSetDeclaration(Declaration):
    """value_set<type>(size) name."""

    node: TypeNode
    size: Expression
    type: Type | None = field(default=None, init=False)
