"""Which function parses what begins with which kind of token."""

from __future__ import annotations

from weft.compiler.parser import branches, calls, loops, primaries, statements, variables
from weft.compiler.parser.braces import parse_braces
from weft.compiler.parser.casts import parse_cast
from weft.compiler.parser.stream import Grammar

GRAMMAR = Grammar(
    primaries={
        "id": primaries.parse_name,
        ".": primaries.parse_absolute_name,
        "integer": primaries.parse_integer,
        "true": primaries.parse_boolean,
        "false": primaries.parse_boolean,
        "text": primaries.parse_text,
        "(": primaries.parse_parentheses,
        "{": parse_braces,
        "this": primaries.parse_this,
        "default": primaries.parse_default,
        "_": primaries.parse_default,
        "...": primaries.parse_default,
        "bit": primaries.parse_type_expression,
        "bool": primaries.parse_type_expression,
        "error": primaries.parse_type_expression,
        "int": primaries.parse_type_expression,
        "match_kind": primaries.parse_type_expression,
        "string": primaries.parse_type_expression,
        "tuple": primaries.parse_type_expression,
        "varbit": primaries.parse_type_expression,
    },
    postfixes={
        ".": calls.parse_member,
        "[": calls.parse_subscript,
        "(": calls.parse_call,
        "<": calls.parse_generic_call,
    },
    cast=parse_cast,
    statements={
        "{": statements.parse_block,
        ";": statements.parse_empty,
        "break": statements.parse_jump,
        "const": variables.parse_constant,
        "continue": statements.parse_jump,
        "exit": statements.parse_jump,
        "for": loops.parse_for,
        "if": branches.parse_if,
        "return": statements.parse_return,
        "switch": branches.parse_switch,
    },
    local_declaration=variables.parse_variable_or_instance,
)
