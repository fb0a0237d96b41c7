"""Declarations that nothing refers to."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.warnings.kinds import Kind
from weft.compiler.warnings.reporter import WarningReporter
from weft.paths import P4_DIRECTORY, P4_MODULES

_WORDS: dict[type[ast.Node], str] = {
    ast.ActionDeclaration: "action",
    ast.TableDeclaration: "table",
    ast.VariableDeclaration: "variable",
    ast.ConstantDeclaration: "constant",
    ast.FunctionDeclaration: "function",
    ast.TypedefDeclaration: "type",
    ast.ControlDeclaration: "control",
    ast.ParserDeclaration: "parser",
    ast.InstanceDeclaration: "instance",
    ast.ValueSetDeclaration: "value set",
}


def check_unused(program: ast.Program, reporter: WarningReporter) -> None:
    """Warn about actions, tables, variables, constants, functions, types, controls, parsers, instances, and
    parameters of actions and functions that are never mentioned.

    Of Weft's modules a program that includes them need not use all.
    """
    used, type_names = _references(reporter.nodes)
    modules = _modules_included(reporter.nodes)
    for node in reporter.nodes:
        if modules and _source(node).startswith(modules):
            continue
        if isinstance(node, ast.ActionDeclaration | ast.FunctionDeclaration) and node.body is not None:
            for parameter in node.parameters:
                if id(parameter) not in used:
                    reporter.warn(Kind.UNUSED, f"parameter '{parameter.name}' is unused", parameter.span)
        word = _WORDS.get(type(node))
        if word is None or not isinstance(node, ast.Declaration):
            continue
        if id(node) in used or node.name in type_names or _is_needed(node):
            continue
        reporter.warn(Kind.UNUSED, f"{word} '{node.name}' is unused", node.span)


def _modules_included(nodes: list[ast.Node]) -> str:
    """Return the folder of Weft's modules; "" for a program that is Weft's own."""
    mains = (node for node in nodes if isinstance(node, ast.InstanceDeclaration) and node.name == "main")
    is_own = any(_source(main).startswith(f"{P4_DIRECTORY}/") for main in mains)
    return "" if is_own else f"{P4_MODULES}/"


def _source(node: ast.Node) -> str:
    return node.span.first.place().source.name


def _is_needed(node: ast.Declaration) -> bool:
    if isinstance(node, ast.FunctionDeclaration | ast.ControlDeclaration) and node.body is None:
        return True
    if isinstance(node, ast.ParserDeclaration) and node.states is None:
        return True
    # An instance at the top is the package, or an object that the control plane knows.
    return isinstance(node, ast.InstanceDeclaration) and node.name == "main"


def _references(nodes: list[ast.Node]) -> tuple[set[int], set[str]]:
    """Identities of the declarations that names and calls refer to; all names of types that are mentioned."""
    used: set[int] = set()
    type_names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            found = node.declaration
            used.update(map(id, found) if isinstance(found, list) else [id(found)])
        elif isinstance(node, ast.Call):
            used.add(id(node.target))
        elif isinstance(node, ast.NamedTypeNode):
            type_names.add(node.name)
        elif isinstance(node, ast.ActionReference):
            used.add(id(node.declaration))
    return used, type_names
