"""Reads pickles of plain data, without Python's unpickler, which runs code that a pickle names."""

from __future__ import annotations

import pickletools
from pathlib import Path
from typing import Any

from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.memory import check_parsing

_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_ARGUMENTS = frozenset(
    {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}
)
"""Opcodes that push their argument."""
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_PUTS = frozenset({"BINPUT", "LONG_BINPUT"})
_GETS = frozenset({"BINGET", "LONG_BINGET"})
_PARSED_RATIO = 80
"""Memory of the values, in multiples of the pickle; measured: 72 for empty dicts, which take a byte each."""
VALID = "dicts, lists, tuples, texts, numbers, None"


def read_plain_pickle(data: bytes, path: Path) -> Any:
    """Return the dicts, lists, tuples, texts and numbers of a pickle; keys are texts or whole numbers.

    Raises TraceError for anything else, without running code of the pickle, and if it could take too much memory.
    """
    check_parsing(len(data), _PARSED_RATIO, "a pickle", path)
    machine = _Machine(path)
    try:
        for opcode, argument, position in pickletools.genops(data):
            if opcode.name == "STOP":
                return machine.result(position or 0)
            machine.step(opcode.name, argument, position or 0)
    except (ValueError, IndexError, AttributeError) as error:
        raise TraceError(f"is no valid pickle: {error}", place=path) from None
    raise TraceError("is no valid pickle: it does not end", place=path)


class _Machine:
    """A pickle machine (pickletools' description) that makes plain data only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def result(self, position: int) -> Any:
        """Return the one value on the stack."""
        if len(self._stack) != 1:
            raise self._error(f"{len(self._stack)} values at the end", position, "1")
        return self._stack[0]

    def step(self, name: str, argument: Any, position: int) -> None:
        """Run an opcode. Raises TraceError for one that makes other data, IndexError for an empty stack."""
        stack = self._stack
        if name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _ARGUMENTS:
            stack.append(argument)
        elif name in _TUPLES:
            self._replace_by_tuple(len(stack) - _TUPLES[name], position)
        elif name in _PUTS:
            self._memo[argument] = stack[-1]
        elif name in _GETS:
            if argument not in self._memo:
                raise self._error(f"{name} of {argument}, which was not stored", position)
            stack.append(self._memo[argument])
        else:
            self._step_container(name, position)

    def _step_container(self, name: str, position: int) -> None:
        stack = self._stack
        match name:
            case "PROTO" | "FRAME":
                pass
            case "MARK":
                self._marks.append(len(stack))
            case "MEMOIZE":
                self._memo[len(self._memo)] = stack[-1]
            case "EMPTY_DICT":
                stack.append({})
            case "EMPTY_LIST":
                stack.append([])
            case "EMPTY_TUPLE":
                stack.append(())
            case "TUPLE":
                self._replace_by_tuple(self._marks.pop(), position)
            case "APPEND":
                value = stack.pop()
                self._top(list, position).append(value)
            case "APPENDS":
                values = self._marked()
                self._top(list, position).extend(values)
            case "SETITEM":
                value, key = stack.pop(), stack.pop()
                self._set([key, value], position)
            case "SETITEMS":
                self._set(self._marked(), position)
            case _:
                raise self._error(f"opcode {name}", position, VALID)

    def _replace_by_tuple(self, start: int, position: int) -> None:
        if not 0 <= start <= len(self._stack):
            raise self._error("too few values for a tuple", position)
        self._stack[start:] = [tuple(self._stack[start:])]

    def _marked(self) -> list[Any]:
        start = self._marks.pop()
        values = self._stack[start:]
        del self._stack[start:]
        return values

    def _top(self, kind: type, position: int) -> Any:
        if not isinstance(self._stack[-1], kind):
            raise self._error(f"a {type(self._stack[-1]).__name__}", position, f"a {kind.__name__}")
        return self._stack[-1]

    def _set(self, values: list[Any], position: int) -> None:
        held = self._top(dict, position)
        for key, value in zip(values[::2], values[1::2], strict=True):
            # Other keys have hashes that recurse into their parts without a bound.
            if not isinstance(key, (str, int)):
                raise self._error(f"a key of type {type(key).__name__}", position, "a text or a whole number")
            held[key] = value

    def _error(self, problem: str, position: int, valid: str = "") -> TraceError:
        return TraceError(f"byte {position}: {problem}", place=self._path, valid=valid)
