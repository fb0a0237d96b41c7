"""Declarations that hide another one of an enclosing parser, control, action or block."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.warnings.kinds import Kind
from weft.compiler.warnings.reporter import WarningReporter
from weft.compiler.warnings.walk import children

_SCOPES = (
    ast.ControlDeclaration,
    ast.ParserDeclaration,
    ast.ActionDeclaration,
    ast.FunctionDeclaration,
    ast.StateDeclaration,
    ast.Block,
    ast.For,
    ast.ForIn,
)
_VALUES = (ast.VariableDeclaration, ast.ConstantDeclaration, ast.Parameter, ast.InstanceDeclaration)
_CODE = (ast.ActionDeclaration, ast.TableDeclaration)

Names = dict[str, ast.Declaration]


def check_shadowing(program: ast.Program, reporter: WarningReporter) -> None:
    """Warn about local variables, constants, instances and parameters that hide another of these, and of local
    actions and tables that hide an action or function of the program.
    """
    functions: Names = {
        declaration.name: declaration
        for declaration in program.declarations
        if isinstance(declaration, ast.ActionDeclaration | ast.FunctionDeclaration)
    }
    for declaration in program.declarations:
        if isinstance(declaration, ast.ControlDeclaration):
            for local in declaration.locals:
                if isinstance(local, _CODE) and local.name in functions:
                    _warn(local, functions[local.name], reporter)
    for declaration in program.declarations:
        if isinstance(declaration, _SCOPES):
            _visit(declaration, {}, reporter)


def _warn(node: ast.Declaration, hidden: ast.Declaration, reporter: WarningReporter) -> None:
    message = f"'{node.name}' hides a declaration of the same name"
    reporter.warn(Kind.SHADOW, message, node.span).note("declared here", hidden.span)


def _visit(scope: ast.Node, outer: Names, reporter: WarningReporter) -> None:
    names = dict(outer)
    pending = list(children(scope))[::-1]
    nested = []
    while pending:
        node = pending.pop()
        if isinstance(node, _VALUES):
            hidden = outer.get(node.name)
            if hidden is not None:
                _warn(node, hidden, reporter)
            names[node.name] = node
        elif isinstance(node, _SCOPES):
            nested.append(node)
        elif not isinstance(node, ast.Expression):
            pending.extend(list(children(node))[::-1])
    for node in nested:
        _visit(node, names, reporter)
