"""Action bodies as primitives; branches become jumps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.compiler import ir
from weft.compiler.emit_json.expressions import b2d, convert, hex_string, operand, target, wrapped
from weft.compiler.emit_json.places import source_info
from weft.compiler.types import BOOL

Json = dict[str, Any]


class ActionBody:
    """Primitives of one action; jump targets are filled in by `finish`."""

    def __init__(self) -> None:
        self.primitives: list[Json] = []
        self._jumps: list[tuple[Json, int]] = []
        self._labels: dict[int, int] = {}
        self._next_label = -1

    def finish(self) -> list[Json]:
        """The primitives, with the jumps' offsets."""
        for jump, label in self._jumps:
            offset = self._labels[label]
            jump["parameters"].append({"type": "hexstr", "value": hex_string(offset)})
        return self.primitives

    def add_all(self, statements: Sequence[ir.Stmt]) -> None:
        """Append statements."""
        for statement in statements:
            self.add(statement)

    def add(self, statement: ir.Stmt) -> None:
        """Append one statement."""
        if isinstance(statement, ir.Assign | ir.Primitive):
            self.primitives.append(primitive(statement))
        elif isinstance(statement, ir.If):
            self._if(statement)
        elif isinstance(statement, ir.Labeled):
            self.add_all(statement.body)
            self._place(statement.label)
        elif isinstance(statement, ir.Jump):
            self._jump("_jump", [], statement.label, statement)
        elif isinstance(statement, ir.Loop):
            self._loop(statement)
        elif isinstance(statement, ir.Exit):
            self.primitives.append({"op": "exit", "parameters": [], **source_info(statement.span)})
            self._jump("_jump", [], self._end(), statement)
        else:
            raise TypeError(f"{type(statement).__name__} cannot stand in an action")

    def _end(self) -> int:
        """The label of the action's end (0: the lowering numbers its labels from 1)."""
        return 0

    def _place(self, label: int) -> None:
        self._labels[label] = len(self.primitives)

    def _fresh(self) -> int:
        self._next_label -= 1
        return self._next_label

    def _jump(self, name: str, parameters: list[Json], label: int, statement: ir.Stmt) -> None:
        jump: Json = {"op": name, "parameters": parameters, **source_info(statement.span)}
        self._jumps.append((jump, label))
        self.primitives.append(jump)

    def _unless(self, statement: ir.If | ir.Loop, label: int) -> None:
        condition = wrapped(b2d(convert(statement.condition)))
        self._jump("_jump_if_zero", [condition], label, statement)

    def _if(self, statement: ir.If) -> None:
        end = self._fresh()
        otherwise = self._fresh() if statement.otherwise else end
        self._unless(statement, otherwise)
        self.add_all(statement.then)
        if statement.otherwise:
            self._jump("_jump", [], end, statement)
            self._place(otherwise)
            self.add_all(statement.otherwise)
        self._place(end)

    def _loop(self, statement: ir.Loop) -> None:
        start, end = self._fresh(), self._fresh()
        self._place(start)
        self.add_all(statement.head)
        self._unless(statement, end)
        self.add_all(statement.body)
        self._jump("_jump", [], start, statement)
        self._place(end)


def action_primitives(statements: Sequence[ir.Stmt]) -> list[Json]:
    """The primitives of an action."""
    body = ActionBody()
    body.add_all(statements)
    # An exit at the very end needs no jump behind it.
    while body._jumps and body._jumps[-1][1] == 0 and body._jumps[-1][0] is body.primitives[-1]:
        if any(offset == len(body.primitives) for offset in body._labels.values()):
            break
        body.primitives.pop()
        body._jumps.pop()
    body._place(0)
    return body.finish()


def primitive(statement: ir.Assign | ir.Primitive) -> Json:
    """One primitive."""
    if isinstance(statement, ir.Assign):
        value = statement.value
        if value.type is BOOL and isinstance(value, ir.FieldRef | ir.Valid):
            source = wrapped(b2d(convert(value)))
        else:
            source = operand(value)
        return {
            "op": "assign",
            "parameters": [target(statement.target), source],
            **source_info(statement.span),
        }
    parameters = [operand(each) for each in statement.operands]
    return {"op": statement.name, "parameters": parameters, **source_info(statement.span)}
