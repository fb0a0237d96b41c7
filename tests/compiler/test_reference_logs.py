"""Logs of packets say what simple_switch's say, line by line, but for what is named here."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
from reference_switch import AVAILABLE, ReferenceSwitch
from simple_switch import command_lines

from weft.compiler import compile_file
from weft.switch.bmv2json import Program, load_program
from weft.switch.native import NativeSwitch
from weft.switch.stf.parser import parse_file
from weft.switch.stf.script import run_script
from weft.switch.stf.statements import Packet, Statement
from weft.switch.stf.target import Target, make_target
from weft.switch.trace.bmv2_log import Bmv2Log

CASES = Path(__file__).parents[1] / "stf" / "cases"
PORT_COUNT = 10
ENTRY = re.compile(r"^(?=\[\d\d:\d\d:\d\d\.)", re.MULTILINE)
LINE = re.compile(
    r"\[[^]]+\] \[\w+\] (?P<level>\[\w\]) (?:\[thread \d+\] )?\[(?P<packet>\d+)\.(?P<copy>\d+)\] "
    r"\[cxt 0\] (?P<text>.*)",
    re.DOTALL,
)
DIFFERENT = (
    (r"(?<=\] )\S*/(?=\w+\.p4\()", ""),  # a file's folder
    (r"(to header (?:union )?stack).*", r"\1"),  # numbers there, names here
    (r"(?<=: hit) with handle \d+", ""),  # P4Runtime has no handles
)
ONE_SIDED = re.compile(
    r"\[I\]|\[.\] (Dumping entry|Match key: |Checksum '\S+': computed|Skipping checksum|Advancing by|Bytes parsed|"
    r"Executing (meter|method)|Action (add_header|assign_header)\n|Extracting [^\n]*\n\[E\] Exception|hash\(|"
    r"Egress port is|number of packets replicated|Dropping packet: |Cloning packet(:| at ingress))"
)
"""What only one of them says, or with another packet or at another time.

Entries and messages of programs, numbers of checksums and hashes, bytes after each parser state, primitives in
parsers, a header that is too short, the port of what is dropped or copied, clones without a session.
"""

pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(not AVAILABLE, reason="simple_switch is not on PATH"),
]


def _by_packet(log: str, first: int) -> dict[tuple[int, int], list[str]]:
    """A log's lines by packet, from 0 on, and copy, without what is known to be different."""
    found = defaultdict(list)
    for entry in ENTRY.split(log):
        line = LINE.fullmatch(entry.rstrip("\n"))
        if line is None:
            continue
        text = f"{line['level']} {line['text']}"
        for pattern, replacement in DIFFERENT:
            text = re.sub(pattern, replacement, text)
        found[int(line["packet"]) - first, int(line["copy"])].append(text)
    return {
        packet: [
            line
            for line, after in zip(lines, [*lines[1:], ""], strict=True)
            if ONE_SIDED.match(f"{line}\n{after}") is None
        ]
        for packet, lines in found.items()
    }


def _reference_log(json_text: str, statements: list[Statement], lines: Iterable[str], folder: Path) -> str:
    (folder / "program.json").write_text(json_text, encoding="utf-8")
    with ReferenceSwitch(folder / "program.json", folder, PORT_COUNT) as switch:
        switch.command(*lines)
        switch.send([(each.port, each.data) for each in statements if isinstance(each, Packet)])
        switch.stop()
        return switch.log()


def _own_log(program: Program, statements: list[Statement]) -> str:
    target, log = make_target("native", program), Bmv2Log(program)
    assert isinstance(target.backend, NativeSwitch)
    trace, written = target.backend.trace, []
    trace.start()

    def process(port: int, data: bytes) -> list[tuple[int, bytes]]:
        left = target.process(port, data)
        written.extend(line for packet in trace.take() for line in log.lines(packet))
        return left

    run_script(statements, Target(target.backend, process), program)
    return "\n".join(written)


@pytest.mark.parametrize(
    "name",
    [
        "checksums", "clones", "fabric_time_exceeded", "forwarding_rules", "header_stacks", "match_kinds", "varbit",
    ],
)  # fmt: skip
def test_lines_are_those_of_simple_switch(name: str, tmp_path: Path) -> None:
    statements = parse_file(CASES / f"{name}.stf")
    json_text = compile_file(CASES / f"{name}.p4").json_text()
    program = load_program(json_text)
    lines = command_lines(statements, program)
    assert lines is not None
    expected = _by_packet(_reference_log(json_text, statements, lines, tmp_path), 0)
    found = _by_packet(_own_log(program, statements), 1)
    assert len(found) >= sum(isinstance(each, Packet) for each in statements)
    assert found == expected
