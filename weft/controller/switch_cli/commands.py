"""The commands by name, each with its usage; modules of this package register theirs with `@command`."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.controller.errors import CommandError
from weft.hints import did_you_mean

if TYPE_CHECKING:
    from weft.controller.switch_cli.session import CommandSession

Run = Callable[["CommandSession", Sequence[str]], Awaitable[str]]


@dataclass(frozen=True)
class Command:
    """A command: its name, usage, one-sentence summary and function."""

    name: str
    usage: str
    summary: str
    run: Run

    def require_words(self, words: Sequence[str]) -> None:
        """Check the number of words against the usage: `<a> <b> [c] …`. Raises CommandError."""
        parts = self.usage.split()
        least = sum(part.startswith("<") for part in parts)
        most = None if parts and parts[-1] == "…" else sum(part != "…" for part in parts)
        if len(words) < least or (most is not None and len(words) > most):
            count = f"{len(words)} word{'' if len(words) == 1 else 's'}"
            raise CommandError(f"has {count}", valid=f"{self.name} {self.usage}".rstrip())


COMMANDS: dict[str, Command] = {}


def command(name: str, usage: str = "") -> Callable[[Run], Run]:
    """Register a function as a command; its docstring's first line is the summary."""

    def register(run: Run) -> Run:
        summary = (run.__doc__ or "").strip().splitlines()[0]
        COMMANDS[name] = Command(name, usage, summary, run)
        return run

    return register


def named(name: str) -> Command:
    """Return a command by name. Raises CommandError: it is unknown, or P4Runtime cannot express it."""
    if name in COMMANDS:
        return COMMANDS[name]
    if name in REFUSED:
        raise CommandError(f"{name} is not possible here: {REFUSED[name]}")
    raise CommandError(f"unknown command {name[:80]!r}; {did_you_mean(name[:80], COMMANDS)}")


_NO_DEVICE = "it does not manage the switch itself"
REFUSED = {
    "load_new_config_file": "`weft run` and `weft lab` load programs",
    "swap_configs": "`weft run` and `weft lab` load programs",
    "port_add": _NO_DEVICE,
    "port_remove": _NO_DEVICE,
    "set_crc16_parameters": "hash functions are the program's",
    "set_crc32_parameters": "hash functions are the program's",
    "set_toeplitz_hash_key": "hash functions are the program's",
    "reset_state": (
        "the controller's entries would go, too; table_clear, register_reset, counter_reset, … empty one object"
    ),
    "serialize_state": _NO_DEVICE,
    "shell": "commands of the machine are not run from here",
}
"""Commands of simple_switch_CLI that are not supported here, and why."""

for _module in (
    "tables",
    "indirect_tables",
    "profiles",
    "arrays",
    "value_sets",
    "replication",
    "mirroring",
    "management",
    "showing",
):
    importlib.import_module(f"weft.controller.switch_cli.{_module}")
