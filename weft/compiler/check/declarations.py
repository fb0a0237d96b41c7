"""The type checker: every kind of declaration, and instances."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.annotations import StructuredAnnotations
from weft.compiler.check.blocks import Blocks
from weft.compiler.check.scope import article
from weft.compiler.source import Token
from weft.compiler.types import (
    UNKNOWN,
    ControlType,
    ExternType,
    PackageType,
    ParserType,
)


class Checker(Blocks, StructuredAnnotations):
    """The type checker; `check_program` is the entry. It annotates the tree in place."""

    def check_program(self, program: ast.Program) -> None:
        """All declarations in order."""
        for declaration in program.declarations:
            self.check_declaration(declaration)
        for annotation in program.structured_annotations:
            self.check_structured_annotation(annotation)

    def check_declaration(self, declaration: ast.Declaration) -> None:
        """One declaration of any kind, declared in the current scope."""
        self._texts(declaration)
        at_top = self.context.kind == "top"
        if at_top and declaration.name == "main" and not isinstance(declaration, ast.InstanceDeclaration):
            self.error("'main' is an instance of a package", declaration)
        if isinstance(declaration, ast.ConstantDeclaration):
            self.check_constant(declaration)
        elif isinstance(declaration, ast.StructDeclaration):
            self._struct(declaration)
        elif isinstance(declaration, ast.EnumDeclaration):
            self._enum(declaration)
        elif isinstance(declaration, ast.MembersDeclaration):
            self._members(declaration)
        elif isinstance(declaration, ast.TypedefDeclaration):
            self._typedef(declaration)
        elif isinstance(declaration, ast.FunctionDeclaration):
            self._function(declaration)
        elif isinstance(declaration, ast.ExternDeclaration):
            self._extern(declaration)
        elif isinstance(declaration, ast.ActionDeclaration):
            self._action(declaration)
        elif isinstance(declaration, ast.ControlDeclaration):
            self._control(declaration)
        elif isinstance(declaration, ast.ParserDeclaration):
            self._parser(declaration)
        elif isinstance(declaration, ast.PackageDeclaration):
            self._package(declaration)
        elif isinstance(declaration, ast.InstanceDeclaration):
            self.check_instance(declaration)
        elif isinstance(declaration, ast.VariableDeclaration):
            self.check_variable(declaration)
        elif isinstance(declaration, ast.TableDeclaration):
            self.check_table(declaration)
        elif isinstance(declaration, ast.ValueSetDeclaration):
            self._value_set(declaration)

    def _texts(self, declaration: ast.Declaration) -> None:
        for annotation in declaration.annotations:
            kinds = [token.kind for token in annotation.tokens]
            if annotation.name in ("name", "deprecated") and set(kinds) - {"text", "++"}:
                self.error(f"'@{annotation.name}' takes a string", annotation)
            if annotation.name == "p4runtime_translation" and not _translated(annotation.tokens):
                self.error(
                    "'@p4runtime_translation' takes a string and then a width, bit<width> or string",
                    annotation,
                )

    # --------------------------------------------------------------------------------- instances

    def check_instance(self, declaration: ast.InstanceDeclaration) -> None:
        """An instantiation: its call is checked like any other."""
        callee = ast.TypeExpression(declaration.node.span, declaration.node)
        call = ast.Call(declaration.span, callee, [], declaration.arguments)
        declaration.call = call
        declaration.type = self.infer(call)
        self._instance_place(declaration)
        if declaration.block is not None:
            self.error(
                f"instance '{declaration.name}' gives bodies to abstract methods, which is not supported",
                declaration,
            )
        self.declare(declaration)

    def _instance_place(self, declaration: ast.InstanceDeclaration) -> None:
        type_ = declaration.type
        if self.context.kind in ("function", "action"):
            self.error(f"nothing can be instantiated in {article(self.context.kind)}", declaration)
        elif self.context.kind == "top" and isinstance(type_, ControlType | ParserType):
            self.error(f"'{type_}' is instantiated within a block or as an argument only", declaration)
        elif self.context.kind == "top" and declaration.name == "main":
            if not isinstance(type_, PackageType) and type_ is not UNKNOWN:
                self.error(f"'main' is an instance of a package, not of '{type_}'", declaration)
        elif isinstance(type_, ExternType) and declaration.block is None:
            self._abstract(type_, declaration)

    def _abstract(self, type_: ExternType, where: ast.Node) -> None:
        for method in type_.declaration.methods:
            if method.is_abstract:
                self.error(f"'{type_}' has an abstract method: an instance gives it a body", where).note(
                    "declared here", method.span
                )


def _translated(tokens: list[Token]) -> bool:
    """Whether the tokens of a @p4runtime_translation say what a type is for the control plane."""
    target = [token.kind for token in tokens[2:]]
    forms = (["integer"], ["string"], ["bit", "<", "integer", ">"])
    return len(tokens) > 2 and tokens[0].kind == "text" and tokens[1].kind == "," and target in forms
