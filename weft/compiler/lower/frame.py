"""Where the declarations of an inlined instance live."""

from __future__ import annotations

from typing import Any

from weft.compiler import ast
from weft.compiler.types import Type, substitute


class Frame:
    """Values by declaration; `path` is the control-plane name so far, `bindings` the type arguments."""

    def __init__(self, parent: Frame | None, path: str, bindings: dict[Type, Type] | None = None) -> None:
        self.parent = parent
        self.path = path
        self.values: dict[int, Any] = {}
        self.bindings: dict[Type, Type] = dict(parent.bindings) if parent is not None else {}
        if bindings:
            inherited = self.bindings
            self.bindings = {
                **inherited,
                **{key: substitute(type_, inherited) for key, type_ in bindings.items()},
            }
        self.return_label: int | None = None
        self.return_value: Any = None

    def bind(self, declaration: ast.Node, value: Any) -> None:
        """Give a declaration its value."""
        self.values[id(declaration)] = value

    def find(self, declaration: ast.Node) -> Any:
        """The value of a declaration here or further out; None when it has none."""
        key = id(declaration)
        frame: Frame | None = self
        while frame is not None:
            if key in frame.values:
                return frame.values[key]
            frame = frame.parent
        return None

    def name_of(self, declaration: ast.Declaration) -> str:
        """The control-plane name of a declaration in this instance."""
        return self.qualify(declaration.external_name())

    def qualify(self, name: str) -> str:
        """A name within the instance; one with a leading dot is global."""
        if name.startswith("."):
            return name[1:]
        return f"{self.path}.{name}" if self.path else name

    def type(self, type_: Type | None) -> Type:
        """A type with this instance's type arguments put in."""
        assert type_ is not None
        return substitute(type_, self.bindings) if self.bindings else type_
