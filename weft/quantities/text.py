"""Texts of a form, as sections of scenario files hold them besides quantities.

Descriptions of fabrics name them, too, so pydantic is imported late: processes of hosts and switches need none.
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
    """A text of a form: `what` says which, `pattern` is the form."""

    what: str
    pattern: str
    example: str

    def read(self, value: object) -> str:
        """Return the text. Raises ValueError."""
        if not isinstance(value, str) or not re.search(self.pattern, value):
            raise ValueError(f"{shown(value)} is not {self.what}, such as {self.example}")
        return str(value)

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Have pydantic read values by `read`."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return its JSON Schema for editors."""
        pattern = self.pattern.replace(r"\A", "^").replace(r"\Z", "$")
        return {"type": "string", "pattern": pattern, "examples": [self.example]}
