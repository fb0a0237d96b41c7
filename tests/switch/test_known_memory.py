"""Values that need not be loaded again, and those that must be."""

from __future__ import annotations

import pytest
from llvmlite import ir

from weft.switch.lowering.known_memory import KnownMemory

I8, I16, I32, I64 = (ir.IntType(width) for width in (8, 16, 32, 64))
POINTER = ir.PointerType()


class Function:
    """A function of two pointers, and what is known of the memory they point to."""

    def __init__(self) -> None:
        kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER])
        function = ir.Function(ir.Module(), kind, "function")
        self.state, self.context = function.args
        self.block = function.append_basic_block()
        self.other_block = function.append_basic_block()
        self.builder = ir.IRBuilder(self.block)
        self.memory = KnownMemory(function.args)

    def known(self, root: ir.Value, offset: int, kind: ir.Type = I32) -> ir.Value | None:
        return self.memory.value(self.block, root, offset, kind)

    def store(self, root: ir.Value, offset: int, value: ir.Value) -> ir.Value:
        self.memory.stored(self.block, root, offset, value)
        return value


@pytest.fixture
def function() -> Function:
    return Function()


def test_what_was_stored_or_loaded_is_known(function: Function) -> None:
    assert function.known(function.state, 8) is None
    stored = function.store(function.state, 8, I32(5))
    assert function.known(function.state, 8) is stored
    loaded = function.builder.load(function.context, typ=I32)
    function.memory.loaded(function.context, 0, loaded)
    assert function.known(function.context, 0) is loaded


def test_another_type_is_not_known(function: Function) -> None:
    function.store(function.state, 8, I32(5))
    assert function.known(function.state, 8, I16) is None
    assert function.known(function.state, 8, I64) is None


@pytest.mark.parametrize(("offset", "kind"), [(7, I16), (8, I8), (11, I8), (4, I64), (8, I32)])
def test_a_store_ends_what_it_overlaps(function: Function, offset: int, kind: ir.IntType) -> None:
    old = function.store(function.state, 8, I32(5))
    function.store(function.state, offset, kind(1))
    assert function.known(function.state, 8) is not old


@pytest.mark.parametrize(("offset", "kind"), [(7, I8), (12, I8), (4, I32), (0, I64)])
def test_a_store_beside_it_keeps_a_value(function: Function, offset: int, kind: ir.IntType) -> None:
    old = function.store(function.state, 8, I32(5))
    function.store(function.state, offset, kind(1))
    assert function.known(function.state, 8) is old


def test_arguments_do_not_alias(function: Function) -> None:
    old = function.store(function.state, 8, I32(5))
    function.store(function.context, 8, I32(6))
    assert function.known(function.state, 8) is old


def test_a_store_at_a_variable_offset_ends_everything(function: Function) -> None:
    """An element of a header stack may be any of them."""
    function.store(function.state, 8, I32(5))
    index = function.builder.load(function.context, typ=I64)
    element = function.builder.gep(function.state, [index], source_etype=I8)
    function.store(element, 0, I32(6))
    assert function.known(function.state, 8) is None


def test_a_store_through_a_pointer_of_the_context_ends_nothing(function: Function) -> None:
    old = function.store(function.state, 8, I32(5))
    registers = function.builder.load(function.context, typ=POINTER)
    index = function.builder.load(function.context, typ=I64)
    function.store(function.builder.gep(registers, [index], source_etype=I8), 0, I32(6))
    assert function.known(function.state, 8) is old


def test_nothing_is_known_of_other_memory(function: Function) -> None:
    registers = function.builder.load(function.context, typ=POINTER)
    function.store(registers, 8, I32(5))
    assert function.known(registers, 8) is None


def test_another_block_knows_nothing(function: Function) -> None:
    function.store(function.state, 8, I32(5))
    assert function.memory.value(function.other_block, function.state, 8, I32) is None
    assert function.known(function.state, 8) is None


def test_a_call_ends_everything(function: Function) -> None:
    function.store(function.state, 8, I32(5))
    function.memory.forget()
    assert function.known(function.state, 8) is None
