"""simple_switch_grpc's options without effect in `weft switch`, with an explanation of each.

Sources: behavioral-model, src/bm_sim/options_parse.cpp and targets/simple_switch_grpc/main.cpp.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

JSON_VERSION = "2.23"
"""The newest version of behavioral-model's JSON format (docs/JSON_format.md); all 2.x versions are read."""

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ForeignOption:
    """An option without effect.

    `refused` ends the start, because the switch cannot do what the user expects; otherwise the option is logged and
    ignored. `argument` False is a flag.
    """

    name: str
    reason: str
    refused: bool = False
    argument: bool = True

    def parameter(self) -> click.Option:
        """The option for the command line."""
        kind = "Refused" if self.refused else "Ignored with a warning"
        # Refused as it is parsed; ignored ones wait until logging is set up.
        callback: Callable[..., Any] | None = self._refuse if self.refused else None
        return click.Option(
            [f"--{self.name}"],
            is_flag=not self.argument,
            metavar="VALUE" if self.argument else None,
            help=f"{kind}: {self.reason}.",
            callback=callback,
        )

    @property
    def key(self) -> str:
        """The name of the parameter."""
        return self.name.replace("-", "_")

    def _refuse(self, context: click.Context, parameter: click.Parameter, value: object) -> object:
        if value not in (None, False):
            raise click.UsageError(f"--{self.name}: {self.reason}", context)
        return value


def _ignored(name: str, reason: str, *, argument: bool = True) -> ForeignOption:
    return ForeignOption(name, reason, argument=argument)


def _refused(name: str, reason: str, *, argument: bool = True) -> ForeignOption:
    return ForeignOption(name, reason, refused=True, argument=argument)


GENERAL = (
    _ignored("nanolog", "there are no nanomsg events; -L trace logs every packet"),
    _ignored("notifications-addr", "there is no nanomsg; digests and timeouts come over P4Runtime"),
    _refused("use-files", "packets come from interfaces only; `weft trace --packet FILE.pcap` runs a capture"),
    _refused("packet-in", "packets come from interfaces only, not from a nanomsg socket"),
    _refused("restore-state", "a switch's state cannot be saved or restored; write it over P4Runtime"),
    _refused("debugger", "there is no debugger; `weft trace` shows what a packet meets", argument=False),
    _refused("debugger-addr", "there is no debugger; `weft trace` shows what a packet meets"),
)
TARGET = (
    _refused("load-modules", "extern types from shared objects are not supported"),
    _refused("dp-grpc-server-addr", "packets come from interfaces only, not from a gRPC channel"),
    _ignored("disable-swap", "a pipeline may be replaced at any time", argument=False),
    _ignored("max-mc-groups", "there is no such limit"),
    _ignored("max-l1-entries", "there is no such limit"),
    _ignored("max-l2-entries", "there is no such limit"),
)


def take_out(options: dict[str, Any], foreign: tuple[ForeignOption, ...]) -> dict[str, str]:
    """Remove options without effect; return an explanation for each one given, by name."""
    values = {option: options.pop(option.key, None) for option in foreign}
    return {option.name: option.reason for option, value in values.items() if value not in (None, False)}


def warn(ignored: Mapping[str, str]) -> None:
    """Log a line for every option without effect."""
    for name, reason in ignored.items():
        _LOGGER.warning("--%s has no effect: %s", name, reason)
