"""Random P4 programs that are well-typed: what they compute leaves in the packet, where a difference shows."""

from __future__ import annotations

import random

from fuzz.p4_expressions import DEPTH, WIDTHS, Expressions, typed
from fuzz.p4_tables import MEMORY_CELLS, Tables

_FIELDS_PER_HEADER = 6
_STACK_SIZE = 3
_VARBIT_BYTES = 8
_HASHES = ("crc16", "crc32", "csum16", "xor16", "identity")
_INPUTS = (("ingress_port", 9), ("packet_length", 32), ("instance_type", 32), ("checksum_error", 1))
_HEADERS = ("first", "second", "third")
PORTS = 8
"""Packets leave by the ports below this one."""
CLONE_SESSIONS = (1, 2)
MULTICAST_GROUPS = (1, 2)
"""That a program uses; it uses some that may be missing, too."""

_TEMPLATE = """#include <core.p4>
#include <v1model.p4>
{headers}
header item_t {{ bit<8> v; bit<8> more; }}
header options_t {{ bit<8> length; varbit<{varbit}> data; }}
header sum_t {{ bit<16> value; }}
struct headers_t {{
    first_t first; second_t second; first_t third; item_t[{stack}] items; options_t options; options_t spare; sum_t sum;
}}
struct metadata_t {{ @field_list(1) bit<8> passes; @field_list(1, 2) bit<16> seen; bit<8> ahead; }}
struct learned_t {{ bit<16> seen; bit<8> passes; }}
error {{ Unwanted }}
{functions}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {{
    state start {{
        {first}
        packet.extract(hdr.first);
        transition select({select}) {{ {cases} }}
    }}
    state parse_second {{ packet.extract(hdr.second); {second} transition parse_items; }}
    state parse_items {{
        packet.extract(hdr.items.next);
        transition select(hdr.items.last.more) {{
            0: accept; 1 .. 60: parse_items; 61 .. 160: parse_options; default: reject;
        }}
    }}
    state parse_options {{
        packet.extract(hdr.options, {length});
        transition select(packet.lookahead<bit<8>>(), meta.ahead) {{ {options} default: parse_sum; }}
    }}
    state parse_sum {{ packet.extract(hdr.sum); transition accept; }}
}}
control V(inout headers_t hdr, inout metadata_t meta) {{
    apply {{ verify_checksum(hdr.sum.isValid(), {summed}, hdr.sum.value, HashAlgorithm.csum16); }}
}}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {{
    register<bit<32>>({cells}) memory;
    register<bit<{odd_width}>>({cells}) odd_memory;
    counter({cells}, CounterType.packets_and_bytes) counted;
    meter({cells}, MeterType.bytes) metered;
    bit<32> cell = 0;
    bit<{odd_width}> odd_cell = 0;
    bit<32> hashed = 0;
    bit<8> colour = 0;
{actions}
{tables}
    apply {{
        meta.passes = meta.passes + 1;
        standard_metadata.egress_spec = {port};
{apply}
    }}
}}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {{
    counter({cells}, CounterType.packets_and_bytes) left;
    apply {{
        left.count((bit<32>)(standard_metadata.egress_rid & {last_cell}));
{egress}
    }}
}}
control U(inout headers_t hdr, inout metadata_t meta) {{
    apply {{ update_checksum({update}, {summed}, hdr.sum.value, HashAlgorithm.csum16); }}
}}
control D(packet_out packet, in headers_t hdr) {{
    apply {{
        packet.emit(hdr.first); packet.emit(hdr.second); packet.emit(hdr.third); packet.emit(hdr.items);
        packet.emit(hdr.options); packet.emit(hdr.spare); packet.emit(hdr.sum);
    }}
}}
V1Switch(P(), V(), I(), E(), U(), D()) main;
"""


def random_program(rng: random.Random, *, for_loops: bool = True) -> str:
    """The text of a program. p4c takes it without `for_loops`."""
    return _Generator(rng, for_loops=for_loops).program()


class _Generator:
    def __init__(self, rng: random.Random, *, for_loops: bool) -> None:
        self._rng = rng
        self._for_loops = for_loops
        self._scope = Expressions(rng)
        self._tables = Tables(rng, self._scope)
        self._names = 0

    def program(self) -> str:
        rng, scope = self._rng, self._scope
        headers = "\n".join(self._header(name) for name in ("first", "second"))
        firsts = [each for each in scope.fields if "first" in each[0]]
        scope.fields += [(name.replace("first", "third"), width, signed) for name, width, signed in firsts]
        functions = "\n".join(self._function() for _ in range(rng.randrange(3)))
        select, cases = self._select()
        summed = self._summed()
        scope.fields += [("meta.seen", 16, False), ("meta.ahead", 8, False)]
        scope.fields += [(f"hdr.items[{index}].v", 8, False) for index in range(_STACK_SIZE)]
        first, second = self._parser_statement(), self._parser_statement()
        scope.inputs += [(f"standard_metadata.{name}", width, False) for name, width in _INPUTS]
        valid = [f"hdr.{name}.isValid()" for name in (*_HEADERS, "options", "items[0]", "sum")]
        compared = ["hdr.first == hdr.third", "hdr.options == hdr.spare", "hdr.items[0] != hdr.items[1]"]
        errors = [f"standard_metadata.parser_error == error.{name}" for name in ("NoError", "Unwanted")]
        scope.conditions += [*valid, *compared, *errors]
        actions = "\n".join(self._action() for _ in range(rng.randrange(1, 4)))
        tables = "\n".join(self._tables.table(self._name("table")) for _ in range(rng.randrange(4)))
        apply = self._block(2, in_ingress=True)
        return _TEMPLATE.format(
            headers=headers,
            varbit=_VARBIT_BYTES * 8,
            stack=_STACK_SIZE,
            functions=functions,
            first=first,
            second=second,
            length=f"(bit<32>)(hdr.items.last.more & {rng.choice((3, 7, 15))}) << 3",
            select=select,
            cases=cases,
            options=self._select_two(),
            summed=summed,
            update=rng.choice(("true", "hdr.sum.isValid()", "hdr.first.isValid()")),
            cells=MEMORY_CELLS,
            last_cell=MEMORY_CELLS - 1,
            odd_width=rng.choice(WIDTHS),
            port=rng.randrange(PORTS),
            actions=actions,
            tables=tables,
            apply=apply,
            egress=self._block(2, in_ingress=False),
        )

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    # ---- headers and the parser

    def _header(self, name: str) -> str:
        widths = [self._rng.choice(WIDTHS) for _ in range(self._rng.randrange(1, _FIELDS_PER_HEADER))]
        if excess := sum(widths) % 8:
            widths.append(8 - excess)
        lines = []
        for index, width in enumerate(widths):
            signed = width > 1 and self._rng.random() < 0.2
            self._scope.fields.append((f"hdr.{name}.f{index}", width, signed))
            lines.append(f"{typed(width, signed)} f{index};")
        return f"header {name}_t {{ {' '.join(lines)} }}"

    def _select(self) -> tuple[str, str]:
        firsts = [each for each in self._scope.fields if "first" in each[0]]
        field, width, signed = self._rng.choice(firsts)
        text = f"(bit<{width}>){field}" if signed else field
        targets = ("parse_second", "parse_items", "parse_second")
        choices = " ".join(f"{self._choice(width)}: {target};" for target in targets)
        other = self._rng.choice(("accept", "parse_second", "parse_items"))
        return text, f"{choices} default: {other};"

    def _select_two(self) -> str:
        targets = ("accept", "reject", "parse_sum")
        return " ".join(
            f"({self._choice(8)}, {self._choice(8)}): {self._rng.choice(targets)};"
            for _ in range(self._rng.randrange(3))
        )

    def _choice(self, width: int) -> str:
        low, high = sorted(self._rng.getrandbits(width) for _ in range(2))
        forms = (
            f"{width}w{low}",
            f"{width}w{low} &&& {width}w{high}",
            f"{width}w{low} .. {width}w{min(high, low + 20)}",
            "_",
        )
        return self._rng.choice(forms[: 4 if self._rng.random() < 0.3 else 3])

    def _parser_statement(self) -> str:
        width = self._rng.choice((1, 5, 8, 17, 40))
        ahead = f"(bit<8>)packet.lookahead<bit<{width}>>()" if width != 8 else "packet.lookahead<bit<8>>()"
        return self._rng.choice(
            (
                "",
                f"meta.ahead = {ahead};",
                f"packet.advance({8 * self._rng.randrange(4)});",
                f"meta.ahead = {ahead}; verify(meta.ahead != {self._rng.randrange(256)}, error.Unwanted);",
                f"meta.seen = {self._scope.expression(16, False, 2)};",
            )
        )

    def _summed(self) -> str:
        """What a checksum covers: whole bytes, as csum16 wants them."""
        fields = [name for name, width, _ in self._scope.fields if width % 8 == 0 and "third" not in name]
        chosen = self._rng.sample(fields, min(len(fields), 3))
        return f"{{ {', '.join([*chosen, '16w0x1234'])} }}"

    # ---- functions and actions

    def _function(self) -> str:
        scope = self._scope
        name, width, argument = self._name("function"), self._rng.choice(WIDTHS), self._rng.choice(WIDTHS)
        saved = scope.fields, scope.variables
        scope.fields, scope.variables = [], [("x", argument, False)]
        early = f"if ({scope.condition(2)}) {{ return {scope.expression(width, False, 2)}; }}"
        body = f"{early} return {scope.expression(width, False, 2)};"
        scope.fields, scope.variables = saved
        scope.functions.append((name, width, argument))
        return f"bit<{width}> {name}(in bit<{argument}> x) {{ {body} }}"

    def _action(self) -> str:
        scope = self._scope
        name = self._name("action")
        widths = [self._rng.choice(WIDTHS) for _ in range(self._rng.randrange(3))]
        scope.variables = [(f"p{index}", width, False) for index, width in enumerate(widths)]
        parameters = ", ".join(f"bit<{width}> p{index}" for index, width in enumerate(widths))
        body = "".join(scope.assignment() for _ in range(self._rng.randrange(1, 4)))
        if self._rng.random() < 0.3:
            body += f"if ({scope.condition(2)}) {{ {scope.assignment()} }} else {{ {scope.assignment()} }}"
        if self._rng.random() < 0.3:
            body += self._extern()
        scope.variables = []
        self._tables.actions.append((name, widths))
        return f"    action {name}({parameters}) {{ {body} }}"

    # ---- statements

    def _block(self, depth: int, *, in_ingress: bool) -> str:
        depth_of_variables = len(self._scope.variables)
        lines = [self._statement(depth, in_ingress) for _ in range(self._rng.randrange(1, 5))]
        del self._scope.variables[depth_of_variables:]
        return "\n".join(f"        {line}" for line in lines)

    def _statement(self, depth: int, in_ingress: bool) -> str:
        rng, scope = self._rng, self._scope
        choice = rng.randrange(20)
        if choice == 0:
            width, name = rng.choice(WIDTHS), self._name("v")
            made = f"bit<{width}> {name} = {scope.expression(width, False, DEPTH)};"
            scope.variables.append((name, width, False))
            return made
        if choice <= 2 and depth:
            inner = self._block(depth - 1, in_ingress=in_ingress)
            other = self._block(depth - 1, in_ingress=in_ingress)
            return f"if ({scope.condition(DEPTH)}) {{\n{inner}\n        }} else {{\n{other}\n        }}"
        if choice == 3 and depth:
            return self._switch(depth, in_ingress)
        if choice == 4:
            return f"hdr.{rng.choice((*_HEADERS, 'sum'))}.{rng.choice(('setValid', 'setInvalid'))}();"
        if choice == 5:
            return self._headers_moved()
        if choice <= 7 and in_ingress:
            return self._extern()
        if choice <= 9 and in_ingress:
            return self._tables.applied()
        if choice == 10 and in_ingress and not scope.variables:
            return f"{self._tables.call()};"
        if choice == 11 and self._for_loops:
            name = self._name("i")
            return f"for (bit<8> {name} in 1 .. {rng.randrange(1, 6)}) {{ {scope.assignment()} }}"
        if choice == 12:
            return self._way(in_ingress)
        return scope.assignment()

    def _switch(self, depth: int, in_ingress: bool) -> str:
        width = self._rng.choice((3, 8, 16, 32))
        values = sorted({self._rng.getrandbits(3) for _ in range(3)})
        cases = "".join(
            f"{width}w{value}: {{\n{self._block(depth - 1, in_ingress=in_ingress)}\n        }} " for value in values
        )
        value = f"{self._scope.expression(width, False, 1)} & {width}w3"
        return f"switch ({value}) {{ {cases}default: {{ {self._scope.assignment()} }} }}"

    def _headers_moved(self) -> str:
        count = self._rng.randrange(1, _STACK_SIZE + 1)
        return self._rng.choice(
            (
                f"hdr.items.{self._rng.choice(('push_front', 'pop_front'))}({count});",
                "hdr.third = hdr.first;",
                "hdr.first = hdr.third;",
                "hdr.spare = hdr.options;",
                "hdr.options.setInvalid();",
                "hdr.items[2] = hdr.items[0];",
            )
        )

    def _extern(self) -> str:
        """What keeps state, and hashes."""
        scope, last = self._scope, MEMORY_CELLS - 1
        index = f"(bit<32>)({scope.expression(8, False, 1)} & {last})"
        name, width, signed = self._rng.choice(scope.fields)
        hashed = f"hash(hashed, HashAlgorithm.{self._rng.choice(_HASHES)}, 32w0, {self._hashed()}, 32w0xffff)"
        result = "(bit<" + f"{width}>)hashed" if width != 32 else "hashed"
        stored = f"(int<{width}>)({result})" if signed else result
        return self._rng.choice(
            (
                f"memory.read(cell, {index}); memory.write({index}, cell ^ {scope.expression(32, False, 2)});",
                f"odd_memory.read(odd_cell, {index}); odd_memory.write({index}, odd_cell + 1);",
                f"counted.count({index});",
                f"metered.execute_meter({index}, colour); meta.ahead = colour;",
                f"{hashed}; {name} = {stored};",
                "digest<learned_t>(1, { meta.seen, meta.passes });",
                f"assert({scope.condition(1)} || meta.passes < 200);",
            )
        )

    def _hashed(self) -> str:
        chosen = [self._rng.choice(self._scope.fields)[0] for _ in range(self._rng.randrange(1, 4))]
        return f"{{ {', '.join(chosen)} }}"

    def _way(self, in_ingress: bool) -> str:
        """Where the packet goes, and its copies."""
        rng, scope = self._rng, self._scope
        session, fields = rng.randrange(CLONE_SESSIONS[-1] + 2), rng.choice((1, 2))
        truncated = f"truncate(32w{rng.choice((1, 20, 60))});"
        drop = f"if ({scope.condition(1)}) {{ mark_to_drop(standard_metadata); }}"
        fresh = "if (standard_metadata.instance_type == 0 && meta.passes < 3)"
        if in_ingress:
            return rng.choice(
                (
                    f"standard_metadata.egress_spec = (bit<9>)({scope.expression(3, False, 1)});",
                    f"standard_metadata.mcast_grp = 16w{rng.randrange(MULTICAST_GROUPS[-1] + 2)};",
                    f"{fresh} {{ clone_preserving_field_list(CloneType.I2E, {session}, {fields}); }}",
                    "if (meta.passes < 3) { resubmit_preserving_field_list(1); }",
                    f"if ({scope.condition(1)}) {{ exit; }}",
                    truncated,
                    drop,
                )
            )
        return rng.choice(
            (
                f"{fresh} {{ clone_preserving_field_list(CloneType.E2E, {session}, {fields}); }}",
                "if (meta.passes < 3) { recirculate_preserving_field_list(1); }",
                truncated,
                drop,
            )
        )
