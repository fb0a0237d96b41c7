"""Checking of declarations: the dispatch, and annotations (specification, section 20)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.source import Token
from weft.compiler.types import UNKNOWN


def check_declaration(context: CheckContext, declaration: ast.Declaration) -> None:
    """One declaration of any kind, declared in the current scope."""
    _check_annotations(context, declaration)
    at_top = context.enclosing.kind == "top"
    if at_top and declaration.name == "main" and not isinstance(declaration, ast.InstanceDeclaration):
        context.error("'main' is an instance of a package", declaration)
    context.declarations[type(declaration)](context, declaration)


def check_structured_annotation(context: CheckContext, annotation: ast.Annotation) -> None:
    """One annotation, in the scope of the program's constants."""
    seen: dict[str, ast.AnnotationElement] = {}
    for element in annotation.elements or []:
        if element.name is not None:
            if element.name in seen:
                context.error(f"key '{element.name}' of '@{annotation.name}' is given twice", element).note(
                    "first given here", seen[element.name].span
                )
            seen.setdefault(element.name, element)
        type_ = infer(context, element.expression)
        if type_ is not UNKNOWN and not isinstance(element.expression.value, int | str):
            context.error(
                f"a value of '@{annotation.name}' is a string, an int or a bool known at compile time",
                element.expression,
            )


def _check_annotations(context: CheckContext, declaration: ast.Declaration) -> None:
    """The bodies of a declaration's unstructured annotations, of those that the compiler reads."""
    for annotation in declaration.annotations:
        kinds = [token.kind for token in annotation.tokens]
        if annotation.name in ("name", "deprecated") and set(kinds) - {"text", "++"}:
            context.error(f"'@{annotation.name}' takes a string", annotation)
        if annotation.name == "p4runtime_translation" and not _translated(annotation.tokens):
            context.error(
                "'@p4runtime_translation' takes a string and then a width, bit<width> or string",
                annotation,
            )


def _translated(tokens: list[Token]) -> bool:
    """Whether the tokens of a @p4runtime_translation say what a type is for the control plane."""
    target = [token.kind for token in tokens[2:]]
    forms = (["integer"], ["string"], ["bit", "<", "integer", ">"])
    return len(tokens) > 2 and tokens[0].kind == "text" and tokens[1].kind == "," and target in forms
