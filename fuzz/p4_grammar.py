"""Random P4 programs that are well-typed: what they compute leaves in the packet, where a difference shows."""

from __future__ import annotations

import random

_WIDTHS = (1, 3, 4, 7, 8, 9, 12, 16, 24, 31, 32, 33, 48, 63, 64, 65, 100, 128)
_FIELDS_PER_HEADER = 6
_HEADERS = ("first", "second")
_STACK_SIZE = 3
_DEPTH = 3

_TEMPLATE = """#include <core.p4>
#include <v1model.p4>
{headers}
header item_t {{ bit<8> v; bit<8> more; }}
struct headers_t {{ first_t first; second_t second; item_t[{stack}] items; }}
struct metadata_t {{ bit<8> count; bit<16> seen; }}
{functions}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {{
    state start {{
        packet.extract(hdr.first);
        transition select({select}) {{ {cases} }}
    }}
    state parse_second {{ packet.extract(hdr.second); transition parse_items; }}
    state parse_items {{
        packet.extract(hdr.items.next);
        transition select(hdr.items.last.more) {{ 0: accept; 1 .. 100: parse_items; default: reject; }}
    }}
}}
control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {{
    register<bit<32>>(8) memory;
    bit<32> cell = 0;
{actions}
{tables}
    apply {{
        standard_metadata.egress_spec = 2;
{apply}
    }}
}}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {{
    apply {{
{egress}
    }}
}}
control U(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control D(packet_out packet, in headers_t hdr) {{
    apply {{ packet.emit(hdr.first); packet.emit(hdr.second); packet.emit(hdr.items); }}
}}
V1Switch(P(), V(), I(), E(), U(), D()) main;
"""


def random_program(rng: random.Random) -> str:
    """The text of a program."""
    return _Generator(rng).program()


class _Generator:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._fields: list[tuple[str, int, bool]] = []
        self._variables: list[tuple[str, int, bool]] = []
        self._functions: list[tuple[str, int, int]] = []
        self._actions: list[tuple[str, list[int]]] = []
        self._tables: list[str] = []
        self._names = 0

    def program(self) -> str:
        headers = "\n".join(self._header(name) for name in _HEADERS)
        functions = "\n".join(self._function() for _ in range(self._rng.randrange(3)))
        actions = "\n".join(self._action() for _ in range(self._rng.randrange(1, 4)))
        tables = "\n".join(self._table() for _ in range(self._rng.randrange(3)))
        select, cases = self._select()
        return _TEMPLATE.format(
            headers=headers,
            stack=_STACK_SIZE,
            functions=functions,
            select=select,
            cases=cases,
            actions=actions,
            tables=tables,
            apply=self._block(2, in_control=True),
            egress=self._block(2, in_control=False),
        )

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def _header(self, name: str) -> str:
        widths = [self._rng.choice(_WIDTHS) for _ in range(self._rng.randrange(1, _FIELDS_PER_HEADER))]
        if excess := sum(widths) % 8:
            widths.append(8 - excess)
        lines = []
        for index, width in enumerate(widths):
            signed = width > 1 and self._rng.random() < 0.2
            self._fields.append((f"hdr.{name}.f{index}", width, signed))
            lines.append(f"{_type(width, signed)} f{index};")
        return f"header {name}_t {{ {' '.join(lines)} }}"

    def _select(self) -> tuple[str, str]:
        field, width, signed = self._rng.choice([each for each in self._fields if "first" in each[0]])
        text = f"(bit<{width}>){field}" if signed else field
        choices = []
        for target in ("parse_second", "parse_items", "parse_second"):
            form = self._rng.randrange(3)
            low, high = sorted(self._rng.getrandbits(width) for _ in range(2))
            value = (
                f"{width}w{low}",
                f"{width}w{low} &&& {width}w{high}",
                f"{width}w{low} .. {width}w{high}",
            )[form]
            choices.append(f"{value}: {target};")
        return text, " ".join(
            choices
        ) + f" default: {self._rng.choice(('accept', 'parse_second', 'parse_items'))};"

    def _function(self) -> str:
        name, width, argument = self._name("function"), self._rng.choice(_WIDTHS), self._rng.choice(_WIDTHS)
        saved = self._fields, self._variables
        self._fields, self._variables = [], [("x", argument, False)]
        early = f"if ({self._condition(2)}) {{ return {self.expression(width, False, 2)}; }}"
        body = f"{early} return {self.expression(width, False, 2)};"
        self._fields, self._variables = saved
        self._functions.append((name, width, argument))
        return f"bit<{width}> {name}(in bit<{argument}> x) {{ {body} }}"

    def _action(self) -> str:
        name = self._name("action")
        widths = [self._rng.choice(_WIDTHS) for _ in range(self._rng.randrange(3))]
        self._variables = [(f"p{index}", width, False) for index, width in enumerate(widths)]
        parameters = ", ".join(f"bit<{width}> p{index}" for index, width in enumerate(widths))
        body = "".join(self._assignment() for _ in range(self._rng.randrange(1, 4)))
        if self._rng.random() < 0.3:
            body += f"if ({self._condition(2)}) {{ {self._assignment()} }} else {{ {self._assignment()} }}"
        self._variables = []
        self._actions.append((name, widths))
        return f"    action {name}({parameters}) {{ {body} }}"

    def _call(self) -> str:
        name, widths = self._rng.choice(self._actions)
        return f"{name}({', '.join(f'{width}w{self._rng.getrandbits(width)}' for width in widths)})"

    def _table(self) -> str:
        name = self._name("table")
        keys = self._rng.sample(self._fields, min(len(self._fields), self._rng.randrange(1, 3)))
        kinds = [self._rng.choice(("exact", "ternary", "range")) for _ in keys]
        entries = ""
        for _ in range(self._rng.randrange(1, 5)):
            key = ", ".join(
                self._keyset(width, signed, kind)
                for (_, width, signed), kind in zip(keys, kinds, strict=True)
            )
            entries += f"({key}): {self._call()}; "
        key = " ".join(f"{field}: {kind};" for (field, _, _), kind in zip(keys, kinds, strict=True))
        actions = " ".join(f"{each};" for each, _ in self._actions)
        self._tables.append(name)
        return (
            f"    table {name} {{ key = {{ {key} }} actions = {{ {actions} NoAction; }}"
            f" const entries = {{ {entries}}} default_action = {self._call()}; }}"
        )

    def _keyset(self, width: int, signed: bool, kind: str) -> str:
        small = max(1, width - 1)
        letter = "s" if signed else "w"
        low, high = sorted(self._rng.getrandbits(small) for _ in range(2))
        if kind == "exact" or signed:
            return f"{width}{letter}{low}"
        if self._rng.random() < 0.2:
            return "_"
        return f"{width}w{low} {'&&&' if kind == 'ternary' else '..'} {width}w{high}"

    def _block(self, depth: int, *, in_control: bool) -> str:
        depth_of_variables = len(self._variables)
        lines = [self._statement(depth, in_control) for _ in range(self._rng.randrange(1, 6))]
        del self._variables[depth_of_variables:]
        return "\n".join(f"        {line}" for line in lines)

    def _statement(self, depth: int, in_control: bool) -> str:
        choice = self._rng.randrange(16)
        if choice == 0:
            width, name = self._rng.choice(_WIDTHS), self._name("v")
            made = f"bit<{width}> {name} = {self.expression(width, False, _DEPTH)};"
            self._variables.append((name, width, False))
            return made
        if choice <= 2 and depth:
            inner = self._block(depth - 1, in_control=in_control)
            other = self._block(depth - 1, in_control=in_control)
            return f"if ({self._condition(_DEPTH)}) {{\n{inner}\n        }} else {{\n{other}\n        }}"
        if choice == 3 and depth:
            return self._switch(depth, in_control)
        if choice == 4:
            return f"hdr.{self._rng.choice(_HEADERS)}.{self._rng.choice(('setValid', 'setInvalid'))}();"
        if choice == 5:
            return f"hdr.items.{self._rng.choice(('push_front', 'pop_front'))}({self._rng.randrange(1, 4)});"
        if choice == 6 and in_control:
            index = f"(bit<32>)({self.expression(8, False, 1)} & 7)"
            value = self.expression(32, False, 2)
            return f"memory.read(cell, {index}); memory.write({index}, cell ^ {value});"
        if choice == 7 and in_control and self._tables:
            table = self._tables.pop()
            return f"if ({table}.apply().hit) {{ {self._assignment()} }}"
        if choice == 8 and in_control and not self._variables:
            return f"{self._call()};"
        if choice == 9:
            name = self._name("i")
            return f"for (bit<8> {name} in 1 .. {self._rng.randrange(1, 6)}) {{ {self._assignment()} }}"
        return self._assignment()

    def _switch(self, depth: int, in_control: bool) -> str:
        width = self._rng.choice((3, 8, 16, 32))
        values = sorted({self._rng.getrandbits(3) for _ in range(3)})
        cases = "".join(
            f"{width}w{value}: {{\n{self._block(depth - 1, in_control=in_control)}\n        }} "
            for value in values
        )
        value = f"{self.expression(width, False, 1)} & {width}w3"
        return f"switch ({value}) {{ {cases}default: {{ {self._assignment()} }} }}"

    def _assignment(self) -> str:
        name, width, signed = self._rng.choice(self._fields)
        if not signed and width > 1 and self._rng.random() < 0.2:
            high, low = sorted((self._rng.randrange(width) for _ in range(2)), reverse=True)
            return f"{name}[{high}:{low}] = {self.expression(high - low + 1, False, _DEPTH)}; "
        return f"{name} = {self.expression(width, signed, _DEPTH)}; "

    def _condition(self, depth: int) -> str:
        choice = self._rng.randrange(6) if depth else 0
        if choice == 1:
            return f"hdr.{self._rng.choice(_HEADERS)}.isValid()" if self._fields else "true"
        if choice == 2:
            return f"!({self._condition(depth - 1)})"
        if choice == 3:
            return f"({self._condition(depth - 1)}) {self._rng.choice(('&&', '||'))} ({self._condition(depth - 1)})"
        width, signed = self._rng.choice(_WIDTHS[1:]), self._rng.random() < 0.3
        left, right = (self.expression(width, signed, max(depth - 1, 0)) for _ in range(2))
        return f"{left} {self._rng.choice(('==', '!=', '<', '<=', '>', '>='))} {right}"

    def expression(self, width: int, signed: bool, depth: int) -> str:
        """An expression of the type bit<width> or int<width>."""
        if depth == 0:
            return self._leaf(width, signed)
        choice = self._rng.randrange(12)
        inner = [self.expression(width, signed, depth - 1) for _ in range(2)]
        if choice <= 4:
            operator = self._rng.choice(("+", "-", "*", "&", "|", "^", "|+|", "|-|"))
            return f"({inner[0]} {operator} {inner[1]})"
        if choice == 5:
            amount = self._rng.choice((f"8w{self._rng.randrange(140)}", f"({self.expression(8, False, 0)})"))
            return f"({inner[0]} {self._rng.choice(('<<', '>>'))} {amount})"
        if choice == 6:
            return f"({self._rng.choice(('~', '-'))}{inner[0]})"
        if choice == 7:
            return f"({self._condition(depth - 1)} ? {inner[0]} : {inner[1]})"
        if choice == 8:
            return f"(({_type(width, signed)})({_type(width, not signed)}){self.expression(width, signed, depth - 1)})"
        if choice == 9 and width > 1:
            left = self._rng.randrange(1, width)
            joined = f"({self.expression(left, False, depth - 1)} ++ {self.expression(width - left, False, depth - 1)})"
            return f"((int<{width}>){joined})" if signed else joined
        if choice == 10 and not signed:
            wide = width + self._rng.randrange(20)
            low = self._rng.randrange(wide - width + 1)
            return f"({self.expression(wide, False, depth - 1)})[{low + width - 1}:{low}]"
        functions = [each for each in self._functions if each[1] == width]
        if functions and not signed:
            name, _, argument = self._rng.choice(functions)
            return f"{name}({self.expression(argument, False, depth - 1)})"
        return self._leaf(width, signed)

    def _leaf(self, width: int, signed: bool) -> str:
        sources = self._fields + self._variables
        if sources and self._rng.random() < 0.7:
            name, other_width, other_signed = self._rng.choice(sources)
            if (other_width, other_signed) == (width, signed):
                return name
            if other_signed == signed:
                return f"(({_type(width, signed)}){name})"
            return f"(({_type(width, signed)})({_type(other_width, signed)}){name})"
        number = self._rng.choice((self._rng.getrandbits(width), 0, 1, (1 << width) - 1)) & ((1 << width) - 1)
        if signed:
            return f"{width}s{number >> 1}"
        return f"{width}w{number}"


def _type(width: int, signed: bool) -> str:
    return f"{'int' if signed else 'bit'}<{width}>"
