"""Macro definitions and their expansion on tokens (C11 6.10.3)."""

from __future__ import annotations

from dataclasses import dataclass

from weft.compiler.budgets import MACRO_DEPTH, MACRO_TOKENS, NESTING, TEXT_CHARACTERS, Spending, exceeded
from weft.compiler.diagnostics import Diagnostics
from weft.compiler.lexer import tokenize
from weft.compiler.source import SourceFile, Token


@dataclass(slots=True, eq=False)
class Macro:
    """A #define: `parameters` is None for an object-like macro, `rest` the name of what takes all further arguments."""

    name: Token
    parameters: list[str] | None
    rest: str | None
    body: list[Token]


class MacroExpander:
    """The macros in force; expands them in lists of tokens."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.macros: dict[str, Macro] = {}
        self._budget = Spending(diagnostics, MACRO_TOKENS, f"macros expand to more than {MACRO_TOKENS} tokens")
        self._nesting = 0

    def expand(self, tokens: list[Token]) -> list[Token]:
        """`tokens` with every macro use replaced, rescanned until none is left."""
        macros = self.macros
        output: list[Token] = []
        pending = tokens[::-1]
        while pending:
            token = pending.pop()
            macro = macros.get(token.text)
            if macro is None or token.text in token.hidden or token.kind == "text":
                if token.text == "__LINE__" or token.text == "__FILE__":
                    token = _builtin(token)
                output.append(token)
                continue
            if macro.parameters is None:
                replacement = self._substitute(macro, token, {})
            else:
                if not pending or pending[-1].kind != "(":
                    output.append(token)
                    continue
                arguments = self._arguments(macro, token, pending)
                if arguments is None:
                    continue
                replacement = self._substitute(macro, token, arguments)
            replacement.reverse()
            pending += replacement
        return output

    def _arguments(self, macro: Macro, use: Token, pending: list[Token]) -> dict[str, list[Token]] | None:
        """Takes `( … )` from `pending`; None after an error."""
        pending.pop()
        arguments: list[list[Token]] = [[]]
        depth = 0
        fixed = len(macro.parameters or [])
        while True:
            if not pending:
                self.diagnostics.error(f"the use of macro '{use.text}' lacks its closing ')'", use)
                return None
            token = pending.pop()
            kind = token.kind
            if kind == "(":
                depth += 1
            elif kind == ")":
                if depth == 0:
                    break
                depth -= 1
            elif kind == "," and depth == 0 and not (macro.rest and len(arguments) > fixed):
                arguments.append([])
                continue
            arguments[-1].append(token)
        names = list(macro.parameters or [])
        if macro.rest:
            names.append(macro.rest)
            if len(arguments) == fixed:
                arguments.append([])
        if not names and arguments == [[]]:
            arguments = []
        if len(arguments) != len(names):
            self.diagnostics.error(
                f"macro '{use.text}' takes {len(names)} arguments, {len(arguments)} given", use
            ).note("defined here", macro.name)
            return None
        return dict(zip(names, arguments, strict=True))

    def _substitute(self, macro: Macro, use: Token, arguments: dict[str, list[Token]]) -> list[Token]:
        if len(use.hidden) >= MACRO_DEPTH:
            exceeded(self.diagnostics, f"macros expand to each other more than {MACRO_DEPTH} deep", use)
        hidden = use.hidden | {macro.name.text}
        site = use.expansion or use
        output: list[Token] = []
        expanded: dict[str, list[Token]] = {}
        unions: dict[frozenset[str], frozenset[str]] = {}
        body = macro.body
        index = 0
        while index < len(body):
            token = body[index]
            following = body[index + 1].kind if index + 1 < len(body) else ""
            if token.kind == "#" and following and body[index + 1].text in arguments:
                text = _spelling(arguments[body[index + 1].text])
                quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
                self._check_length(quoted, use)
                output.append(Token("text", quoted, token.source, token.offset, site, hidden))
                index += 2
                continue
            if following == "##" and index + 2 < len(body):
                pieces = list(arguments.get(token.text, [token]))
                while index + 1 < len(body) and body[index + 1].kind == "##" and index + 2 < len(body):
                    right = body[index + 2]
                    if right.text == macro.rest and [piece.kind for piece in pieces[-1:]] == [","]:
                        # GNU: the comma goes where no argument is left for it.
                        pieces = pieces + arguments[right.text] if arguments[right.text] else pieces[:-1]
                    else:
                        pieces = self._paste(pieces, list(arguments.get(right.text, [right])), use)
                    index += 2
                output += [_copy(piece, site, hidden) for piece in pieces]
                index += 1
                continue
            if token.text in arguments and token.kind != "text":
                if token.text not in expanded:
                    expanded[token.text] = self._expanded_argument(arguments[token.text], use)
                for argument in expanded[token.text]:
                    union = unions.get(argument.hidden)
                    if union is None:
                        union = unions[argument.hidden] = argument.hidden | hidden
                    output.append(
                        Token(
                            argument.kind, argument.text, argument.source, argument.offset,
                            argument.expansion, union,
                        )
                    )  # fmt: skip
            else:
                output.append(_copy(token, site, hidden))
            index += 1
        # An empty expansion costs work, too.
        self._budget.take(1 + len(output), use)
        return output

    def _expanded_argument(self, argument: list[Token], use: Token) -> list[Token]:
        self._nesting += 1
        if self._nesting > NESTING:
            exceeded(self.diagnostics, f"uses of macros stand more than {NESTING} deep in each other", use)
        expanded = self.expand(argument)
        self._nesting -= 1
        return expanded

    def _check_length(self, text: str, use: Token) -> None:
        if len(text) > TEXT_CHARACTERS:
            exceeded(
                self.diagnostics,
                f"macro '{use.text}' makes a token of more than {TEXT_CHARACTERS} characters",
                use,
            )

    def _paste(self, left: list[Token], right: list[Token], use: Token) -> list[Token]:
        """Join the last token of `left` and the first of `right`.

        Those that make no single token stay apart: p4c has its preprocessor take P4 for assembler, where this is no
        error. A joined token may be part of one only (`16w`), as in C.
        """
        if not left or not right:
            return left + right
        text = left[-1].text + right[0].text
        self._check_length(text, use)
        pieces = tokenize(SourceFile("<paste>", text))
        if len(pieces) != 1:
            return left + right
        place = left[-1]
        joined = Token(pieces[0].kind, text, place.source, place.offset, place.expansion, place.hidden)
        return [*left[:-1], joined, *right[1:]]


def _spelling(tokens: list[Token]) -> str:
    """Tokens as source text, with a space where the source has any (C11 6.10.3.2)."""
    text = ""
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else token
        adjacent = before.source is token.source and before.end == token.offset
        text += token.text if adjacent or not index else f" {token.text}"
    return text


def _copy(token: Token, site: Token, hidden: frozenset[str]) -> Token:
    return Token(token.kind, token.text, token.source, token.offset, site, hidden)


def _builtin(token: Token) -> Token:
    if token.text == "__LINE__":
        return Token("integer", str(token.line_column()[0]), token.source, token.offset, token.expansion)
    return Token("text", f'"{token.place().source.name}"', token.source, token.offset, token.expansion)
