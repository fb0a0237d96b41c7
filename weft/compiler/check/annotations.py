"""Checking of structured annotations (specification, section 20.1)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.expressions import Expressions
from weft.compiler.types import UNKNOWN


class StructuredAnnotations(Expressions):
    """Their values are strings, integers and bools known at compile time, their keys differ."""

    def check_structured_annotation(self, annotation: ast.Annotation) -> None:
        """One annotation, in the scope of the program's constants."""
        seen: dict[str, ast.AnnotationElement] = {}
        for element in annotation.elements or []:
            if element.name is not None:
                if element.name in seen:
                    self.error(f"key '{element.name}' of '@{annotation.name}' is given twice", element).note(
                        "first given here", seen[element.name].span
                    )
                seen.setdefault(element.name, element)
            type_ = self.infer(element.expression)
            if type_ is not UNKNOWN and not isinstance(element.expression.value, int | str):
                self.error(
                    f"a value of '@{annotation.name}' is a string, an int or a bool known at compile time",
                    element.expression,
                )
