"""Programs as users write them: with the same entries and packets they do what p4c's do, and their P4Info is p4c's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from finsy.proto import p4r
from p4c import P4c
from test_reference import reference_text, sorted_info
from twins import behaviour_differences

from weft.compiler import compile_file

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.p4"))
PACKETS = 60

pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c-bm2-ss is not on PATH"),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_entries_and_packets_fare_as_with_p4c(program: Path, p4c: P4c) -> None:
    ours = compile_file(program)
    document, info = reference_text(program, p4c)
    assert sorted_info(ours.p4info) == sorted_info(info)
    for seed in range(2):
        assert behaviour_differences(ours.json_text(), document, seed, PACKETS) == []


@pytest.mark.parametrize("name", ["switches", "calc", "more_passes", "varbits", "l2_learn", "meters", "basic"])
def test_listed_entries_are_those_of_p4c(name: str, tmp_path: Path) -> None:
    program, theirs = Path(__file__).parent / "programs" / f"{name}.p4", tmp_path / "entries.bin"
    command = ["p4c-bm2-ss", "--Wdisable", "--p4runtime-entries-files", str(theirs), str(program)]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    wanted = p4r.WriteRequest.FromString(theirs.read_bytes())
    found = p4r.WriteRequest.FromString(compile_file(program).entries_bytes())
    assert sorted(map(str, found.updates)) == sorted(map(str, wanted.updates))
