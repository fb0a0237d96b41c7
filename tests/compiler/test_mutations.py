"""Mutated programs: the compiler accepts or refuses, with a place in the source, and never breaks."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from p4_programs import compile_text, program_text

from compiler import CompileError
from compiler.lexer import tokenize
from compiler.source import SourceFile

PROGRAM = program_text(
    declarations="""
        enum bit<8> Kind { one = 1, two = 2 }
        struct pair_t { bit<8> first; bit<16> second; }
        bit<8> pick(in bit<8> left, inout bit<8> right) { if (left > 3) { return right; } right = left; return 4; }
        control Sub(inout bit<8> v)(bit<8> amount) { apply { v = v |+| amount; } }""",
    metadata="pair_t pair; Kind kind;",
    parser="""
        state start { packet.extract(hdr.data); transition select(hdr.data.a, hdr.data.c) {
            (1, 2 .. 9): items; (Kind.two, _): items; default: accept; } }
        state items { packet.extract(hdr.items.next); meta.x = hdr.items.last.v; transition accept; }""",
    locals="""
        register<bit<16>>(8) memory; direct_counter(CounterType.bytes) hits; Sub(7) sub;
        action set(bit<9> port, bit<8> value) { standard_metadata.egress_spec = port; meta.pair = { value, 3 }; }
        action drop() { mark_to_drop(standard_metadata); exit; }
        table t {
            key = { hdr.data.a: exact; hdr.data.d: lpm; hdr.extra.isValid(): exact; }
            actions = { set; drop; NoAction; }
            const entries = { (1, 0x0a000000 &&& 0xff000000, true): set(3, 4); }
            counters = hits; size = 16; default_action = drop();
        }""",
    apply="""
        bit<16> value = 0;
        switch (t.apply().action_run) { set: { sub.apply(hdr.extra.v); } default: { value = hdr.data.c[15:0]; } }
        if (hdr.items[1].isValid() && meta.x != 0) { memory.read(value, 3); } else { hdr.items.push_front(1); }
        hdr.data.b = pick(hdr.data.a, hdr.data.b) ++ 8w1 == 16w5 ? 8w1 : (bit<8>)(value >> 3);
        for (bit<8> i in 1 .. 3) { hdr.data.a = hdr.data.a ^ i; }
        hash(meta.y, HashAlgorithm.crc16, 16w0, { hdr.data.a, hdr.data.d }, 16w100);""",
    update="update_checksum(true, { hdr.data.a, hdr.data.b }, hdr.data.c, HashAlgorithm.csum16);",
)
TOKENS = [token for token in tokenize(SourceFile("program.p4", PROGRAM)) if token.kind != "directive"]


def mutate(edits: list[tuple[int, int, str]]) -> str:
    """Replace, delete or double tokens; the edits are applied from the end."""
    text = PROGRAM
    for at, other, how in sorted(edits, reverse=True):
        token, replacement = TOKENS[at], TOKENS[other].text
        spelled = {"replace": replacement, "delete": "", "insert": f"{token.text} {replacement}"}[how]
        text = text[: token.offset] + spelled + text[token.end :]
    return text


def test_the_program_itself_compiles(tmp_path: Path) -> None:
    compile_text(tmp_path, PROGRAM)


positions = st.integers(0, len(TOKENS) - 1)
edits = st.lists(
    st.tuples(positions, positions, st.sampled_from(["replace", "replace", "delete", "insert"])),
    min_size=1,
    max_size=3,
    unique_by=lambda edit: edit[0],
)


def refusal(text: str) -> list[str] | None:
    """The messages of a refused program; None when it is accepted."""
    with TemporaryDirectory() as folder:
        try:
            compile_text(Path(folder), text)
        except CompileError as refused:
            return [message.message for message in refused.diagnostics]
    return None


@settings(max_examples=250, deadline=None, derandomize=True)
@given(edits)
def test_mutations_are_accepted_or_refused(changes: list[tuple[int, int, str]]) -> None:
    messages = refusal(mutate(changes))
    assert messages is None or messages
    assert not any("internal compiler error" in message for message in messages or [])


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_any_text_is_refused_in_good_order(text: str) -> None:
    messages = refusal(text)
    assert messages
    assert not any("internal compiler error" in message for message in messages)
