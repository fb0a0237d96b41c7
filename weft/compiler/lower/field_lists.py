"""@field_list on metadata: what clones, resubmissions and recirculations preserve."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check import Symbols
from weft.compiler.ir import FieldList
from weft.compiler.lower.calculations import leaves
from weft.compiler.lower.context import Context
from weft.compiler.lower.values import StructValue
from weft.compiler.source import Span, Token
from weft.compiler.types import EnumType, StructType


def declare_field_lists(context: Context, symbols: Symbols, type_: StructType, value: StructValue) -> None:
    """@field_list(n) on metadata fields: what clones and resubmissions preserve."""
    lists: dict[int, FieldList] = {}
    _collect_field_lists(context, symbols, type_, value, lists)
    for index in lists:
        context.program.field_lists.append(lists[index])


def _collect_field_lists(
    context: Context, symbols: Symbols, type_: StructType, value: StructValue, lists: dict[int, FieldList]
) -> None:
    for field in type_.declaration.fields:
        annotation = field.annotation("field_list")
        part = value.fields[field.name]
        if annotation is not None:
            for index in _list_indices(context, symbols, annotation):
                known = lists.get(index)
                if known is None:
                    known = FieldList(len(lists) + 1, f"field_list{index}", [], None)
                    lists[index] = known
                known.elements += leaves(context, part, field)
        elif isinstance(part, StructValue) and isinstance(part.type, StructType):
            _collect_field_lists(context, symbols, part.type, part, lists)


def _list_indices(context: Context, symbols: Symbols, annotation: ast.Annotation) -> list[int]:
    """Indices are integers, constants, or members of serializable enums."""
    indices: list[int] = []
    item: list[Token] = []
    for token in [*annotation.tokens, None]:
        if token is not None and token.kind != ",":
            item.append(token)
            continue
        if item:
            index = _list_index(symbols, item)
            if index is None:
                text = "".join(each.text for each in item)
                context.diagnostics.error(f"'{text}' is not a constant", Span(item[0], item[-1]))
            else:
                indices.append(index)
        item = []
    return indices


def _list_index(symbols: Symbols, item: list[Token]) -> int | None:
    if len(item) == 1 and item[0].kind == "integer":
        return ast.parse_integer(item[0].text)[0]
    known = symbols.root.lookup(item[0].text)
    if len(item) == 1 and isinstance(known, ast.ConstantDeclaration):
        return known.value if isinstance(known.value, int) else None
    if len(item) == 3 and item[1].kind == "." and isinstance(known, ast.EnumDeclaration):
        type_ = symbols.types.get(id(known))
        if isinstance(type_, EnumType):
            return type_.values.get(item[2].text)
    return None
