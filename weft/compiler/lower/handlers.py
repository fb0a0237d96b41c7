"""Which function lowers which kind of expression and statement."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.lower import (
    aggregates,
    declarations,
    instances,
    loops,
    names,
    operators,
    statements,
    switches,
)
from weft.compiler.lower.calls import evaluate_call
from weft.compiler.lower.context import Handlers

HANDLERS = Handlers(
    expressions={
        ast.Name: names.evaluate_name,
        ast.Member: names.evaluate_member,
        ast.Index: names.evaluate_index,
        ast.Unary: operators.evaluate_unary,
        ast.Binary: operators.evaluate_binary,
        ast.Ternary: operators.evaluate_ternary,
        ast.Cast: operators.evaluate_cast,
        ast.Slice: operators.evaluate_slice,
        ast.ListExpression: aggregates.evaluate_list,
        ast.StructExpression: aggregates.evaluate_struct,
        ast.InvalidHeader: aggregates.evaluate_invalid_header,
        ast.DefaultExpression: aggregates.evaluate_default,
        ast.Call: evaluate_call,
    },
    statements={
        ast.Assignment: statements.lower_assignment,
        ast.CallStatement: statements.lower_call,
        ast.Block: statements.lower_block,
        ast.If: statements.lower_if,
        ast.Switch: switches.lower_switch,
        ast.Return: statements.lower_return,
        ast.Exit: statements.lower_exit,
        ast.VariableDeclaration: declarations.declare_variable,
        ast.ConstantDeclaration: declarations.declare_constant,
        ast.InstanceDeclaration: instances.declare_instance,
        ast.Empty: statements.lower_empty,
        ast.For: loops.lower_for,
        ast.ForIn: loops.lower_for_in,
        ast.Break: loops.lower_break,
        ast.Continue: loops.lower_continue,
    },
)
