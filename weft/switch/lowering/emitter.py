"""Writes one function's IR: memory access by byte offset, integers of any width, blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from llvmlite import ir

from weft.switch.bmv2json import Action, FieldRef, Program
from weft.switch.drop_sites import Key
from weft.switch.lowering.assumptions import Assumptions
from weft.switch.lowering.bounds import BoundsChecks
from weft.switch.lowering.in_place import HeadersInPlace
from weft.switch.lowering.known_memory import KnownMemory, size_bytes
from weft.switch.lowering.layout import ActionDataLayout, StateLayout, Temporary
from weft.switch.lowering.ranges import RangeAnalysis
from weft.switch.lowering.register_layout import RegisterLayout
from weft.switch.trace.places import Places

Value: TypeAlias = Any
"""An llvmlite IR value; llvmlite has no type annotations."""

I1 = ir.IntType(1)
I8 = ir.IntType(8)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
POINTER = ir.PointerType()
VOID = ir.VoidType()


def integer(width_bits: int) -> Any:
    """The LLVM type of an integer."""
    return ir.IntType(width_bits)


def constant(width_bits: int, value: int) -> Value:
    """`value` modulo 2**width_bits."""
    return ir.Constant(ir.IntType(width_bits), value & ((1 << width_bits) - 1))


@dataclass(slots=True)
class ModuleContext:
    """Data shared by all functions of a module. `abi` maps "Struct.member" to byte offsets (switch/abi.hpp)."""

    program: Program
    abi: dict[str, int]
    layout: StateLayout
    module: Any
    ranges: RangeAnalysis
    registers: dict[str, RegisterLayout]
    registers_bytes: int
    counter_offsets: dict[str, int]
    counter_count: int
    meter_offsets: dict[str, int]
    meter_count: int
    value_set_indices: dict[str, int]
    action_data: dict[int, ActionDataLayout]
    called_once: frozenset[int]
    zeroed: Mapping[str, Sequence[tuple[str, str]]]
    """Temporaries that are 0 at the start of a pipeline, by pipeline."""
    """Ids of the actions that are inlined in the only pipeline that calls them."""
    log_formats: list[str]
    checked: bool
    places: Places | None = None
    """Places where the code reports to a trace; None for plain code."""
    drop_sites: Mapping[Key, int] = field(default_factory=dict)
    """Numbers of the sites that may mark a packet to be dropped."""
    counts: str | None = None
    """Symbol of the counts that the code keeps in place of reports (`weft.switch.coverage.counts`)."""
    in_place: HeadersInPlace | None = None
    """Headers written to, for code that writes them back in place."""
    assumed: Assumptions | None = None
    """Contents of tables that the code takes for granted."""

    def runtime_function(self, name: str, result: Any, arguments: list[Any]) -> Value:
        """A declaration of a function of the C++ runtime (switch/runtime.cpp) or of the C library."""
        known = self.module.globals.get(name)
        return known if known is not None else ir.Function(self.module, ir.FunctionType(result, arguments), name)

    def constant_bytes(self, data: bytes) -> Value:
        """The address of a private constant."""
        kind = ir.ArrayType(I8, len(data))
        variable = ir.GlobalVariable(self.module, kind, self.module.get_unique_name("bytes"))
        variable.linkage = "private"
        variable.global_constant = True
        variable.initializer = ir.Constant(kind, bytearray(data))
        variable.align = 8
        variable.type = POINTER
        return variable


@dataclass(frozen=True, slots=True)
class Lane:
    """The current lane in a loop over lanes: its number (i64), and the stride in bytes of fields and arrays.

    `inside`: all register indices are in range.
    """

    number: Value
    fields: Mapping[FieldRef, int]
    arrays: Mapping[str, int]
    inside: bool


class Emitter:
    """Appends instructions to a function; `state` and `context` are its PacketState* and SwitchContext*."""

    def __init__(self, shared: ModuleContext, function: Value, state: Value, context: Value | None) -> None:
        self.shared = shared
        self.program = shared.program
        self.layout = shared.layout
        self.function = function
        self.state = state
        self.context = context
        self.action: Action | None = None
        self.action_data: Value | None = None
        self.action_layout: ActionDataLayout | None = None
        self.temporaries: dict[Temporary, Value] = {}
        """Addresses of the temporaries, in a pipeline and its actions."""
        self.lookahead_base: tuple[Value, Value] | None = None
        """Address of the next byte to extract in a parser, and the number of bytes left (i32)."""
        self.lane: Lane | None = None
        self.place = str(function.name)
        """Name of the code being lowered, for messages of bounds checks."""
        self._entry = function.append_basic_block("entry")
        self.builder = ir.IRBuilder(self._entry)
        self._bounds = BoundsChecks(self) if shared.checked else None
        self._addresses: dict[tuple[Value, Value, int], Value] = {}
        self._derived: dict[Value, tuple[Value, int]] = {}
        self._memory = KnownMemory(function.args) if not shared.checked else None
        self._swapped: dict[Value, Value] = {}
        self._made: dict[tuple[object, ...], Value] = {}
        self.extent(state, shared.layout.size_bytes, "the packet's state")
        if context is not None:
            self.extent(context, shared.abi["sizeof(SwitchContext)"], "the switch's context")

    # ---- blocks

    def block(self, name: str) -> Value:
        """A new basic block."""
        return self.function.append_basic_block(name)

    def continue_in(self, block: Value) -> None:
        """Append to `block` from here on."""
        self.builder.position_at_end(block)

    def fall_into(self, block: Value) -> None:
        """Branch to `block` and continue there."""
        self.builder.branch(block)
        self.continue_in(block)

    @contextmanager
    def when(self, condition: Value, likely: bool | None = None) -> Iterator[None]:
        """Instructions that run only if `condition` (i1) holds."""
        with self.builder.if_then(condition, likely=likely):
            yield

    def local(self, size_bytes: int, alignment: int = 8) -> Value:
        """Stack memory of the function."""
        with self.builder.goto_entry_block():
            slot = self.builder.alloca(ir.ArrayType(I8, size_bytes))
        slot.align = alignment
        slot.type = POINTER  # llvmlite types it by what it points to
        return self.extent(slot, size_bytes, "memory of the function")

    def make_temporaries(self) -> None:
        """Allocate a pipeline's temporaries, uninitialised: every path writes them before reading them, or they
        are `zeroed`. Checked programs fill them with a pattern, which exposes violations.
        """
        for kind, total_bytes in self.layout.temporaries_bytes.items():
            self.temporaries[kind] = memory = self.local(total_bytes)
            if self._memory is not None:
                self._memory.know(memory)
            else:
                self.fill(memory, 0xA5, total_bytes)

    # ---- bounds checks (no effect unless the program is checked)

    def extent(self, address: Value, size_bytes: int | Value, name: str) -> Value:
        """Declare that an object of `size_bytes` (a number or i64) begins at `address`."""
        if self._bounds is not None:
            self._bounds.declare(address, size_bytes, name)
        return address

    def part(self, address: Value, size_bytes: int, name: str) -> Value:
        """Return `address` as the start of a separate part of its object; accesses may not leave the part."""
        if self._bounds is None:
            return address
        self._bounds.check(address, size_bytes)
        return self.extent(self.builder.gep(address, [I64(0)], inbounds=True, source_etype=I8), size_bytes, name)

    def check(self, address: Value, size_bytes: int | Value) -> None:
        """Check an access other than by `load`, `store`, `copy` and `clear`."""
        if self._bounds is not None:
            self._bounds.check(address, size_bytes)

    def check_index(self, index: Value, count: int, name: str) -> None:
        """Check an index into an array of `count` elements, which the runtime uses unchecked."""
        if self._bounds is not None:
            self._bounds.check_numbers(index, 1, count, f"{self.place}: {name}")

    def once(self, key: tuple[object, ...], make: Callable[[], Value]) -> Value:
        """Emit `make` once per block and key. `key` must include all dependencies; `make` must not read memory."""
        in_block = (self.builder.block, *key)
        value = self._made.get(in_block)
        if value is None:
            value = self._made[in_block] = make()
        return value

    # ---- integers

    def resize(self, value: Value, width_bits: int, signed: bool = False) -> Value:
        """`value` extended or cut to `width_bits`."""
        have = value.type.width
        if have == width_bits:
            return value
        if have > width_bits:
            return self.builder.trunc(value, integer(width_bits))
        return (self.builder.sext if signed else self.builder.zext)(value, integer(width_bits))

    def swap_bytes(self, value: Value) -> Value:
        """`value`, a whole number of bytes wide, with its bytes reversed."""
        width = value.type.width
        if width == 8:
            return value
        original = self._swapped.get(value)
        if original is not None:
            return original
        swapped = self.once(("swap_bytes", value), lambda: self._swap_bytes(value, width))
        self._swapped[swapped] = value
        return swapped

    def _swap_bytes(self, value: Value, width: int) -> Value:
        if width % 16 == 0:
            return self.builder.bswap(value)
        wide = self.builder.bswap(self.builder.zext(value, integer(width + 8)))
        return self.builder.trunc(self.builder.lshr(wide, constant(width + 8, 8)), integer(width))

    # ---- memory

    def address(self, base: Value, offset: int | Value) -> Value:
        """`base` plus a byte offset."""
        if isinstance(offset, int) and offset == 0:
            return base
        if self._bounds is None and isinstance(offset, int):
            return self._constant_address(base, offset)
        wide = I64(offset) if isinstance(offset, int) else offset
        address = self.builder.gep(base, [wide], inbounds=True, source_etype=I8)
        if self._bounds is not None:
            self._bounds.derive(address, base, offset)
        return address

    def lane_address(self, base: Value, stride_bytes: int) -> Value:
        """Return `base` advanced to the current lane of a loop."""
        assert self.lane is not None
        number = self.lane.number
        offset = self.once(("lane", stride_bytes), lambda: self.builder.mul(number, I64(stride_bytes)))
        return self.address(base, offset)

    def _constant_address(self, base: Value, offset: int) -> Value:
        """Emit one instruction per address and block: LLVM would merge duplicates, but takes longer."""
        root, before = self._derived.get(base, (base, 0))
        key = self.builder.block, root, before + offset
        address = self._addresses.get(key)
        if address is None:
            address = self.builder.gep(root, [I64(before + offset)], inbounds=True, source_etype=I8)
            self._addresses[key] = address
            self._derived[address] = root, before + offset
        return address

    def load(self, address: Value, kind: Any, alignment: int = 1) -> Value:
        """A value of LLVM type `kind` from memory."""
        if self._memory is None:
            self.check(address, size_bytes(kind))
            return self.builder.load(address, typ=kind, align=alignment)
        root, offset = self._derived.get(address, (address, 0))
        value = self._memory.value(self.builder.block, root, offset, kind)
        if value is None:
            value = self.builder.load(address, typ=kind, align=alignment)
            self._memory.loaded(root, offset, value)
        return value

    def load_alone(self, address: Value, kind: Any, alignment: int) -> Value:
        """Load like `load`, but LLVM must not merge it with its neighbours; `address` must be aligned to its size."""
        self.check(address, size_bytes(kind))
        return self.builder.load_atomic(address, "unordered", alignment, typ=kind)

    def store(self, value: Value, address: Value, alignment: int = 1) -> None:
        """Write `value` to memory."""
        self.check(address, size_bytes(value.type))
        self.builder.store(value, address, align=alignment)
        if self._memory is not None:
            self._memory.stored(self.builder.block, *self._derived.get(address, (address, 0)), value)

    def copy(self, target: Value, source: Value, size: int | Value) -> None:
        """Copy bytes between memory that does not overlap."""
        self.check(target, size)
        self.check(source, size)
        if isinstance(size, int):
            size = I64(size)
        name = "llvm.memcpy.p0.p0.i64"
        intrinsic = self.shared.runtime_function(name, VOID, [POINTER, POINTER, I64, I1])
        self.call(intrinsic, [target, source, size, I1(0)])

    def clear(self, target: Value, size: int, whole: bool = True) -> None:
        """Write zeros; LLVM may merge this with neighbouring stores if `whole`."""
        self.fill(target, 0, size, whole)

    def fill(self, target: Value, byte: int, size: int, whole: bool = True) -> None:
        """Write this byte; otherwise like `clear`."""
        self.check(target, size)
        intrinsic = self.shared.runtime_function("llvm.memset.p0.i64", VOID, [POINTER, I8, I64, I1])
        self.call(intrinsic, [target, I8(byte), I64(size), I1(not whole)])

    def state_member(self, name: str) -> Value:
        """The address of a member of PacketState."""
        return self.address(self.state, self.shared.abi[f"PacketState.{name}"])

    def load_state(self, name: str, width_bits: int = 32) -> Value:
        """A member of PacketState."""
        return self.load(self.state_member(name), integer(width_bits), width_bits // 8)

    def store_state(self, name: str, value: Value) -> None:
        """Write a member of PacketState, of the width of `value`."""
        self.store(value, self.state_member(name), value.type.width // 8)

    def load_context(self, name: str, kind: Any = POINTER) -> Value:
        """A member of SwitchContext."""
        return self.load(self.address(self.context, self.shared.abi[f"SwitchContext.{name}"]), kind, 4)

    def call_runtime(self, name: str, result: Any, *arguments: Value) -> Value:
        """Call a function of the C++ runtime."""
        function = self.shared.runtime_function(name, result, [argument.type for argument in arguments])
        return self.call(function, list(arguments))

    def call(self, function: Value, arguments: list[Value]) -> Value:
        """Call a function, which may write to any memory."""
        if self._memory is not None:
            self._memory.forget()
        return self.builder.call(function, arguments)
