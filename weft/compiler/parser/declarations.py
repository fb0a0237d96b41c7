"""Parsing of declarations (specification, sections 6.8, 7, 9, 10, 13, 14)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.diagnostics import Refused
from weft.compiler.parser.base import TYPE, VALUE
from weft.compiler.parser.blocks import BlockParser
from weft.compiler.source import Span


class DeclarationParser(BlockParser):
    """All declarations; `parse_program` is the entry."""

    def parse_program(self) -> ast.Program:
        """The whole token list."""
        first = self.token
        declarations: list[ast.Declaration] = []
        while self.kind != "end":
            if self.accept(";"):
                continue
            before = self.index
            try:
                declarations.append(self.parse_declaration())
            except Refused:
                del self.scopes[1:]
                self.recover()
                if self.index == before or self.kind == "}":
                    self.advance()
        return ast.Program(Span(first, self.token), declarations, self.structured_annotations)

    def parse_declaration(self) -> ast.Declaration:
        """One top-level declaration."""
        annotations = self.parse_annotations()
        kind = self.kind
        if kind == "const":
            return self.parse_constant(annotations)
        if kind in ("header", "struct", "header_union"):
            return self._struct(annotations)
        if kind == "enum":
            return self._enum(annotations)
        if (kind == "error" or kind == "match_kind") and self.peek().kind == "{":
            return self._members(annotations)
        if kind == "typedef" or (
            kind == "id" and self.token.text == "type" and not self.is_type_name("type")
        ):
            return self._typedef(annotations)
        if kind == "extern":
            return self._extern(annotations)
        if kind == "action":
            return self.parse_action(annotations)
        if kind == "parser":
            return self._parser(annotations)
        if kind == "control":
            return self._control(annotations)
        if kind == "package":
            return self._package(annotations)
        if kind == "table":
            raise self.unexpected("a top-level declaration (tables stand inside controls)")
        return self._typed_declaration(annotations)

    def _typed_declaration(self, annotations: ast.Annotations) -> ast.Declaration:
        """A function or an instance: both begin with a type."""
        if self.kind not in ("id", ".", "void") and not self.at_type():
            raise self.unexpected("a declaration")
        if self.kind == "id" and not self.is_type_name(self.token.text):
            following, after = self.peek(), self.peek(2)
            if following.kind != "id":
                raise self.unexpected("a declaration")
            if after.kind == "<":
                return self._function(annotations)
        if self._function_ahead():
            return self._function(annotations)
        node = self.parse_type()
        if self.kind == "(":
            return self.parse_instance(annotations, node)
        raise self.unexpected("'(' of an instance or a function's name", "after the type")

    def _function_ahead(self) -> bool:
        index = self.index
        depth = 0
        while self.tokens[index].kind not in ("end", ";", "{"):
            kind = self.tokens[index].kind
            if kind in ("<", "["):
                depth += 1
            elif kind in (">", "]"):
                depth -= 1
            elif depth == 0 and index > self.index:
                if kind == "(":
                    return False
                if kind == "id" and self.tokens[index - 1].kind != ".":
                    return self.tokens[index + 1].kind in ("(", "<")
            index += 1
        return False

    # ---------------------------------------------------------------------------------- types

    def _struct(self, annotations: ast.Annotations) -> ast.StructDeclaration:
        first = self.advance()
        name = self.expect("id", f"for the {first.kind}")
        self.declare(name.text, TYPE)
        fields: list[ast.Field] = []
        with self.scope():
            type_parameters = self.parse_type_parameters()
            self.expect("{", f"of {first.kind} '{name.text}'")
            while self.kind not in ("}", "end"):
                try:
                    fields.append(self._field())
                except Refused:
                    self.skip_to(";", "}")
                    if not self.accept(";") and self.kind != "}":
                        raise
            self.expect("}", f"of {first.kind} '{name.text}'")
        return ast.StructDeclaration(
            Span(first, name), name.text, annotations, first.kind, type_parameters, fields
        )

    def _field(self) -> ast.Field:
        first = self.token
        annotations = self.parse_annotations()
        node = self.parse_type()
        name = self.expect("id", "for the field")
        self.expect(";", "after the field")
        return ast.Field(
            Span(first if not annotations else node.span.first, name), name.text, annotations, node
        )

    def _enum(self, annotations: ast.Annotations) -> ast.EnumDeclaration:
        first = self.advance()
        underlying = self.parse_type() if self.kind != "id" or self.peek().kind != "{" else None
        name = self.expect("id", "for the enum")
        self.declare(name.text, TYPE)
        members = self._member_list(True)
        return ast.EnumDeclaration(Span(first, name), name.text, annotations, underlying, members)

    def _members(self, annotations: ast.Annotations) -> ast.MembersDeclaration:
        first = self.advance()
        members = self._member_list(False)
        return ast.MembersDeclaration(self.span(first), first.kind, annotations, members)

    def _member_list(self, values: bool) -> list[ast.EnumMember]:
        self.expect("{")
        members: list[ast.EnumMember] = []
        while self.kind not in ("}", "end"):
            annotations = self.parse_annotations()
            name = self.expect("id")
            expression = self.parse_expression() if values and self.accept("=") else None
            members.append(ast.EnumMember(Span(name, name), name.text, annotations, expression))
            if not self.accept(","):
                break
        self.expect("}")
        return members

    def _typedef(self, annotations: ast.Annotations) -> ast.TypedefDeclaration:
        first = self.advance()
        is_new = first.text == "type"
        inner = self.parse_annotations()
        node: ast.TypeNode | None = None
        derived: ast.Declaration | None = None
        if self.kind in ("header", "struct", "header_union", "enum"):
            derived = self._enum(inner) if self.kind == "enum" else self._struct(inner)
        else:
            node = self.parse_type()
        name = self.expect("id", f"for the {'type' if is_new else 'typedef'}")
        self.declare(name.text, TYPE)
        self.expect(";", "after the typedef")
        return ast.TypedefDeclaration(Span(first, name), name.text, annotations, node, derived, is_new)

    # ---------------------------------------------------------------------------------- functions

    def _extern(self, annotations: ast.Annotations) -> ast.Declaration:
        first = self.advance()
        annotations = annotations + self.parse_annotations()
        if self.kind != "id" or not self._extern_object_ahead():
            function = self._prototype(annotations)
            self.expect(";", "after the extern function")
            return function
        name = self.expect("id")
        self.declare(name.text, TYPE)
        methods: list[ast.FunctionDeclaration] = []
        with self.scope():
            type_parameters = self.parse_type_parameters()
            self.expect("{")
            while self.kind not in ("}", "end"):
                methods.append(self._method(name.text))
            self.expect("}")
        return ast.ExternDeclaration(Span(first, name), name.text, annotations, type_parameters, methods)

    def _extern_object_ahead(self) -> bool:
        if self.peek().kind == "{":
            return True
        if self.peek().kind != "<":
            return False
        index = self.index + 1
        while self.tokens[index].kind not in (">", "end"):
            index += 1
        return self.tokens[index + 1].kind == "{"

    def _method(self, extern: str) -> ast.FunctionDeclaration:
        annotations = self.parse_annotations()
        abstract = self.accept("abstract") is not None
        if self.kind == "id" and self.token.text == extern and self.peek().kind == "(":
            name = self.advance()
            with self.scope():
                parameters = self.parse_parameters()
            self.expect(";", "after the constructor")
            return ast.FunctionDeclaration(Span(name, name), extern, annotations, None, [], parameters, None)
        method = self._prototype(annotations)
        method.is_abstract = abstract
        self.expect(";", "after the method")
        return method

    def _prototype(self, annotations: ast.Annotations) -> ast.FunctionDeclaration:
        """Result, name, type parameters, parameters; the result may be one of the type parameters."""
        with self.scope():
            return self._open_prototype(annotations)

    def _open_prototype(self, annotations: ast.Annotations) -> ast.FunctionDeclaration:
        name_index = self._prototype_name()
        if name_index is not None and self.tokens[name_index + 1].kind == "<":
            index = name_index + 2
            while self.tokens[index].kind in ("id", ","):
                if self.tokens[index].kind == "id":
                    self.declare(self.tokens[index].text, TYPE)
                index += 1
        result = self.parse_type()
        name = self.expect("id", "for the function")
        self.scopes[-2].setdefault(name.text, VALUE)
        type_parameters = self.parse_type_parameters()
        parameters = self.parse_parameters()
        return ast.FunctionDeclaration(
            Span(name, name), name.text, annotations, result, type_parameters, parameters, None
        )

    def _prototype_name(self) -> int | None:
        """Where the name stands, the result being a type's name, maybe with arguments."""
        if self.kind != "id":
            return None
        index, depth = self.index + 1, 0
        while self.tokens[index].kind in ("<", ">", ",", "bit", "int", "integer") or (
            depth and self.tokens[index].kind == "id"
        ):
            depth += {"<": 1, ">": -1}.get(self.tokens[index].kind, 0)
            index += 1
        return index if self.tokens[index].kind == "id" else None

    def _function(self, annotations: ast.Annotations) -> ast.FunctionDeclaration:
        with self.scope():
            function = self._open_prototype(annotations)
            function.body = self.parse_block()
        return function

    def parse_abstract_body(self) -> ast.Declaration:
        """A function or an instance inside an instantiation's block."""
        annotations = self.parse_annotations()
        if self._function_ahead():
            return self._function(annotations)
        return self.parse_instance(annotations, self.parse_type())
