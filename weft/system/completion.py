"""Completion of a command's words in shells: click's scripts, where they belong, and names with a colon in bash."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from weft.system.shipped_labs import LAB_PREFIX

SHELLS = ("bash", "zsh", "fish")
"""Shells for which click has a script."""


class _Bash(BashComplete):
    """Completes `lab:NAME`, which bash splits at the colon (COMP_WORDBREAKS) into the words `lab`, `:` and `NAME`.

    Bash then replaces the part behind the colon only.
    """

    name = "bash"
    _is_split = False

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor's, and the cursor's."""
        words = split_arg_string(os.environ["COMP_WORDS"])
        place = int(os.environ["COMP_CWORD"])
        before, current = words[1:place], "".join(words[place : place + 1])
        prefix, colon = LAB_PREFIX[:-1], LAB_PREFIX[-1]
        if before[-2:] == [prefix, colon]:
            self._is_split = True
            before, current = before[:-2], LAB_PREFIX + current
        elif before[-1:] == [prefix] and current == colon:
            self._is_split = True
            before, current = before[:-1], LAB_PREFIX
        return _joined(before), current

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return a line for click's script."""
        value = str(item.value)
        return f"{item.type},{value.removeprefix(LAB_PREFIX) if self._is_split else value}"


def _joined(words: list[str]) -> list[str]:
    """Return words with those of each `lab:NAME` in one."""
    text = "\n".join(words)
    prefix, colon = LAB_PREFIX[:-1], LAB_PREFIX[-1]
    return f"\n{text}".replace(f"\n{prefix}\n{colon}\n", f"\n{LAB_PREFIX}")[1:].split("\n") if words else []


def register() -> None:
    """Have click complete in bash as above."""
    add_completion_class(_Bash)


def script(shell: str, command: click.Command, variable: str) -> str:
    """Return the script with which a shell completes the words of a command, `variable` being click's."""
    kind = get_completion_class(shell)
    assert kind is not None, shell
    return kind(command, {}, str(command.name), variable).source()


def place_of(shell: str, name: str) -> tuple[Path, str]:
    """Return the file in which a shell looks for a user's completion of a command, and what the user has to do."""
    data = _folder("XDG_DATA_HOME", ".local/share")
    if shell == "bash":
        file = data / "bash-completion" / "completions" / name
        return file, f"open a new shell; without the package bash-completion, add to ~/.bashrc: source {file}"
    if shell == "zsh":
        file = data / "zsh" / "site-functions" / f"_{name}"
        return file, f"add to ~/.zshrc, before compinit: fpath=({file.parent} $fpath); then open a new shell"
    return _folder("XDG_CONFIG_HOME", ".config") / "fish" / "completions" / f"{name}.fish", "open a new shell"


def _folder(variable: str, default: str) -> Path:
    base = os.environ.get(variable, "")
    # The XDG base directory specification requires ignoring relative paths.
    return Path(base) if os.path.isabs(base) else Path.home() / default
