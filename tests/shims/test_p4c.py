"""p4c and p4c-bm2-ss take the options of the tutorials and of p4-utils, and write where these look."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from weft.errors import BadInputError
from weft.paths import ROOT
from weft.shims.p4c import P4INFO_SUFFIXES, compile_as, p4info_of

PROGRAM = ROOT / "tests" / "dropin" / "programs" / "basic_forward.p4"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a program."""
    shutil.copy(PROGRAM, tmp_path / "basic.p4")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {"basic.p4"}


@pytest.mark.parametrize(
    ("name", "line", "written"),
    [
        (
            "p4c-bm2-ss",
            "--p4v 16 --p4runtime-files build/basic.p4.p4info.txtpb -o build/basic.json basic.p4",
            {"build/basic.json", "build/basic.p4.p4info.txtpb"},
        ),
        ("p4c-bm2-ss", "--std p4-16 basic.p4 -o x.json", {"x.json", "x.p4.p4info.txtpb"}),
        (
            "p4c",
            "basic.p4 --target bmv2 --arch v1model --std p4-16 -o . --p4runtime-files ./basic_p4rt.txt",
            {"basic.json", "basic_p4rt.txt"},
        ),
        (
            "p4c",
            "-b bmv2 -a v1model -x p4-16 -I . -D N=1 --p4runtime-file i.txt --p4runtime-format=text basic.p4 -o out",
            {"out/basic.json", "i.txt", "out/basic.p4.p4info.txtpb"},
        ),
        ("p4c", "--target=bmv2 --arch=v1model basic.p4", {"basic.json", "basic.p4.p4info.txtpb"}),
    ],
)
def test_files_are_where_callers_look(name: str, line: str, written: set[str], here: Path) -> None:
    compile_as(name, line.split())
    assert files(here) == written
    (program,) = (here / each for each in written if each.endswith(".json"))
    assert json.loads(program.read_text(encoding="utf-8"))["pipelines"]
    assert p4info_of(program) is not None


@pytest.mark.parametrize(
    ("line", "error", "words"),
    [
        ("-b dpdk basic.p4", click.UsageError, "dpdk"),
        ("--std p4-14 basic.p4", click.UsageError, "p4-14"),
        ("--p4runtime-format json basic.p4", click.UsageError, "valid: text"),
        ("-o basic.p4 basic.p4", BadInputError, "basic.p4 is a file"),
        ("no.p4", click.UsageError, "no.p4"),
    ],
)
def test_what_weft_does_not_compile_is_refused(line: str, error: type[Exception], words: str, here: Path) -> None:
    with pytest.raises(error) as refusal:
        compile_as("p4c", line.split())
    assert words in str(refusal.value) or words in getattr(refusal.value, "message", "")
    assert files(here) == set()


@pytest.mark.parametrize("suffix", P4INFO_SUFFIXES)
def test_p4info_is_found_by_each_of_its_names(suffix: str, here: Path) -> None:
    compile_as("p4c", ["basic.p4"])
    info = (here / "basic.p4.p4info.txtpb").rename(here / f"basic{suffix}")
    assert p4info_of(here / "basic.json") == info


def test_a_program_without_p4info_is_logged(here: Path) -> None:
    compile_as("p4c", ["basic.p4"])

    def log() -> str:
        # The interface is missing, which ends the switch after its log has begun.
        switch = [sys.executable, "-m", "weft.shims.simple_switch", "basic.json", "-i", "1@no-such-if0"]
        line = [*switch, "--", "--grpc-server-addr", "127.0.0.1:0"]
        return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False).stderr

    assert "has no P4Info" not in log()
    (here / "basic.p4.p4info.txtpb").unlink()
    names = "basic.p4.p4info.txtpb or basic_p4rt.txt or basic.p4info.txtpb"
    said = log()
    assert f"[INFO] basic.json has no P4Info (not found next to it, or older: {names}): " in said
    assert "--p4info FILE" in said


def test_p4info_of_an_older_program_is_not_taken(here: Path) -> None:
    compile_as("p4c", ["basic.p4"])
    program, info = here / "basic.json", here / "basic.p4.p4info.txtpb"
    assert p4info_of(program) == info
    os.utime(info, ns=(0, program.stat().st_mtime_ns - 1))
    assert p4info_of(program) is None
