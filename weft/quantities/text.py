"""Texts with a required form in sections of scenario files.

Descriptions of fabrics use them as well, so pydantic is imported late: host and switch processes do not need it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.quantities.units import shown

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema


@dataclass(frozen=True)
class Text:
    """A text with a required form: `what` describes it, `pattern` is its regular expression."""

    what: str
    pattern: str
    example: str

    def read(self, value: object) -> str:
        """Return the text if it matches. Raises ValueError."""
        if not isinstance(value, str) or not re.search(self.pattern, value):
            raise ValueError(f"{shown(value)} is not {self.what}, such as {self.example}")
        return str(value)

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let pydantic read values with `read`."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON Schema for editors."""
        pattern = self.pattern.replace(r"\A", "^").replace(r"\Z", "$")
        return {"type": "string", "pattern": pattern, "examples": [self.example]}
