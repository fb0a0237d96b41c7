"""The C preprocessor's part of P4_16 (specification, section 6.2), on tokens.

Tokens keep the place where they were written, so a message about an expanded macro can show both its use
and its definition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weft.architectures import ARCHITECTURE, ARCHITECTURES
from weft.cache import UnreadableFileError, read_text
from weft.compiler.budgets import INCLUDE_DEPTH, INCLUDED_FILES, SOURCE_BYTES, exceeded
from weft.compiler.diagnostics import Diagnostics, Refused
from weft.compiler.lexer import KEYWORDS, scan, tokenize
from weft.compiler.macros import Macro, MacroExpander
from weft.compiler.preprocess_condition import evaluate_condition
from weft.compiler.source import LINE_SPLICE, SourceFile, Token
from weft.compiler.warnings.kinds import Kind
from weft.paths import P4_MODULES

BUILTIN_INCLUDES = Path(__file__).parent / "include"
WEFT_PREFIX = "weft/"
"""Prefix of files that programs include from `weft.paths.P4_MODULES`, wherever Weft is installed."""
# __TARGET_BMV2__ is what p4c defines for this target.
PREDEFINED = {"__WEFT__": "1", "__P4__": "16", "__TARGET_BMV2__": "1"}

_DIRECTIVE = re.compile(r"#\s*([A-Za-z_]\w*)?")
_CONDITIONALS = frozenset(["if", "ifdef", "ifndef", "elif", "else", "endif"])
_INCLUDE = re.compile(r'\s*(?:"([^"\n]*)"|<([^>\n]*)>)')


class Preprocessor:
    """Turns a file and what it includes into one list of tokens.

    `files` are those that were read, `absent` the places where an included file was sought but not found.
    """

    def __init__(
        self,
        diagnostics: Diagnostics,
        include_paths: Sequence[Path] = (),
        defines: Mapping[str, str | None] | None = None,
    ) -> None:
        self.diagnostics = diagnostics
        self.include_paths = [Path(path) for path in include_paths]
        self.expander = MacroExpander(diagnostics)
        self.files: list[SourceFile] = []
        self.absent: list[Path] = []
        for name, value in {**PREDEFINED, **(defines or {})}.items():
            if value is None:
                continue
            source = SourceFile("<command line>", f"{name} {value}")
            tokens = tokenize(source)
            if not tokens or not re.fullmatch(r"[A-Za-z_]\w*", tokens[0].text):
                self.diagnostics.error(f"cannot define '{name}': not an identifier", None)
                continue
            self.expander.macros[name] = Macro(tokens[0], None, None, tokens[1:])

    def run(self, source: SourceFile) -> list[Token]:
        """All tokens of the program, ending with one of kind "end"."""
        tokens = self._file(source, 0)
        tokens.append(Token("end", "", source, len(source.text)))
        return tokens

    def _file(self, source: SourceFile, depth: int) -> list[Token]:
        self.files.append(source)
        output: list[Token] = []
        chunk: list[Token] = []
        branches = _Branches()
        free_form = _FreeForm()
        tokens = scan(source)
        while (token := next(tokens, None)) is not None:
            if token.kind != "directive":
                if token.kind == "text" and "\n" in token.text:
                    if not branches.active:
                        # A quote in text that is skipped opens nothing: what follows may end the skipping.
                        tokens = scan(source, source.text.index("\n", token.offset) + 1)
                        continue
                    token = self._text_of_lines(token, branches)
                if branches.active:
                    chunk.append(token)
                continue
            name = _directive_name(token)
            if name in _CONDITIONALS:
                if chunk:
                    output += self._readable(self.expander.expand(chunk), free_form)
                    chunk = []
                self._conditional(name, token, branches)
            elif branches.active:
                if chunk:
                    output += self._readable(self.expander.expand(chunk), free_form)
                    chunk = []
                output += self._directive(name, token, source, depth)
        for opened in branches.open:
            self.diagnostics.error("this conditional has no #endif", opened.token)
        if chunk:
            output += self._readable(self.expander.expand(chunk), free_form)
        return output

    def _readable(self, tokens: list[Token], free_form: _FreeForm) -> list[Token]:
        """`tokens` without those that are no part of P4, which are reported; only now no macro takes or joins them."""
        output: list[Token] = []
        for token in tokens:
            if not free_form.holds(token) and token.kind == "bad":
                self._report_bad(token)
            else:
                output.append(token)
        return output

    def _text_of_lines(self, token: Token, branches: _Branches) -> Token:
        """A string over several lines, of which those skipped by conditionals within it are left empty.

        For the preprocessor, a string ends with its line; p4c sees the lines again as one string.
        """
        kept: list[str] = []
        offset = token.offset
        lines = token.source.text[token.offset : token.end].split("\n")
        for index, line in enumerate(lines):
            stripped = line.lstrip(" \t")
            if 0 < index < len(lines) - 1 and stripped.startswith("#"):
                place = offset + len(line) - len(stripped)
                directive = Token("directive", stripped.rstrip("\r"), token.source, place)
                name = _directive_name(directive)
                if name in _CONDITIONALS:
                    self._conditional(name, directive, branches)
                    line = ""
            kept.append(line if branches.active else "")
            offset += len(lines[index]) + 1
        return Token("text", LINE_SPLICE.sub("", "\n".join(kept)), token.source, token.offset)

    def _report_bad(self, token: Token) -> None:
        what = {"/*": "comment without its closing '*/'", '"': "string without its closing quote"}
        unknown = f"{token.text!r} is not part of P4"
        if token.text[0].isdigit():
            unknown = f"'{token.text}' is not an integer"
        elif len(token.text) == 1:
            unknown = f"character {unknown}"
        self.diagnostics.error(what.get(token.text, unknown), token)

    def _body(self, token: Token) -> list[Token]:
        """Tokens of a directive after its name."""
        match = _DIRECTIVE.match(token.text)
        skip = match.end() if match else 1
        return tokenize(token.source, token.offset + skip, token.end)

    def _conditional(self, name: str | None, token: Token, branches: _Branches) -> None:
        if name in ("if", "ifdef", "ifndef"):
            around = branches.active
            value = around and self._holds(name, token)
            branches.open.append(_Branch(value, value, around, token))
            return
        if not branches.open:
            self.diagnostics.error(f"#{name} without an #if", token)
            return
        branch = branches.open[-1]
        if name == "endif":
            branches.open.pop()
        elif name == "else":
            branch.active = branch.around and not branch.taken
            branch.taken = True
        else:
            branch.active = branch.around and not branch.taken and self._holds("if", token)
            branch.taken = branch.taken or branch.active

    def _holds(self, name: str, token: Token) -> bool:
        body = self._body(token)
        if name == "if":
            return evaluate_condition(body, token, self.expander, self.diagnostics)
        if not body:
            self.diagnostics.error(f"#{name} needs a macro's name", token)
            return False
        return (body[0].text in self.expander.macros) == (name == "ifdef")

    def _directive(self, name: str | None, token: Token, source: SourceFile, depth: int) -> list[Token]:
        if name == "include":
            return self._include(token, source, depth)
        if name == "define":
            self._define(token)
        elif name == "undef":
            for word in self._body(token)[:1]:
                self.expander.macros.pop(word.text, None)
        elif name == "error":
            self.diagnostics.error(f"#error {_text_after(token)}", token)
        elif name == "warning":
            self.diagnostics.warning(f"#warning {_text_after(token)}", token, Kind.DIRECTIVE)
        elif name is not None and name not in ("pragma", "line") and token.text[1:2].isalpha():
            # p4c has its preprocessor take P4 for assembler, where such a line is a comment, as is `# text`.
            self.diagnostics.warning(
                f"unknown directive '#{name}': the line is ignored (valid: define, undef, include, if, ifdef, "
                "ifndef, elif, else, endif, error, warning, pragma, line)",
                token,
                Kind.DIRECTIVE,
            )
        return []

    def _define(self, token: Token) -> None:
        body = self._body(token)
        if not body or (body[0].kind != "id" and body[0].kind not in KEYWORDS):
            self.diagnostics.error("#define needs a macro's name", token)
            return
        name, rest = body[0], body[1:]
        for word in rest:
            if word.text == "/*":
                self._report_bad(word)
        parameters: list[str] | None = None
        rest_name: str | None = None
        if rest and rest[0].kind == "(" and not LINE_SPLICE.sub("", token.source.text[name.end : rest[0].offset]):
            parameters = []
            index = 1
            while index < len(rest) and rest[index].kind != ")":
                word = rest[index]
                if word.kind == "...":
                    # GNU: `name...` has a name of its own.
                    named = rest[index - 1].kind == "id"
                    rest_name = parameters.pop() if named else "__VA_ARGS__"
                elif word.kind != ",":
                    parameters.append(word.text)
                index += 1
            if index == len(rest):
                self.diagnostics.error(f"the parameters of macro '{name.text}' lack their closing ')'", name)
                return
            rest = rest[index + 1 :]
        self.expander.macros[name.text] = Macro(name, parameters, rest_name, rest)

    def _include(self, token: Token, source: SourceFile, depth: int) -> list[Token]:
        skip = _DIRECTIVE.match(token.text)
        match = _INCLUDE.match(token.text, skip.end() if skip else 0)
        if match is None:
            words = self.expander.expand(self._body(token))
            match = _INCLUDE.match("".join(word.text for word in words))
        if match is None:
            self.diagnostics.error('#include needs "FILE" or <FILE>', token)
            return []
        name = match.group(1) or match.group(2)
        folders = [*self.include_paths, BUILTIN_INCLUDES]
        if match.group(1):
            folders.insert(0, Path(source.name).parent)
        sought = [folder / name for folder in folders]
        if name.startswith(WEFT_PREFIX):
            folders.append(P4_MODULES)
            sought.append(P4_MODULES / name.removeprefix(WEFT_PREFIX))
        for path in sought:
            if _is_file(path):
                break
            self.absent.append(path)
        else:
            looked = ", ".join(str(folder) for folder in folders)
            architecture = ARCHITECTURES.get(name, ARCHITECTURE)
            if architecture != ARCHITECTURE:
                self.diagnostics.error(
                    f"'{name}' is for the architecture {architecture}; Weft compiles programs for {ARCHITECTURE} only",
                    token,
                )
                return []
            self.diagnostics.error(f"cannot find the included file '{name}' (looked in {looked})", token)
            return []
        if depth >= INCLUDE_DEPTH:
            exceeded(self.diagnostics, f"files include each other more than {INCLUDE_DEPTH} deep", token)
        if len(self.files) >= INCLUDED_FILES:
            exceeded(self.diagnostics, f"more than {INCLUDED_FILES} files are included", token)
        return self._file(read_source(path, self.diagnostics, token), depth + 1)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have: too long, or with a NUL in it
        return False


def read_source(path: Path, diagnostics: Diagnostics, token: Token | None = None) -> SourceFile:
    """The file's text; one that cannot be read, is no file or is too long is an error at `token`."""
    try:
        text = read_text(path, SOURCE_BYTES)
    except UnreadableFileError as error:
        diagnostics.error(f"cannot read {error}", token)
        raise Refused from error
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        diagnostics.error(f"cannot read '{path}': it is not UTF-8 text (byte 0x{byte:02x} at {error.start})", token)
        raise Refused from error
    except (OSError, ValueError) as error:
        diagnostics.error(f"cannot read '{path}': {error}", token)
        raise Refused from error
    return SourceFile(str(path), text, token)


def _text_after(token: Token) -> str:
    match = _DIRECTIVE.match(token.text)
    return token.text[match.end() if match else 1 :].strip()


def _directive_name(token: Token) -> str | None:
    match = _DIRECTIVE.match(token.text)
    return match.group(1) if match else None


@dataclass(slots=True)
class _Branch:
    """An open conditional: whether its text is active, a branch was taken, the text around is active."""

    active: bool
    taken: bool
    around: bool
    token: Token


@dataclass(slots=True)
class _Branches:
    """The conditionals that are open, the innermost last."""

    open: list[_Branch] = field(default_factory=list)

    @property
    def active(self) -> bool:
        """Whether the text here is not skipped: a branch is active only within active ones."""
        return not self.open or self.open[-1].active


class _FreeForm:
    """Tracks whether tokens are within the parentheses of an annotation, where any character is allowed."""

    def __init__(self) -> None:
        self._before = ("", "")
        self._depth = 0

    def holds(self, token: Token) -> bool:
        """Whether a token, the next one, is text within such parentheses."""
        if self._depth:
            self._depth += {"(": 1, ")": -1}.get(token.kind, 0)
            return token.text not in ("/*", '"')
        if token.kind == "(" and self._before[0] == "@":
            self._depth = 1
        self._before = (self._before[1], token.kind)
        return False
