"""Interprets hosts' `route` and `arp` commands in network files: default routes and static ARP entries.

Under the real clock, hosts run the commands. Under the virtual clock hosts have no shell: the effect of these commands
is applied, and any other command is reported as not run.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from ipaddress import IPv4Address

_ADDRESS = r"([0-9]{1,3}(?:\.[0-9]{1,3}){3})"
_MAC = r"([0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5})"
_DEVICE = r"(?: dev \S+)?"
_GATEWAYS = (
    re.compile(rf"route add default gw {_ADDRESS}{_DEVICE}(?: \S+)?"),
    re.compile(rf"ip (?:-4 )?r(?:oute)? (?:add|replace) default via {_ADDRESS}{_DEVICE}"),
)
_NEIGHBOURS = (
    re.compile(rf"arp (?:-i \S+ )?-s {_ADDRESS} {_MAC}"),
    re.compile(rf"ip n(?:eigh(?:bour)?)? (?:add|replace) {_ADDRESS} lladdr {_MAC}{_DEVICE}(?: nud permanent)?"),
    re.compile(rf"ip n(?:eigh(?:bour)?)? (?:add|replace) {_ADDRESS}{_DEVICE} lladdr {_MAC}(?: nud permanent)?"),
)
_ON_LINK = re.compile(rf"ip (?:-4 )?r(?:oute)? (?:add|replace) {_ADDRESS}/[0-9]{{1,2}} dev \S+")


@dataclass(frozen=True)
class Understood:
    """Effect of commands: the last gateway and all neighbours; `others` are commands not understood."""

    gateway: str | None
    neighbours: tuple[tuple[str, str], ...]
    others: tuple[str, ...]


def understand(commands: tuple[str, ...]) -> Understood:
    """Return the gateway and neighbours that commands set, and the commands not understood."""
    gateway = None
    neighbours: dict[str, str] = {}
    others = []
    for command in commands:
        text = _words(command)
        if (found := _first(_GATEWAYS, text)) and _is_address(found[1]):
            gateway = found[1]
        elif (found := _first(_NEIGHBOURS, text)) and _is_address(found[1]):
            neighbours[found[1]] = found[2].lower()
        elif not _ON_LINK.fullmatch(text):  # a route to the host's own network, which is on the link anyway
            others.append(command)
    return Understood(gateway, tuple(neighbours.items()), tuple(others))


def _words(command: str) -> str:
    """Return a command with single spaces and without the folder of its program."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return " ".join([words[0].rpartition("/")[2], *words[1:]]) if words else ""


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> re.Match[str] | None:
    return next((match for pattern in patterns if (match := pattern.fullmatch(text))), None)


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True
