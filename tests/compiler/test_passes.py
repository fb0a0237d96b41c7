"""The passes are modules of functions: no imports form a cycle, and no kind of node is forgotten."""

from __future__ import annotations

import ast as python
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import weft.compiler
from weft.compiler import ast
from weft.compiler.check.handlers import HANDLERS

COMPILER = Path(weft.compiler.__file__).parent


def imports(path: Path, package: str) -> set[str]:
    """Modules of a package that one of its modules imports, at its top or within a function."""
    found: set[str] = set()
    for node in python.walk(python.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, python.ImportFrom) and node.module is not None:
            if node.module == package:
                found |= {alias.name for alias in node.names}
            elif node.module.startswith(f"{package}."):
                found.add(node.module.removeprefix(f"{package}."))
    return found


@pytest.mark.parametrize("name", ["parser", "check", "lower", "p4info", "emit_json", "warnings"])
def test_no_imports_form_a_cycle(name: str) -> None:
    folder = COMPILER / name
    modules = {
        ".".join(path.relative_to(folder).with_suffix("").parts): path
        for path in folder.rglob("*.py")
        if path.name != "__init__.py"
    }
    graph = {module: imports(path, f"weft.compiler.{name}") & modules.keys() for module, path in modules.items()}
    assert any(graph.values())
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


def classes(module: str) -> set[str]:
    """The classes of the tree that a module of weft.compiler.ast defines."""
    tree = python.parse((COMPILER / "ast" / f"{module}.py").read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, python.ClassDef)}


def test_every_kind_of_expression_can_be_typed() -> None:
    missing = {
        name
        for name in classes("expressions")
        if issubclass(getattr(ast, name), ast.Expression) and getattr(ast, name) not in HANDLERS.expressions
    }
    # Key sets are checked part by part; `this` is for abstract methods, which are refused.
    assert missing == {"Expression", "KeysetTuple", "This"}


def test_every_kind_of_statement_can_be_checked() -> None:
    missing = {
        name
        for name in classes("statements")
        if issubclass(getattr(ast, name), ast.Statement) and getattr(ast, name) not in HANDLERS.statements
    }
    assert missing == {"Statement"}


def test_every_kind_of_declaration_can_be_checked() -> None:
    missing = {
        name
        for name in classes("declarations") | classes("blocks")
        if issubclass(getattr(ast, name), ast.Declaration) and getattr(ast, name) not in HANDLERS.declarations
    }
    # These are checked with what they are parts of.
    parts = {"EnumMember", "Field", "Parameter", "StateDeclaration", "TableProperty", "TypeParameter"}
    assert missing == {"Declaration"} | parts
