"""Broken programs and the messages they must get: broken/<stage>/NAME.p4 beside NAME.expected. Those of the stage
"warnings" compile.

After a deliberate change of messages: `python tests/compiler/test_broken_programs.py` rewrites the expectations;
read the difference before committing it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from weft.compiler import CompileError, compile_file

FOLDER = Path(__file__).parent / "broken"
PROGRAMS = sorted(FOLDER.rglob("*.p4"))


def messages(program: Path) -> str:
    """What the compiler says, with paths relative to the program's folder and the built-in includes."""
    if program.parent.name == "warnings":
        text = "\n".join(warning.render() for warning in compile_file(program).warnings)
    else:
        with pytest.raises(CompileError) as caught:
            compile_file(program)
        text = str(caught.value)
    includes = str(Path(__file__).parents[2] / "weft" / "compiler" / "include")
    text = text.replace(f"{program.parent}/", "").replace(f"{includes}/", "<include>/")
    return text.replace(str(program.parent), ".").replace(includes, "<include>") + "\n"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_messages(program: Path) -> None:
    assert messages(program) == program.with_suffix(".expected").read_text(encoding="utf-8")


def test_there_are_programs_for_every_stage() -> None:
    stages = {program.parent.name for program in PROGRAMS}
    assert stages == {
        "preprocess",
        "syntax",
        "names",
        "types",
        "tables",
        "parsers",
        "target",
        "warnings",
        "budgets",
    }


@pytest.mark.slow
def test_every_message_has_a_program() -> None:
    tool = Path(__file__).parent / "uncovered_messages.py"
    done = subprocess.run([sys.executable, str(tool)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


if __name__ == "__main__":
    for each in PROGRAMS:
        each.with_suffix(".expected").write_text(messages(each), encoding="utf-8")
