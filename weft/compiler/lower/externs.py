"""v1model's externs as BMv2 primitives (BMv2's simple_switch document and JSON format)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from weft.compiler import ast
from weft.compiler.ir import (
    Calculation,
    Const,
    Convert,
    Expr,
    FieldList,
    FieldRef,
    Operand,
    Primitive,
    Reference,
    UnionValid,
    Valid,
    Vector,
    Verify,
)
from weft.compiler.lower import build
from weft.compiler.lower.statements import Statements
from weft.compiler.lower.storage import SCALARS, scalar_type
from weft.compiler.lower.values import (
    ExternValue,
    HeaderLiteral,
    HeaderValue,
    StackValue,
    StructValue,
    TextValue,
    UnionValue,
)
from weft.compiler.types import BOOL, BitsType, EnumType, StructType, Type, bits
from weft.compiler.warnings.kinds import Kind

_CLONES = {"I2E": ("ingress", "clone_ingress_pkt_to_egress"), "E2E": ("egress", "clone_egress_pkt_to_egress")}
_PIPELINES = ("ingress", "egress")
Arguments = Sequence[ast.Expression | None]


class Externs(Statements):
    """`extern_call` for every extern function and method of core.p4 and v1model.p4."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.digest_types: dict[str, Type] = {}
        self._list_digests = 0
        self.extern_functions: set[str] = set()

    def extern_call(self, call: ast.Call, arguments: Arguments) -> Any:
        """Emit the primitive of a call; returns its result where it has one."""
        name = call.target.name
        if call.kind == "method":
            callee = call.callee
            assert isinstance(callee, ast.Member)
            receiver = self.value(callee.base)
            if not isinstance(receiver, ExternValue):
                self.refuse("this is not an extern's instance", callee.base)
            handler = self._METHODS.get((receiver.kind, name))
            if handler is None:
                self.refuse(f"v1model on BMv2 has no '{receiver.kind}.{name}'", call)
            self._only_in_pipelines(call, f"{receiver.kind}.{name}")
            return handler(self, call, receiver, arguments)
        if self.place != "parser" and name != "static_assert":
            self.extern_functions.add(name)
        handler = self._FUNCTIONS.get(name)
        if handler is None:
            self.refuse(f"v1model on BMv2 has no extern function '{name}'", call)
        return handler(self, call, arguments)

    def _only_in_pipelines(self, call: ast.Call, what: str) -> None:
        if self.place not in _PIPELINES:
            self.refuse(f"BMv2 has '{what}' in ingress and egress only, not in the {self.place}", call)

    def _primitive(self, call: ast.Call, name: str, *operands: Operand) -> None:
        self.emit(Primitive(name, list(operands), call.span))

    # ------------------------------------------------------------------------------ arguments

    def _input(self, argument: ast.Expression | None) -> Expr:
        assert argument is not None
        return self.simple(self.scalar(argument), argument.span)

    def _typed_input(self, argument: ast.Expression | None, type_: Type) -> Expr:
        """An input as an unsigned value of the primitive's own width when it is a bool."""
        assert argument is not None
        value = self.scalar(argument)
        if value.type is BOOL:
            value = build.convert(value, bits(1))
        elif isinstance(type_, BitsType) and value.type != type_:
            value = build.convert(value, type_)
        return self.simple(value, argument.span)

    def _output(self, call: ast.Call, argument: ast.Expression | None, type_: Type) -> _Output:
        """Where a primitive writes its result; afterwards `_Output.store`."""
        target = self.target(argument) if argument is not None else None
        scalar = scalar_type(type_)
        if scalar is None:
            self.refuse(f"BMv2 cannot write a result of type '{type_}'", argument or call)
        wanted = bits(1) if scalar is BOOL else scalar
        if isinstance(target, FieldRef) and target.type == wanted:
            return _Output(self, target, None, call)
        return _Output(self, self.temporary(wanted), target, call)

    def enum_member(self, argument: ast.Expression | None) -> str:
        """The name of an enum's member given as an argument."""
        assert argument is not None
        type_ = self.type_of(argument)
        value = self.value(argument)
        if not isinstance(value, Const) or not isinstance(type_, EnumType):
            self.refuse("this argument must be known at compile time", argument)
        return type_.member_of(int(value.value))

    def integer(self, argument: ast.Expression | None) -> int:
        """A compile-time integer argument."""
        assert argument is not None
        value = self.value(argument)
        if not isinstance(value, Const):
            self.refuse("this argument must be known at compile time", argument)
        return int(value.value)

    # ------------------------------------------------------------------------------ state

    def _register_read(self, call: ast.Call, register: ExternValue, arguments: Arguments) -> None:
        index = self._input(arguments[1])
        output = self._output(call, arguments[0], self._element(register))
        self._primitive(
            call, "register_read", output.field, Reference("register_array", register.name), index
        )
        output.store()

    def _element(self, register: ExternValue) -> Type:
        element: Type = register.data["element"]
        return element

    def _register_write(self, call: ast.Call, register: ExternValue, arguments: Arguments) -> None:
        index = self._input(arguments[0])
        scalar = scalar_type(self._element(register))
        value = self._typed_input(arguments[1], scalar or bits(1))
        self._primitive(call, "register_write", Reference("register_array", register.name), index, value)

    def _count(self, call: ast.Call, counter: ExternValue, arguments: Arguments) -> None:
        self._primitive(call, "count", Reference("counter_array", counter.name), self._input(arguments[0]))

    def _direct_count(self, call: ast.Call, counter: ExternValue, arguments: Arguments) -> None:
        """Nothing: BMv2 counts on every hit of a table with counters."""
        del call, counter, arguments

    def _execute_meter(self, call: ast.Call, meter: ExternValue, arguments: Arguments) -> None:
        index = self._input(arguments[0])
        type_ = self.type_of(arguments[1]) if arguments[1] is not None else bits(32)
        output = self._output(call, arguments[1], type_)
        self._primitive(call, "execute_meter", Reference("meter_array", meter.name), index, output.field)
        output.store()

    def _direct_meter_read(self, call: ast.Call, meter: ExternValue, arguments: Arguments) -> None:
        """BMv2 writes a direct meter's colour when the table hits, before the action runs."""
        argument = arguments[0]
        target = self.target(argument) if argument is not None else None
        if not isinstance(target, FieldRef):
            self.refuse("BMv2 writes a direct meter's result into a field only", argument or call)
        known = meter.data.setdefault("result", target)
        if known != target:
            self.refuse(f"direct meter '{meter.name}' is read into two different fields", call)

    # ------------------------------------------------------------------------------ arithmetic

    def _random(self, call: ast.Call, arguments: Arguments) -> None:
        self._only_in_pipelines(call, "random")
        low, high = self._input(arguments[1]), self._input(arguments[2])
        output = self._output(call, arguments[0], self.type_of(self._present(arguments[0], call)))
        self._primitive(call, "modify_field_rng_uniform", output.field, low, high)
        output.store()

    def _present(self, argument: ast.Expression | None, call: ast.Call) -> ast.Expression:
        if argument is None:
            self.refuse("this argument cannot be ignored", call)
        return argument

    def _hash(self, call: ast.Call, arguments: Arguments) -> None:
        self._only_in_pipelines(call, "hash")
        algorithm = self.enum_member(arguments[1])
        base = self._input(arguments[2])
        data = self._present(arguments[3], call)
        value = self.value(data)
        with self.collecting() as steps:
            limit = self._input(arguments[4])
        if steps:
            value = self.saved(value)
            self.out += steps
        inputs = self._hash_inputs(value, data, Counter())
        output = self._output(call, arguments[0], self.type_of(self._present(arguments[0], call)))
        calculation = self.calculation(algorithm, inputs, False, None)
        self._primitive(
            call,
            "modify_field_with_hash_based_offset",
            output.field,
            base,
            Reference("calculation", calculation),
            limit,
        )
        output.store()

    def _hash_inputs(self, value: Any, where: ast.Expression, used: Counter[Type]) -> list[Expr]:
        """BMv2 leaves an invalid header, and each of its fields, out of a calculation.

        What the program names as a header stays one. A field that it names by itself is a value, which counts
        whatever it is (specification, section 8.18: unspecified in an invalid header), so it is copied, as by p4c.
        The copies are needed until the hash is computed, so all calls share them; `used` counts those of this one.
        """
        if isinstance(value, HeaderValue | UnionValue | StackValue):
            return self.calculation_inputs(value, where)
        if isinstance(value, StructValue):
            return [each for part in value.fields.values() for each in self._hash_inputs(part, where, used)]
        hashed: list[Expr] = []
        for data in self.calculation_inputs(value, where):
            if isinstance(data, FieldRef) and data.header != SCALARS:
                copy = self.storage.reused(data.type, used[data.type])
                used[data.type] += 1
                self.assign(copy, data, where.span)
                data = copy
            hashed.append(data)
        return hashed

    def calculation(self, algorithm: str, inputs: list[Expr], payload: bool, call: ast.Call | None) -> str:
        """Declare a calculation and return its name."""
        name = self.storage.unique("calc")
        span = call.span if call is not None else None
        self.program.calculations.append(Calculation(name, algorithm, inputs, payload, span))
        return name

    def calculation_inputs(self, value: Any, where: ast.Node, simple_only: bool = False) -> list[Expr]:
        """The scalars of a list, struct or header; computed ones go through variables unless `simple_only`."""
        inputs: list[Expr] = []
        for part in self.leaves(value, where):
            if isinstance(part, Const):
                inputs.append(part if part.type is not BOOL else build.constant(part.value, bits(1)))
            elif isinstance(part, FieldRef):
                inputs.append(part)
            elif simple_only:
                split = bit_parts(part)
                if split is not None:
                    inputs += split
                    continue
                self.refuse("BMv2 takes fields and constants here, no computations", where)
            else:
                copy = self.temporary(part.type)
                self.assign(copy, part, where.span)
                inputs.append(copy)
        return inputs

    def leaves(self, value: Any, where: ast.Node) -> list[Expr]:
        """All scalars within a value, in order."""
        if isinstance(value, Expr):
            return [value]
        parts: list[Any]
        if isinstance(value, StructValue | HeaderValue | HeaderLiteral):
            parts = list((value.fields or {}).values())
        elif isinstance(value, StackValue):
            parts = list(value.elements)
        elif isinstance(value, UnionValue):
            parts = list(value.members.values())
        else:
            self.refuse("BMv2 cannot take this value apart", where)
        return [leaf for part in parts for leaf in self.leaves(part, where)]

    # ------------------------------------------------------------------------------ the packet's fate

    def _mark_to_drop(self, call: ast.Call, arguments: Arguments) -> None:
        self._only_in_pipelines(call, "mark_to_drop")
        if not arguments:
            self.refuse("mark_to_drop() without its argument is obsolete: pass standard_metadata", call)
        self._primitive(call, "mark_to_drop", Reference("header", "standard_metadata"))

    def _truncate(self, call: ast.Call, arguments: Arguments) -> None:
        self._only_in_pipelines(call, "truncate")
        self._primitive(call, "truncate", self._input(arguments[0]))

    def _digest(self, call: ast.Call, arguments: Arguments) -> None:
        if self.place != "ingress":
            self.refuse("BMv2 has 'digest' in ingress only", call)
        receiver = self._input(arguments[0])
        data = self._present(arguments[1], call)
        value = self.value(data)
        type_ = self.type_of(data)
        if isinstance(type_, StructType):
            name = type_.declaration.external_name()
        else:
            # As p4c numbers digests of lists.
            name = f"digest_{self._list_digests}"
            self._list_digests += 1
        self.digest_types.setdefault(name, type_)
        # BMv2 reads the fields at the end of ingress: the values of now go into variables.
        elements: list[Expr] = []
        for leaf in self.leaves(value, data):
            copy = self.temporary(leaf.type, "digest_field")
            self.assign(copy, leaf, call.span)
            elements.append(copy)
        identifier = len(self.program.learn_lists) + 1
        self.program.learn_lists.append(FieldList(identifier, name, elements, data.span))
        self._primitive(call, "generate_digest", receiver, Const(identifier, bits(32)))

    def _clone(self, call: ast.Call, arguments: Arguments) -> None:
        self._clone_with_list(call, arguments, self._empty_list())

    def _clone_preserving(self, call: ast.Call, arguments: Arguments) -> None:
        self._clone_with_list(call, arguments, self._field_list(arguments[2], call))

    def _clone_obsolete(self, call: ast.Call, arguments: Arguments) -> None:
        self._no_data(call, arguments[2], "clone_preserving_field_list")
        self._clone_with_list(call, arguments, self._empty_list())

    def _clone_with_list(self, call: ast.Call, arguments: Arguments, list_id: int) -> None:
        kind = self.enum_member(arguments[0])
        place, primitive = _CLONES[kind]
        if self.place != place:
            self.refuse(f"a clone of type {kind} is possible in {place} only, not in {self.place}", call)
        session = self._input(arguments[1])
        self._primitive(call, primitive, session, Const(list_id, bits(32)))

    def _resubmit_preserving(self, call: ast.Call, arguments: Arguments) -> None:
        self._resubmit_with_list(call, self._field_list(arguments[0], call))

    def _resubmit_obsolete(self, call: ast.Call, arguments: Arguments) -> None:
        self._no_data(call, arguments[0], "resubmit_preserving_field_list")
        self._resubmit_with_list(call, self._empty_list())

    def _resubmit_with_list(self, call: ast.Call, list_id: int) -> None:
        if self.place != "ingress":
            self.refuse("'resubmit' is possible in ingress only", call)
        self._primitive(call, "resubmit", Const(list_id, bits(32)))

    def _recirculate_preserving(self, call: ast.Call, arguments: Arguments) -> None:
        self._recirculate_with_list(call, self._field_list(arguments[0], call))

    def _recirculate_obsolete(self, call: ast.Call, arguments: Arguments) -> None:
        self._no_data(call, arguments[0], "recirculate_preserving_field_list")
        self._recirculate_with_list(call, self._empty_list())

    def _recirculate_with_list(self, call: ast.Call, list_id: int) -> None:
        if self.place != "egress":
            self.refuse("'recirculate' is possible in egress only", call)
        self._primitive(call, "recirculate", Const(list_id, bits(32)))

    def _no_data(self, call: ast.Call, data: ast.Expression | None, instead: str) -> None:
        if data is not None and self.leaves(self.value(data), data):
            self.refuse(f"BMv2 preserves metadata by annotation: use {instead} and @field_list", call)

    def _field_list(self, argument: ast.Expression | None, call: ast.Call) -> int:
        index = self.integer(argument)
        name = f"field_list{index}"
        for known in self.program.field_lists:
            if known.name == name:
                return known.id
        self.diagnostics.warning(
            f"no metadata field has @field_list({index}): nothing is preserved", call.span, Kind.MISSING
        )
        return self._new_list(name)

    def _empty_list(self) -> int:
        for known in self.program.field_lists:
            if known.name == "empty":
                return known.id
        return self._new_list("empty")

    def _new_list(self, name: str) -> int:
        identifier = len(self.program.field_lists) + 1
        self.program.field_lists.append(FieldList(identifier, name, [], None))
        return identifier

    # ------------------------------------------------------------------------------ debugging

    def _verify(self, call: ast.Call, arguments: Arguments) -> None:
        if self.place != "parser":
            self.refuse("'verify' is possible in parsers only", call)
        condition = self.scalar(self._present(arguments[0], call))
        error = self.scalar(self._present(arguments[1], call))
        if isinstance(condition, Const) and condition.value:
            return
        self.emit(Verify(condition, error, call.span))

    def _assert(self, call: ast.Call, arguments: Arguments) -> None:
        self._primitive(call, call.target.name, self.scalar(self._present(arguments[0], call)))

    def _log_msg(self, call: ast.Call, arguments: Arguments) -> None:
        message = self.value(self._present(arguments[0], call))
        if not isinstance(message, TextValue):
            self.refuse("the message of log_msg is a string literal", call)
        items: list[Expr] = []
        if len(arguments) > 1 and arguments[1] is not None:
            items = [
                build.convert(leaf, bits(1)) if isinstance(leaf, Valid | UnionValid) else leaf
                for leaf in self.leaves(self.value(arguments[1]), call)
            ]
        self._primitive(call, "log_msg", Reference("string", message.text), Vector(tuple(items)))

    def _static_assert(self, call: ast.Call, arguments: Arguments) -> Expr:
        del arguments
        return build.constant(bool(call.value), BOOL)

    def _checksum(self, call: ast.Call, arguments: Arguments) -> None:
        del arguments
        where = "VerifyChecksum" if call.target.name.startswith("verify") else "ComputeChecksum"
        self.refuse(f"'{call.target.name}' is possible in {where} controls only", call)

    _METHODS: ClassVar[dict[tuple[str, str], Any]] = {
        ("register", "read"): _register_read,
        ("register", "write"): _register_write,
        ("counter", "count"): _count,
        ("direct_counter", "count"): _direct_count,
        ("meter", "execute_meter"): _execute_meter,
        ("direct_meter", "read"): _direct_meter_read,
    }
    _FUNCTIONS: ClassVar[dict[str, Any]] = {
        "random": _random,
        "hash": _hash,
        "mark_to_drop": _mark_to_drop,
        "truncate": _truncate,
        "digest": _digest,
        "clone": _clone,
        "clone3": _clone_obsolete,
        "clone_preserving_field_list": _clone_preserving,
        "resubmit": _resubmit_obsolete,
        "resubmit_preserving_field_list": _resubmit_preserving,
        "recirculate": _recirculate_obsolete,
        "recirculate_preserving_field_list": _recirculate_preserving,
        "verify": _verify,
        "assert": _assert,
        "assume": _assert,
        "log_msg": _log_msg,
        "static_assert": _static_assert,
        "verify_checksum": _checksum,
        "verify_checksum_with_payload": _checksum,
        "update_checksum": _checksum,
        "update_checksum_with_payload": _checksum,
    }


def bit_parts(value: Expr) -> list[Expr] | None:
    """A widening cast of a field as zero bits and the field: what a calculation can read."""
    if isinstance(value, Convert) and isinstance(value.operand, FieldRef):
        source, target = value.operand.type, value.type
        if isinstance(source, BitsType) and isinstance(target, BitsType) and not source.signed:
            extra = target.width - source.width
            if extra > 0:
                return [Const(0, bits(extra)), value.operand]
    return None


class _Output:
    """A primitive's result: written to `field`, then moved to the real target by `store`."""

    def __init__(self, lowerer: Externs, field: FieldRef, target: Any, call: ast.Call) -> None:
        self.lowerer = lowerer
        self.field = field
        self.target = target
        self.call = call

    def store(self) -> None:
        """Move the result to where it belongs."""
        if self.target is not None:
            self.lowerer.assign(self.target, self.field, self.call.span)
