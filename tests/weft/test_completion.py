"""`weft completion`: scripts of click, which complete commands, options, files and labs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from weft.cli import COMMANDS, COMPLETE_VARIABLE, weft
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.system.completion import SHELLS
from weft.system.shipped_labs import LAB_PREFIX, lab_file, names_of_scenarios, shipped_labs

BIN = Path(sys.executable).parent


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)} | more


def in_bash(*words: str, directory: Path = ROOT) -> list[str]:
    """Return COMPREPLY for a line, split into words as bash does; the cursor is behind the last one."""
    quoted = " ".join(f"'{word}'" for word in words)
    text = (
        'source <(weft completion bash); COMP_CWORD=$(($# - 1)); COMP_WORDS=("$@"); '
        "_weft_completion weft 2>/dev/null; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", f"set -- {quoted}; {text}"],
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def by_protocol(shell: str, words: str, cursor: str) -> list[str]:
    """Return the values that a shell's script gets for its variables."""
    variables = {COMPLETE_VARIABLE: f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": cursor}
    done = subprocess.run(
        [sys.executable, "-m", "weft"], env=environment(**variables), capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    return lines[1::3] if shell == "zsh" else [line.partition(",")[2].partition("\t")[0] for line in lines]


def test_bash_completes_commands() -> None:
    assert in_bash("weft", "co") == [name for name in COMMANDS if name.startswith("co")]
    assert in_bash("weft", "") == list(COMMANDS)
    assert in_bash("weft", "labs", "no") == ["notebooks"]


def test_bash_completes_options() -> None:
    assert "--clock" in in_bash("weft", "run", "--cl")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("lab", ":", "01"), ["01-allreduce"]),
        (("lab:01",), ["lab:01-allreduce"]),
        (("lab", ":", "01-allreduce/b"), ["01-allreduce/bmv2.yaml"]),
        (("lab", ":", "01-allreduce", "--clock", "v"), ["virtual"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bash_completes_labs_though_it_splits_words_at_colons(words: tuple[str, ...], found: list[str]) -> None:
    assert in_bash("weft", "run", *words) == found


def test_bash_completes_the_empty_name_of_a_lab() -> None:
    assert in_bash("weft", "run", "lab", ":") == [name.removeprefix(LAB_PREFIX) for name in names_of_scenarios()]


def test_labs_are_completed_where_no_file_begins_like_their_prefix(tmp_path: Path) -> None:
    assert in_bash("weft", "run", "la", directory=tmp_path) == names_of_scenarios()
    (tmp_path / "large.yaml").touch()
    assert in_bash("weft", "run", "la", directory=tmp_path) == []  # bash itself completes files


@pytest.mark.parametrize("words", [("labs", "copy", "20"), ("check", "--lab", "20"), ("labs", "notebooks", "x", "20")])
def test_names_of_labs_are_completed(words: tuple[str, ...]) -> None:
    assert in_bash("weft", *words) == ["20-topology-design"]


@pytest.mark.parametrize(
    ("shell", "words", "cursor"), [("zsh", "weft run lab:01", "2"), ("fish", "weft run lab:01", "lab:01")]
)
def test_other_shells_complete_labs(shell: str, words: str, cursor: str) -> None:
    assert by_protocol(shell, words, cursor) == ["lab:01-allreduce"]


@pytest.mark.parametrize(("shell", "cursor"), [("zsh", "1"), ("fish", "doc")])
def test_other_shells_complete_commands(shell: str, cursor: str) -> None:
    assert by_protocol(shell, "weft doc", cursor) == ["doctor"]


@pytest.mark.parametrize("word", ["/no/such", "[a", "*", "examples/tim"])
def test_other_words_are_completed_as_files_by_the_shell(word: str) -> None:
    assert by_protocol("zsh", f"weft run '{word}'", "2") == [word]


def test_every_completed_scenario_is_one() -> None:
    names = names_of_scenarios()
    names += [each for lab in shipped_labs() for each in names_of_scenarios(f"{LAB_PREFIX}{lab.name}/")]
    for name in names:
        assert lab_file(name.removeprefix(LAB_PREFIX)).is_file(), name
    with pytest.raises(BadInputError):
        lab_file("no-such-lab")


def test_completing_a_command_imports_none() -> None:
    program = (
        "import sys; from weft.cli import COMMANDS, weft; import click;"
        "found = weft.shell_complete(click.Context(weft), 'r');"
        "print(*[each.value for each in found]);"
        "print([each.module for each in COMMANDS.values() if each.module in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "run report\n[]\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_installed_where_the_shell_looks(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    printed = CliRunner().invoke(weft, ["completion", shell], prog_name="weft")
    done = CliRunner().invoke(weft, ["completion", shell, "--install"], prog_name="weft")
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert str(file.relative_to(tmp_path)) == {
        "bash": ".local/share/bash-completion/completions/weft",
        "zsh": ".local/share/zsh/site-functions/_weft",
        "fish": ".config/fish/completions/weft.fish",
    }[shell]  # fmt: skip
    assert file.read_text() == printed.stdout
    assert COMPLETE_VARIABLE in printed.stdout
    assert done.stdout.startswith(f"wrote {file}; ")


def test_folders_of_the_user_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    CliRunner().invoke(weft, ["completion", "bash", "--install"], prog_name="weft", catch_exceptions=False)
    assert (tmp_path / "data" / "bash-completion" / "completions" / "weft").is_file()


def test_an_unknown_shell_names_the_valid_ones() -> None:
    refused = CliRunner().invoke(weft, ["completion", "tcsh"])
    assert refused.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in refused.output
