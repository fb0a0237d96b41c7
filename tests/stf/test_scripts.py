"""Scripts on the switches: what passes, and that what is wrong is noticed."""

from functools import cache
from pathlib import Path

import pytest

from weft.commands.stf import compile_case
from weft.compiler import compile_file
from weft.switch.bmv2json import Program, load_program
from weft.switch.stf import Case, Verdict, run_case
from weft.switch.stf.expectations import packet_difference
from weft.switch.stf.parser import parse_text
from weft.switch.stf.script import run_script
from weft.switch.stf.target import SWITCH_NAMES, make_target

CASES = Path(__file__).parent / "cases"


@cache
def program(name: str) -> Program:
    return load_program(compile_file(CASES / f"{name}.p4").json_text())


def failures(name: str, script: str, switch: str = "oracle") -> list[str]:
    loaded = program(name)
    return run_script(parse_text(script, Path("s.stf")), make_target(switch, loaded), loaded)


@pytest.mark.parametrize("switch", SWITCH_NAMES)
@pytest.mark.parametrize("name", sorted(path.stem for path in CASES.glob("*.stf")))
def test_every_statement_does_what_it_says(name, switch):
    outcome = run_case(Case(CASES / f"{name}.p4", CASES / f"{name}.stf"), switch, compile_case)
    assert (outcome.verdict, outcome.reasons) == (Verdict.PASS, ())
    assert outcome.architecture == "v1model"


ANSWER = "setdefault prefix_table answer(9, 1)\npacket 1 02 00 0000 00\n"


@pytest.mark.parametrize("switch", SWITCH_NAMES)
@pytest.mark.parametrize(
    ("script", "failure"),
    [
        (ANSWER, "port 1: nothing more was expected, got 0200000009"),
        (ANSWER + "expect 2 02", "s.stf:3: port 2: the expected packet did not come"),
        (ANSWER + "expect 1\nexpect 1", "s.stf:4: port 1: the expected packet did not come"),
        (
            ANSWER + "expect 1 02 00 0000 08 $",
            "s.stf:3: port 1: byte 4 differs: got 0200000009, expected 0200000008",
        ),
        (
            ANSWER + "expect 1 02 00 $",
            "s.stf:3: port 1: got 5 bytes, expected 2: got 0200000009, expected 0200",
        ),
        (ANSWER + "expect 1\nno_packet", "s.stf:4: no packet should have left, but one did by port 1"),
        (
            ANSWER + "expect 1\ncheck_counter requests(0) packets == 2",
            "s.stf:4: counter 'requests(0)' has 1 packets, expected == 2",
        ),
        (
            "no_packet",
            "s.stf:1: no_packet follows the packet that it is about",
        ),
    ],
)
def test_a_difference_is_reported_with_its_line(script, failure, switch):
    assert failure in failures("tables", script, switch)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("add prefix_tabel second:1 answer(1, 1)", "unknown table 'prefix_tabel'; "),
        ("add table first:1 answer(1, 1)", "unknown table 'table'; "),
        (
            "add exact_table frist:1 counted_answer(1, 1)",
            "unknown key field of table 'Decide.exact_table': 'frist'",
        ),
        ("add exact_table counted_answer(1, 1)", "is exact and needs a value"),
        ("add exact_table first:1 first:2 counted_answer(1, 1)", "is given twice"),
        ("add exact_table first:1/8 counted_answer(1, 1)", "cannot be 1/8: it is matched as exact"),
        ("add exact_table first:0x1* counted_answer(1, 1)", "cannot be 0x1*: it is matched as exact"),
        ("add exact_table first:256 counted_answer(1, 1)", "does not fit 8 bits"),
        ("add prefix_table second:0x*1 answer(1, 1)", "wildcards of a prefix stand at its end"),
        ("add prefix_table second:1/17 answer(1, 1)", "the field has 16 bits"),
        ("add ternary_table 1 first:0x*00 answer(1, 1)", "the field has 8 bits"),
        ("add range_table 1 second:0x1* answer(1, 1)", "it is matched as range"),
        ("add exact_table first:1 reply(1, 1)", "unknown action of table 'Decide.exact_table': 'reply'"),
        ("add exact_table first:1 counted_answer(1)", "also needs port"),
        ("add exact_table first:1 counted_answer(1, 1, 1)", "takes 2 arguments, not 3"),
        (
            "add exact_table first:1 counted_answer(1, value:1)",
            "'value' of action 'Decide.counted_answer' is given",
        ),
        ("add exact_table first:1 counted_answer(vlaue:1, port:1)", "did you mean 'value'?"),
        ("add exact_table first:1 counted_answer(1, 512)", "does not fit 9 bits"),
        ("remove one", "no entry has the id 'one' (ids: no entry has one)"),
        ("check_counter exact_hits(1)", "is direct: name an entry of table 'Decide.exact_table' by its id"),
        ("check_counter requests($one)", "name a cell by its index"),
        ("check_counter requests(4)", "index 4 is out of range"),
        ("register_write remembered 0 256", "does not fit 8 bits"),
        ("register_write forgotten 0 1", "unknown register 'forgotten'"),
        ("meter_get_rates rates 4", "index 4 is out of range"),
        ("mc_node_associate 1 0", "there is no node 0"),
        ("mirroring_add_mc 1 2", "there is no multicast group 2 (groups: none was created)"),
        ("mirroring_delete 3", "clone session 3"),
        ("mc_mgrp_create 0", "0 is out of range"),
    ],
)
def test_a_statement_that_does_not_fit_fails_the_script_at_its_line(statement, reason):
    (failure,) = failures("tables", f"wait\n{statement}\nexpect 7")
    assert failure.startswith("s.stf:2: ")
    assert reason in failure


def test_what_would_overwrite_is_refused():
    script = "add exact_table first:1 discard() = one\n"
    assert "the id 'one' is given" in failures("tables", script + "add exact_table first:2 discard() = one")[0]
    assert "s.stf:2: " in failures("tables", script + "add exact_table first:1 discard()")[0]
    group = "mc_mgrp_create 1\nmc_node_create 1 1\nmc_node_associate 1 0\n"
    assert "has node 0 already" in failures("copies", group + "mc_node_associate 1 0")[0]
    assert "exists already" in failures("copies", group + "mc_mgrp_create 1")[0]


@pytest.mark.parametrize(
    ("expected", "packet", "same"),
    [
        ("0a0b", "0a0b", True),
        ("0a0b", "0a0bff", True),
        ("0a0b$", "0a0bff", False),
        ("0a0b", "0a", False),
        ("0***", "0fff", True),
        ("0***", "0f", False),
        ("*1", "11", True),
        ("*1", "12", False),
        ("$", "", True),
        ("$", "00", False),
    ],
)
def test_wildcards_and_lengths(expected, packet, same):
    (expect,) = parse_text(f"expect 1 {expected}", Path("s.stf"))
    assert (packet_difference(expect, packet) is None) == same
