"""Parsing of expressions (precedences of the specification, section 8)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.budgets import WIDTH_BITS, exceeded
from weft.compiler.parser.base import SyntaxRefused
from weft.compiler.parser.types import TypeParser
from weft.compiler.source import Span, Token

_LEVELS: dict[str, int] = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "|": 5, "^": 6, "&": 7,
    "<<": 8, ">>": 8, "++": 9, "+": 9, "-": 9, "|+|": 9, "|-|": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_POSTFIXES = frozenset([".", "[", "("])


class ExpressionParser(TypeParser):
    """Expressions, calls, initialisers and key sets."""

    def parse_expression(self) -> ast.Expression:
        """An expression, `?:` included."""
        if self._expressions == 0:
            self.links = 0
        self.descend()
        self._expressions += 1
        try:
            return self._ternaries()
        finally:
            self._expressions -= 1
            self.nesting -= 1

    _expressions = 0
    """How many expressions are open."""

    def _ternaries(self) -> ast.Expression:
        """`a ? b : c ? d : e`, which associates to the right."""
        opened: list[tuple[Token, ast.Expression, ast.Expression]] = []
        while True:
            first = self.token
            last = self._binary(1)
            if self.kind != "?":
                break
            self.advance()
            self.link()
            yes = self.parse_expression()
            self.expect(":", "in '?:'")
            opened.append((first, last, yes))
        for first, condition, yes in reversed(opened):
            last = ast.Ternary(self.span(first), condition, yes, last)
        return last

    def parse_width(self) -> ast.Expression:
        """The width of a bit type; `>` closes it."""
        if self.kind == "integer" and self.peek().kind == ">":
            return self._integer()
        if self.kind == "(":
            return self._unary()
        return self._binary(_LEVELS["+"])

    def _binary(self, minimum: int) -> ast.Expression:
        first = self.token
        left = self._unary()
        while True:
            operator = self.kind
            if operator == ">" and self._adjacent_closing():
                operator = ">>"
            level = _LEVELS.get(operator, 0)
            if level < minimum:
                return left
            self.advance()
            if operator == ">>":
                self.advance()
            self.link()
            right = self._binary(level + 1)
            left = ast.Binary(self.span(first), operator, left, right)

    def _adjacent_closing(self) -> bool:
        following = self.peek()
        return (
            following.kind == ">"
            and following.source is self.token.source
            and following.offset == self.token.offset + 1
        )

    def _unary(self) -> ast.Expression:
        first = self.token
        kind = self.kind
        if kind in ("!", "~", "-", "+"):
            self.advance()
            operand = self._operand()
            return ast.Unary(self.span(first), kind, operand)
        if kind == "(" and self._at_cast():
            return self._cast()
        return self._postfix(self._primary())

    def _operand(self) -> ast.Expression:
        """What stands behind a prefix operator or a cast."""
        self.descend()
        try:
            return self._unary()
        finally:
            self.nesting -= 1

    # ---------------------------------------------------------------------------------- casts

    def _at_cast(self) -> bool:
        following = self.peek()
        if following.kind in ("bit", "int", "varbit", "bool", "error", "string", "tuple"):
            # error.NoError in parentheses is no cast.
            return not (following.kind == "error" and self.peek(2).kind == ".")
        if following.kind == ".":
            following = self.peek(2)
            offset = 3
        else:
            offset = 2
        if following.kind != "id":
            return False
        if following.text == "list" and self.peek(offset).kind == "<":
            return True
        if not self.is_type_name(following.text):
            return False
        after = self.peek(offset).kind
        return after in (")", "<", "[")

    def _cast(self) -> ast.Expression:
        first = self.expect("(")
        target = self.parse_type()
        self.expect(")", "after the type of the cast")
        if self.kind == "{":
            operand = self._braces()
            if isinstance(operand, ast.StructExpression):
                operand.target = target
                operand.span = self.span(first)
                return operand
        else:
            operand = self._operand()
        return ast.Cast(self.span(first), target, operand)

    # ---------------------------------------------------------------------------------- primaries

    def _integer(self) -> ast.IntegerLiteral:
        token = self.expect("integer")
        span = Span(token, token)
        digits = len(token.text)
        if digits > WIDTH_BITS:
            exceeded(
                self.diagnostics, f"an integer of {digits} digits has more than {WIDTH_BITS} bits", token
            )
        try:
            number, width, signed = ast.parse_integer(token.text)
        except ValueError:
            self.diagnostics.error(f"'{token.text}' is not an integer", token)
            raise SyntaxRefused from None
        if number.bit_length() > WIDTH_BITS or (width is not None and width > WIDTH_BITS):
            exceeded(self.diagnostics, f"an integer has at most {WIDTH_BITS} bits", token)
        return ast.IntegerLiteral(span, number, width, signed)

    def _primary(self) -> ast.Expression:
        token = self.token
        kind = self.kind
        if kind == "id":
            if self.is_type_name(token.text) or (token.text == "list" and self.peek().kind == "<"):
                return self._type_expression()
            self.advance()
            return ast.Name(Span(token, token), token.text)
        if kind == "integer":
            return self._integer()
        if kind == "(":
            self.advance()
            inner = self.parse_expression()
            self.expect(")")
            return inner
        if kind == "true" or kind == "false":
            self.advance()
            return ast.BooleanLiteral(Span(token, token), kind == "true")
        if kind == "text":
            self.advance()
            text = ast.unquote(token.text)
            while self.kind == "text":
                text += ast.unquote(self.advance().text)
            return ast.StringLiteral(self.span(token), text)
        if kind == "{":
            return self._braces()
        if kind == "this":
            self.advance()
            return ast.This(Span(token, token))
        if kind == ".":
            if self.at_type():
                return self._type_expression()
            self.advance()
            name = self.expect("id")
            return ast.Name(self.span(token), name.text, True)
        if kind in ("default", "_", "..."):
            self.advance()
            return ast.DefaultExpression(Span(token, token))
        if kind in ("error", "bit", "int", "bool", "varbit", "tuple", "match_kind", "string"):
            return self._type_expression()
        raise self.unexpected("an expression")

    def _type_expression(self) -> ast.Expression:
        first = self.token
        node = self.parse_type()
        return ast.TypeExpression(self.span(first), node)

    def _postfix(self, expression: ast.Expression) -> ast.Expression:
        first = expression.span.first
        while True:
            kind = self.kind
            if kind in _POSTFIXES:
                self.link()
            if kind == ".":
                self.advance()
                name = self.token
                if name.kind != "id" and not name.text.isidentifier():
                    raise self.unexpected("a member's name", "after '.'")
                self.advance()
                expression = ast.Member(self.span(first), expression, name.text, name)
            elif kind == "[":
                expression = self._subscript(expression)
            elif kind == "(":
                expression = self._call(expression, [])
            elif kind == "<" and self._at_type_arguments(expression):
                arguments = self.parse_type_arguments()
                expression = self._call(expression, arguments)
            else:
                return expression

    def _subscript(self, base: ast.Expression) -> ast.Expression:
        self.expect("[")
        index = self.parse_expression()
        if self.accept(":"):
            low = self.parse_expression()
            self.expect("]")
            return ast.Slice(self.span(base.span.first), base, index, low)
        if self.accept("+:"):
            width = self.parse_expression()
            self.expect("]")
            return ast.Slice(self.span(base.span.first), base, index, width, True)
        self.expect("]")
        return ast.Index(self.span(base.span.first), base, index)

    def _at_type_arguments(self, callee: ast.Expression) -> bool:
        """Whether `<` after a name opens type arguments: `f<T>(`, `x.lookahead<bit<8>>()`."""
        if not isinstance(callee, ast.Name | ast.Member):
            return False
        following = self.peek()
        if following.kind == "id":
            if not self.is_type_name(following.text) and following.text != "list":
                return False
        elif following.kind not in (
            "bit",
            "int",
            "varbit",
            "bool",
            "error",
            "tuple",
            "_",
            ".",
            "string",
            "void",
        ):
            return False
        saved = self.index
        depth = 0
        result = False
        for index in range(saved, min(saved + 400, len(self.tokens))):
            kind = self.tokens[index].kind
            if kind == "<":
                depth += 1
            elif kind == ">":
                depth -= 1
                if depth == 0:
                    result = self.tokens[index + 1].kind == "("
                    break
            elif kind in (";", "{", "}", "end", "&&", "||"):
                break
        return result

    def _call(self, callee: ast.Expression, type_arguments: list[ast.TypeNode]) -> ast.Expression:
        arguments = self.parse_arguments()
        return ast.Call(self.span(callee.span.first), callee, type_arguments, arguments)

    def parse_arguments(self) -> list[ast.Argument]:
        """`(` arguments `)`."""
        self.expect("(")
        arguments: list[ast.Argument] = []
        while self.kind != ")":
            first = self.token
            name: str | None = None
            if self.kind == "id" and self.peek().kind == "=":
                name = self.advance().text
                self.advance()
            expression: ast.Expression | None
            if self.kind == "_" and self.peek().kind in (",", ")"):
                self.advance()
                expression = None
            else:
                expression = self.parse_expression()
            arguments.append(ast.Argument(self.span(first), name, expression))
            if not self.accept(","):
                break
        self.expect(")", "after the arguments")
        return arguments

    # ---------------------------------------------------------------------------------- braces

    def _braces(self) -> ast.Expression:
        first = self.expect("{")
        if self.kind == "#":
            self.advance()
            self.expect("}")
            return ast.InvalidHeader(self.span(first))
        if self.kind == "id" and self.peek().kind == "=":
            return self._struct_elements()
        elements: list[ast.Expression] = []
        rest = False
        while self.kind != "}":
            if self.kind == "..." and self.peek().kind == "}":
                self.advance()
                rest = True
                break
            elements.append(self.parse_expression())
            if not self.accept(","):
                break
        self.expect("}", "after the list")
        return ast.ListExpression(self.span(first), elements, rest)

    def _struct_elements(self) -> ast.Expression:
        opening = self.tokens[self.index - 1]
        elements: list[ast.NamedElement] = []
        rest = False
        while self.kind != "}":
            if self.accept("..."):
                rest = True
                break
            name = self.expect("id")
            self.expect("=")
            expression = self.parse_expression()
            elements.append(ast.NamedElement(self.span(name), name.text, expression))
            if not self.accept(","):
                break
        self.expect("}", "after the fields")
        return ast.StructExpression(self.span(opening), elements, None, rest)

    # ---------------------------------------------------------------------------------- key sets

    def parse_keyset(self) -> ast.Expression:
        """A key set of select or entries: a simple one or a parenthesised tuple."""
        first = self.token
        if self.kind == "(" and self._keyset_tuple_ahead():
            self.advance()
            elements = [self.parse_simple_keyset()]
            while self.accept(","):
                if self.kind == ")":
                    break
                elements.append(self.parse_simple_keyset())
            self.expect(")", "after the key set")
            return ast.KeysetTuple(self.span(first), elements)
        return self.parse_simple_keyset()

    def _keyset_tuple_ahead(self) -> bool:
        """`(a, b)`, `(a &&& b)`, `(_)` and the like, and `(x) :` but not `(x) + y`, nor a cast."""
        if self._at_cast():
            return False
        depth = 0
        for index in range(self.index, len(self.tokens)):
            kind = self.tokens[index].kind
            if kind in ("(", "{", "["):
                depth += 1
            elif kind in (")", "}", "]"):
                depth -= 1
                if depth == 0:
                    return self.tokens[index + 1].kind == ":"
            elif kind == "end":
                break
        return False

    def parse_simple_keyset(self) -> ast.Expression:
        """An expression, `a &&& b`, `a .. b`, `default` or `_`."""
        first = self.token
        if self.kind in ("default", "_"):
            self.advance()
            return ast.DefaultExpression(self.span(first))
        left = self.parse_expression()
        if self.kind in ("&&&", ".."):
            operator = self.advance().kind
            right = self.parse_expression()
            return ast.Binary(self.span(first), operator, left, right)
        return left
