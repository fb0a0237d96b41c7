"""Random expressions: folded by the compiler, or computed by the switch, they equal Python's integers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from p4_programs import compile_text, program_text, switch_for

from weft.compiler.fold import FoldError, bounds, fold_binary, saturate, wrap
from weft.compiler.types import bits

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


@dataclass(frozen=True)
class Typed:
    """An expression of a bit or int type of any width, its value within the type's range."""

    text: str
    value: int
    width: int
    signed: bool

    @classmethod
    def of(cls, text: str, value: int, width: int, signed: bool) -> Typed:
        """The value brought into the type's range."""
        return cls(text, wrap(value, bits(width, signed)), width, signed)

    def to(self, width: int, signed: bool) -> Typed:
        """Cast: the width first, then the sign."""
        word = "int" if self.signed else "bit"
        resized = Typed.of(f"(({word}<{width}>){self.text})", self.value, width, self.signed)
        if signed == self.signed:
            return resized
        other = "int" if signed else "bit"
        return Typed.of(f"(({other}<{width}>){resized.text})", resized.value, width, signed)


def typed_leaf(constants_only: bool) -> st.SearchStrategy[Typed]:
    constants = st.builds(
        lambda value, width, signed: Typed.of(
            f"({width}{'s' if signed else 'w'}{value % (1 << width - signed)})",
            value % (1 << width - signed),
            width,
            signed,
        ),
        st.integers(0, 2**70),
        st.integers(2, 70),
        st.booleans(),
    )
    if constants_only:
        return constants
    widths = {"a": 8, "b": 8, "c": 16, "d": 32}
    names = st.sampled_from(sorted(FIELDS))
    return constants | names.map(lambda name: Typed.of(f"hdr.data.{name}", FIELDS[name], widths[name], False))


def typed_combine(children: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    def binary(left: Typed, operator: str, right: Typed) -> Typed:
        right = right.to(left.width, left.signed)
        type_ = bits(left.width, left.signed)
        exact = {
            "+": left.value + right.value,
            "-": left.value - right.value,
            "*": left.value * right.value,
            "&": left.value & right.value,
            "^": left.value ^ right.value,
            "|+|": saturate(left.value + right.value, type_),
            "|-|": saturate(left.value - right.value, type_),
        }[operator]
        return Typed.of(f"({left.text} {operator} {right.text})", exact, left.width, left.signed)

    def shift(left: Typed, operator: str, amount: Typed) -> Typed:
        amount = amount.to(7, False)
        value = left.value << amount.value if operator == "<<" else left.value >> amount.value
        return Typed.of(f"({left.text} {operator} {amount.text})", value, left.width, left.signed)

    def slice_(term: Typed, first: int, second: int) -> Typed:
        high, low = sorted((first % term.width, second % term.width), reverse=True)
        return Typed.of(f"({term.text}[{high}:{low}])", term.value >> low, high - low + 1, False)

    def join(left: Typed, right: Typed) -> Typed:
        value = (left.value << right.width) | (right.value & ((1 << right.width) - 1))
        return Typed.of(f"({left.text} ++ {right.text})", value, left.width + right.width, left.signed)

    def choose(left: Typed, comparison: str, right: Typed, other: Typed) -> Typed:
        right, other = right.to(left.width, left.signed), other.to(left.width, left.signed)
        truth = {
            "<": left.value < right.value,
            "!=": left.value != right.value,
            ">=": left.value >= right.value,
        }
        text = f"({left.text} {comparison} {right.text} ? {left.text} : {other.text})"
        return Typed.of(text, (left if truth[comparison] else other).value, left.width, left.signed)

    operators = st.sampled_from(["+", "-", "*", "&", "^", "|+|", "|-|"])
    return (
        st.builds(binary, children, operators, children)
        | st.builds(shift, children, st.sampled_from(["<<", ">>"]), children)
        | st.builds(slice_, children, st.integers(0, 200), st.integers(0, 200))
        | st.builds(join, children, children)
        | st.builds(choose, children, st.sampled_from(["<", "!=", ">="]), children, children)
        | st.builds(Typed.to, children, st.integers(1, 90), st.booleans())
    )


def typed_terms(constants_only: bool) -> st.SearchStrategy[Typed]:
    return st.recursive(typed_leaf(constants_only), typed_combine, max_leaves=6)


@pytest.mark.parametrize("constants_only", [False, True])
def test_widths_and_signs_mix(constants_only: bool) -> None:
    """The switch computes it, the compiler folds it: both as the types' definitions say."""

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(typed_terms(constants_only))
    def agree(term: Typed) -> None:
        wanted = term.to(32, False)
        with TemporaryDirectory() as folder:
            result = compile_text(Path(folder), program_text(apply=f"hdr.data.d = {wanted.text};"))
            outputs = switch_for(result).process(1, PACKET)
        assert [output.data[4:].hex() for output in outputs] == [f"{wanted.value:08x}"], term.text

    agree()


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
