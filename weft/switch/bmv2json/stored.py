"""Checked programs in the cache on disk: reading one back takes a tenth of the time of checking its document again.

A stored program is a pickle. Like machine code, it comes only from files that nobody but this user may write
(weft/cache/store.py). Besides, reading it creates nothing but the classes of this package.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import hashlib
import io
import pickle
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any

from weft.cache import Store, collector_paused, version_of
from weft.switch.bmv2json.loader import load_program
from weft.switch.bmv2json.model import Program
from weft.switch.bmv2json.scope import frozen

_STORE = Store("model")
_PACKAGE = __name__.rpartition(".")[0]
_PART = "program"


def load_stored_program(document: bytes) -> Program:
    """Return as `load_program`, from the cache if the same document was loaded before. Raises as `load_program`."""
    key = _STORE.key(hashlib.sha256(document).hexdigest(), *_environment())
    entry = _STORE.read(key)
    # An entry of something else is a miss, as a damaged one is.
    with contextlib.suppress(pickle.UnpicklingError), collector_paused():
        if entry is not None:
            return _Unpickler(io.BytesIO(entry[_PART])).program()
    program = load_program(document)
    content = io.BytesIO()
    _Pickler(content, protocol=pickle.HIGHEST_PROTOCOL).dump(program)
    _STORE.write(key, {_PART: content.getvalue()})
    return program


@functools.cache
def _environment() -> tuple[str, ...]:
    """Return what the stored form depends on besides the document."""
    return version_of([Path(__file__).parent]), sys.version


class _Pickler(pickle.Pickler):
    def reducer_override(self, each: Any) -> Any:
        """Reduce data classes to their fields, enumerations to their values and views to their mappings."""
        if isinstance(each, MappingProxyType):
            return frozen, (dict(each),)
        if isinstance(each, enum.Enum):
            return type(each), (each.value,)
        if dataclasses.is_dataclass(each) and not isinstance(each, type):
            # The default restores field by field in Python, which takes several times as long.
            return type(each), tuple(getattr(each, field.name) for field in dataclasses.fields(each))
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def program(self) -> Program:
        """Return the program that was stored. UnpicklingError if it is something else."""
        found = self.load()
        if not isinstance(found, Program):
            raise pickle.UnpicklingError(f"a {type(found).__name__} is no program")
        return found

    def find_class(self, module: str, name: str) -> Any:
        """Return a data class or an enumeration of this package, or `frozen`. UnpicklingError for anything else."""
        if module == frozen.__module__ and name == frozen.__name__:
            return frozen
        if module.startswith(f"{_PACKAGE}."):
            found = super().find_class(module, name)
            if isinstance(found, type) and (dataclasses.is_dataclass(found) or issubclass(found, enum.Enum)):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a program")
