"""What programs may ask of the compiler: long ones compile, those beyond a budget are refused, in bounded memory.

The messages of most budgets stand in broken/budgets/.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from p4_programs import compile_text, program_text, run

from weft.compiler import CompileError, budgets, compile_file

PACKET = "0102000300000004aabb"
ADDRESS_SPACE_BYTES = 3 << 30
ROOT = Path(__file__).resolve().parents[2]


def changed(folder: Path, **parts: str) -> str:
    """The packet as it leaves."""
    ((_, data),) = run(folder, PACKET, **parts)
    return data


def refusal(folder: Path, **parts: str) -> str:
    with pytest.raises(CompileError) as caught:
        compile_text(folder, program_text(**parts))
    (only,) = caught.value.diagnostics
    assert only.span is not None
    return only.message


@pytest.mark.parametrize("count", [190, 4000])
def test_long_sums(tmp_path: Path, count: int) -> None:
    terms = " + ".join(["hdr.data.d", "(bit<32>)hdr.data.a"] * (count // 2))
    assert changed(tmp_path, apply=f"hdr.data.d = {terms};") == f"01020003{count // 2 * 5:08x}aabb"


def test_long_concatenations(tmp_path: Path) -> None:
    terms = " ++ ".join(["hdr.data.a"] * 400)
    assert changed(tmp_path, locals="bit<3200> w;", apply=f"w = {terms}; hdr.data.b = w[3191:3184];").startswith("0101")


@pytest.mark.parametrize(("last", "result"), [(3, "09"), (4, "01")])
def test_long_conditions(tmp_path: Path, last: int, result: str) -> None:
    terms = " && ".join(f"hdr.data.d != {number}" for number in [*range(1000, 4000), last])
    assert changed(tmp_path, apply=f"if ({terms}) {{ hdr.data.a = 9; }}").startswith(result)


def test_long_choices(tmp_path: Path) -> None:
    terms = " : ".join(f"hdr.data.c == {number} ? 32w{number + 7}" for number in range(1000, -1, -1))
    assert changed(tmp_path, apply=f"hdr.data.d = {terms} : 0;") == "010200030000000aaabb"


def test_long_chains_of_branches(tmp_path: Path) -> None:
    branches = " else ".join(f"if (hdr.data.d == {number}) {{ hdr.data.c = {number}; }}" for number in range(1500))
    assert changed(tmp_path, apply=branches) == "0102000400000004aabb"


def test_nested_shifts_do_not_double(tmp_path: Path) -> None:
    """A shift by a non-constant amount uses the amount twice."""
    shifts = "(hdr.data.d << " * 40 + "hdr.data.d" + ")" * 40
    # From 4: 4 << 4 is 64, 4 << 64 is 0, 4 << 0 is 4, and so on.
    assert changed(tmp_path, apply=f"hdr.data.d = {shifts};") == "0102000300000040aabb"


def test_comparisons_of_large_headers(tmp_path: Path) -> None:
    fields = " ".join(f"bit<8> f{number};" for number in range(500))
    parts = {"declarations": f"header large_t {{ {fields} }}", "headers": "large_t x; large_t y;"}
    both = "hdr.x.setValid(); hdr.y.setValid(); hdr.x = hdr.y;"
    assert changed(tmp_path, apply=f"{both} if (hdr.x == hdr.y) {{ hdr.data.a = 9; }}", **parts).startswith("09")
    both += " hdr.x.f499 = hdr.y.f499 + 1;"
    assert changed(tmp_path, apply=f"{both} if (hdr.x == hdr.y) {{ hdr.data.a = 9; }}", **parts).startswith("01")


def test_a_long_key_is_computed_at_each_application(tmp_path: Path) -> None:
    """In steps, of which none may be left over from another place."""
    key = " + ".join(["hdr.data.d"] * 200)
    table = (
        f'action hit() {{ hdr.data.a = 9; }} table t {{ key = {{ {key}: exact @name("k"); }}'
        " actions = { hit; NoAction; } const entries = { 1000: hit(); } }"
    )
    branches = "if (hdr.data.b == 0) { t.apply(); } else { hdr.data.d = 5; t.apply(); }"
    assert changed(tmp_path, locals=table, apply=branches).startswith("09")


def test_nesting(tmp_path: Path) -> None:
    deep = "(" * 900 + "hdr.data.d" + " + 1)" * 900
    assert changed(tmp_path, apply=f"hdr.data.d = {deep};") == f"01020003{904:08x}aabb"
    for beyond in (
        "hdr.data.d = " + "(" * 20_000 + "1" + ")" * 20_000 + ";",
        "hdr.data.d = " + "~" * 20_000 + "hdr.data.d;",
        "{" * 20_000 + "}" * 20_000,
        "if (hdr.data.a == 1) " * 20_000 + "hdr.data.a = 1;",
    ):
        assert refusal(tmp_path, apply=beyond) == f"this nests more than {budgets.NESTING} deep"
    types = "tuple<" * 2000 + "bit<8>" + ">" * 2000
    assert refusal(tmp_path, locals=f"{types} t;") == f"this nests more than {budgets.NESTING} deep"
    condition = "#if " + "(" * 20_000 + "1" + ")" * 20_000 + "\n#endif"
    assert "nests more than 1000 deep" in refusal(tmp_path, declarations=condition)


def test_endless_chains(tmp_path: Path) -> None:
    members = ".x" * (budgets.CHAIN_LENGTH + 1)
    assert str(budgets.CHAIN_LENGTH) in refusal(tmp_path, apply=f"hdr.data.a = hdr{members};")


def test_integers(tmp_path: Path) -> None:
    long = changed(tmp_path, apply=f"hdr.data.d = {'7' * 5000};")
    assert long == f"01020003{7 * (10**5000 - 1) // 9 % 2**32:08x}aabb"
    assert str(budgets.WIDTH_BITS) in refusal(tmp_path, apply=f"hdr.data.d = {'9' * 70_000};")


def test_conditionals_in_each_other_take_linear_time(tmp_path: Path) -> None:
    nested = "#if 1\n" * 30_000 + "#endif\n" * 30_000
    began = time.process_time()
    assert changed(tmp_path, declarations=nested, apply="hdr.data.d = 1;") == "0102000300000001aabb"
    assert time.process_time() - began < 10, "a minute, if each directive looks at all that are open"


def test_includes_that_double(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number}.p4").write_text(f'#include "{number + 1}.p4"\n' * 2)
    (tmp_path / "40.p4").write_text("")
    with pytest.raises(CompileError, match=f"more than {budgets.INCLUDED_FILES} files are included"):
        compile_file(tmp_path / "0.p4")


def test_the_switch_has_as_many_cells(tmp_path: Path) -> None:
    """Every program that compiles also loads."""
    at_limit = f"register<bit<8>>({budgets.ARRAY_CELLS}) r;"
    run(tmp_path, PACKET, locals=at_limit, apply="r.read(hdr.data.a, 1);")


def test_limits_of_the_process_are_as_before(tmp_path: Path) -> None:
    before = sys.getrecursionlimit(), sys.get_int_max_str_digits()
    refusal(tmp_path, apply="hdr.data.d = x;")
    assert (sys.getrecursionlimit(), sys.get_int_max_str_digits()) == before


@pytest.mark.slow
def test_bombs_are_refused_in_bounded_memory() -> None:
    """All programs of broken/budgets, in a process whose memory is limited."""
    code = (
        "import sys\nfrom weft.compiler import CompileError, compile_file\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n        compile_file(path)\n"
        "    except CompileError:\n        print(path)\n"
    )
    programs = sorted(map(str, (Path(__file__).parent / "broken" / "budgets").glob("*.p4")))
    done = subprocess.run(
        ["prlimit", f"--as={ADDRESS_SPACE_BYTES}", sys.executable, "-c", code, *programs],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.stderr == ""
    assert done.stdout.split() == programs
