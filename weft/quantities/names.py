"""Names of things of Weft's, as values in sections of scenario files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.errors import InvalidValueError
from weft.hints import did_you_mean
from weft.quantities.units import shown

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema


@dataclass(frozen=True)
class Name:
    """The name of something of Weft's, `what`, of which `known` returns all.

    Users have their own, too: any name is read, and another check knows which are right.
    """

    what: str
    known: Callable[[], Iterable[str]]

    def read(self, value: object) -> str:
        """Return the name. Raises ValueError."""
        if isinstance(value, str):
            return value
        raise InvalidValueError(f"{shown(value)} is no {self.what}", valid=self.valid(repr))

    def unknown(self, value: str) -> ValueError:
        """Return the error for an unknown name."""
        return ValueError(f"no {self.what} {shown(value)}; {did_you_mean(value, self.known())}")

    def valid(self, written: Callable[[str], str]) -> str:
        """Return all names, each as `written`."""
        return ", ".join(written(name) for name in self.known())

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Have pydantic read values by `read`."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return what editors know of it: they complete the names, and accept others."""
        return {"anyOf": [{"enum": list(self.known()), "type": "string"}, {"type": "string"}]}
