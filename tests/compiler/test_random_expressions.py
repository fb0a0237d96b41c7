"""Random expressions: folded by the compiler, or computed by the switch, they equal Python's integers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from p4_programs import compile_text, program_text, switch_for

from compiler.fold import FoldError, bounds, fold_binary, saturate, wrap
from compiler.types import bits

WIDTH = 32


@dataclass(frozen=True)
class Term:
    """A P4 expression of one unsigned width and its value."""

    text: str
    value: int


def leaf(fields: dict[str, int], constants_only: bool) -> st.SearchStrategy[Term]:
    constants = st.integers(0, 2**WIDTH - 1).map(lambda value: Term(f"{WIDTH}w{value}", value))
    if constants_only:
        return constants
    names = st.sampled_from(sorted(fields))
    return constants | names.map(lambda name: Term(f"(bit<32>)hdr.data.{name}", fields[name]))


def combine(children: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    mask = 2**WIDTH - 1

    def binary(left: Term, operator: str, right: Term) -> Term:
        value = {
            "+": left.value + right.value,
            "-": left.value - right.value,
            "*": left.value * right.value,
            "&": left.value & right.value,
            "|": left.value | right.value,
            "^": left.value ^ right.value,
            "|+|": min(left.value + right.value, mask),
            "|-|": max(left.value - right.value, 0),
        }[operator]
        return Term(f"({left.text} {operator} {right.text})", value & mask)

    def shift(left: Term, operator: str, amount: int) -> Term:
        value = left.value << amount if operator == "<<" else left.value >> amount
        return Term(f"({left.text} {operator} 8w{amount})", value & mask)

    def slice_(term: Term, first: int, second: int) -> Term:
        high, low = max(first, second), min(first, second)
        value = (term.value >> low) & ((1 << (high - low + 1)) - 1)
        return Term(f"((bit<32>)({term.text})[{high}:{low}])", value)

    def choose(left: Term, comparison: str, right: Term, first: Term, second: Term) -> Term:
        truth = {
            "<": left.value < right.value,
            "==": left.value == right.value,
            ">=": left.value >= right.value,
        }
        chosen = first if truth[comparison] else second
        return Term(f"({left.text} {comparison} {right.text} ? {first.text} : {second.text})", chosen.value)

    def signed(term: Term, amount: int) -> Term:
        value = wrap(term.value, bits(WIDTH, True)) >> amount
        return Term(f"((bit<32>)((int<32>)({term.text}) >> 8w{amount}))", value & mask)

    def join(left: Term, right: Term) -> Term:
        value = ((left.value & 0xFFFF) << 16) | (right.value & 0xFFFF)
        return Term(f"(({left.text})[15:0] ++ ({right.text})[15:0])", value)

    operators = st.sampled_from(["+", "-", "*", "&", "|", "^", "|+|", "|-|"])
    return (
        st.builds(binary, children, operators, children)
        | st.builds(shift, children, st.sampled_from(["<<", ">>"]), st.integers(0, 40))
        | st.builds(slice_, children, st.integers(0, 31), st.integers(0, 31))
        | st.builds(choose, children, st.sampled_from(["<", "==", ">="]), children, children, children)
        | st.builds(signed, children, st.integers(0, 31))
        | st.builds(join, children, children)
        | children.map(lambda term: Term(f"(~{term.text})", ~term.value & mask))
        | children.map(lambda term: Term(f"(-{term.text})", -term.value & mask))
    )


def terms(fields: dict[str, int], constants_only: bool = False) -> st.SearchStrategy[Term]:
    return st.recursive(leaf(fields, constants_only), combine, max_leaves=8)


FIELDS = {"a": 0x9C, "b": 0x07, "c": 0x8001, "d": 0xDEADBEEF}
PACKET = bytes.fromhex("9c078001deadbeef")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(terms(FIELDS), min_size=1, max_size=4))
def test_switch_computes_what_python_does(expressions: list[Term]) -> None:
    for term in expressions:
        with TemporaryDirectory() as folder:
            result = compile_text(Path(folder), program_text(apply=f"hdr.data.d = {term.text};"))
            outputs = switch_for(result).process(1, PACKET)
        assert [output.data[4:].hex() for output in outputs] == [f"{term.value:08x}"], term.text


@settings(max_examples=100, deadline=None, derandomize=True)
@given(terms({}, constants_only=True))
def test_constants_fold_to_what_python_computes(term: Term) -> None:
    with TemporaryDirectory() as folder:
        text = program_text(declarations=f"const bit<32> VALUE = {term.text};", apply="hdr.data.d = VALUE;")
        result = compile_text(Path(folder), text)
    assigned = [
        primitive["parameters"][1]
        for action in result.json["actions"]
        for primitive in action["primitives"]
        if primitive["parameters"][0]["value"] == ["data", "d"]
    ]
    assert assigned == [{"type": "hexstr", "value": f"0x{term.value:08x}"}]


@given(st.integers(1, 130), st.booleans(), st.integers(), st.integers())
def test_wrap_and_saturate_stay_in_range(width: int, signed: bool, left: int, right: int) -> None:
    type_ = bits(width, signed)
    low, high = bounds(type_)
    assert low <= wrap(left, type_) <= high
    assert (wrap(left, type_) - left) % (1 << width) == 0
    assert wrap(left, type_) == left or not low <= left <= high
    assert saturate(left, type_) == min(max(left, low), high)
    assert fold_binary("+", type_, wrap(left, type_), wrap(right, type_)) == wrap(left + right, type_)


def test_folding_refuses_what_has_no_value() -> None:
    for operator, left, right in (("/", 1, 0), ("%", 1, 0), ("/", -4, 2), ("<<", 1, -1)):
        with pytest.raises(FoldError):
            fold_binary(operator, bits(8, True), left, right)
