"""The source tree is clean: linters, types, formats, scripts."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import plain_english

ROOT = Path(__file__).resolve().parent.parent


def tool(name: str) -> str:
    """Return a tool's path, from this interpreter's environment before PATH."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def passes(*command: str, **options) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_finds_nothing():
    passes(tool("ruff"), "check", ".")


def test_python_is_formatted():
    passes(tool("ruff"), "format", "--check", ".")


@pytest.mark.slow
def test_factors_between_units_of_time_have_one_set_of_names():
    defined = re.compile(r"^_?(PS|NS)_PER_[A-Z]+ = [0-9]", re.MULTILINE)
    files = [*(ROOT / "weft").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    found = [str(path.relative_to(ROOT)) for path in files if defined.search(path.read_text(encoding="utf-8"))]
    assert found == ["weft/quantities/units.py"]


# Errors of Python, click and the engine have no place for valid values, and the compiler imports no errors of Weft.
NO_REFUSALS = {"TypeError", "KeyError", "ExtensionError", "BadParameter", "UsageError"}


def messages_with_valid_values(source: str) -> list[int]:
    """Return the lines of `raise` statements that write valid values into a Refusal's message."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and ast.unparse(node.exc.func).split(".")[-1] not in NO_REFUSALS
        and any(isinstance(part, ast.Constant) and "(valid: " in str(part.value) for part in ast.walk(node.exc))
    ]


def test_errors_get_valid_values_as_an_argument():
    found = {}
    for path in (ROOT / "weft").rglob("*.py"):
        name = str(path.relative_to(ROOT))
        lines = messages_with_valid_values(path.read_text(encoding="utf-8"))
        if lines and not name.startswith("weft/compiler/"):
            found[name] = lines
    assert found == {}


def test_valid_values_in_a_message_are_found():
    assert messages_with_valid_values('raise TopologyError(f"k={k} (valid: {even})")') == [1]
    assert messages_with_valid_values('raise TopologyError(f"k={k}", valid=even)') == []


def test_types_are_right():
    passes(tool("mypy"))


def test_cpp_is_formatted():
    sources = sorted(str(path) for path in (ROOT / "engine").rglob("*.[ch]pp"))
    assert sources
    passes(tool("clang-format"), "--dry-run", "--Werror", *sources)


@pytest.mark.slow
def test_the_documentation_builds_without_a_broken_link(tmp_path):
    passes(
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-c",
        "docs",
        "-b",
        "html",
        ".",
        str(tmp_path),
    )


def test_scripts_pass_shellcheck():
    passes(
        tool("shellcheck"),
        *sorted(str(path) for path in (ROOT / "vagrant").glob("*.sh")),
        ".ci/apart",
        ".ci/run",
        ".ci/sanitize",
        ".ci/test",
    )


def test_the_vagrantfile_is_valid():
    passes(tool("vagrant"), "validate", env=os.environ | {"VAGRANT_CWD": str(ROOT / "vagrant")})


def test_make_runs_the_provisioning_script():
    tests = (
        "test",
        "test-all",
        "test-changed",
        "test-lint",
        "sanitize",
        "lint",
        "site",
        "fuzz",
        "performance",
        "generated",
    )
    for target in ("setup", "demo", *tests):
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"make -n {target}: {done.stdout}{done.stderr}"
        called = set(re.findall(r"^vagrant/provision\.sh *(.*?) *$", done.stdout, re.MULTILINE))
        assert called == {"tests" if target in tests else ""}, target


@pytest.mark.parametrize("habit", plain_english.HABITS, ids=lambda habit: habit.name)
def test_docstrings_are_plain_english(habit):
    found = list(plain_english.docstrings(plain_english.python_files()))
    assert plain_english.words(found) > 100_000
    named = "\n".join(f"{each.path}:{each.line}" for each in plain_english.places(habit, found))
    assert plain_english.amount(habit, found) <= habit.limit, named


def test_habits_are_found_where_they_are(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        '"""What a module is."""\n\nLIMIT = 1\n"""Of a run."""\n\n\ndef run():\n'
        '    """Run the host whose name is that of\n    the switch beside it."""\n    "no docstring whose"\n'
    )
    found = list(plain_english.docstrings([path]))
    assert [each.line for each in found] == [1, 4, 8]
    assert {habit.name: len(plain_english.places(habit, found)) for habit in plain_english.HABITS} == {
        "whose": 1,
        "that of, those of": 1,
        "beside": 1,
        "opens with What or Of": 2,
    }


PICTURES_AND_CAPTURES = {".png", ".pcap"}


def test_only_pictures_and_captures_are_binary():
    """Packages and built files that lie in a working tree get committed with it by mistake."""
    if not (ROOT / ".git").exists():
        pytest.skip("no git repository")
    listed = subprocess.run(
        [tool("git"), "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    files = [ROOT / name for name in listed.split("\0") if name]
    assert len(files) > 1000
    binary = [path for path in files if path.is_file() and b"\0" in path.read_bytes()]
    fuzzed = ROOT / "tests" / "fuzz" / "regressions"
    assert not [path for path in binary if path.suffix not in PICTURES_AND_CAPTURES and fuzzed not in path.parents]
