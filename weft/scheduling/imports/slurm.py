"""Slurm's topology.conf, of its plugins topology/tree and topology/block.

Source: the manual page topology.conf(5) and doc/html/topology.shtml of Slurm. `LinkSpeed` is read and means nothing, as
in Slurm. A tree's level 1 are the switches with nodes; jobs do not span switches without a common parent. Blocks are
paired with the next ones into larger blocks; `BlockSizes` are their sizes in nodes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from weft.errors import BadInputError
from weft.quantities.units import shown
from weft.scheduling.cluster import WHOLE, Cluster, Level, level_of
from weft.scheduling.imports.hostlists import MOST_NAMES, names_of

_MOST_LEVELS = 16
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SWITCH, _BLOCK, _SIZES = "switchname", "blockname", "blocksizes"
_KEYS: Mapping[str, Mapping[str, str]] = {
    _SWITCH: {_SWITCH: "SwitchName", "switches": "Switches", "nodes": "Nodes", "linkspeed": "LinkSpeed"},
    _BLOCK: {_BLOCK: "BlockName", "nodes": "Nodes"},
    _SIZES: {_SIZES: "BlockSizes"},
}
"""Parameters of a line by its first one; names are not case-sensitive."""


@dataclass(frozen=True)
class _Line:
    place: str
    kind: str
    values: Mapping[str, str]

    def error(self, problem: str, valid: str = "") -> BadInputError:
        return BadInputError(problem, place=self.place, valid=valid)

    def names(self, key: str) -> list[str]:
        return names_of(self.values[key], f"{self.place}: {_KEYS[self.kind][key]}")

    @property
    def name(self) -> str:
        name = self.values[self.kind]
        if not _NAME.fullmatch(name):
            raise self.error(f"{shown(name)} is no name", "up to 64 letters, digits, _ . and -")
        return name


def read_slurm(path: Path, text: str, accelerators_per_host: int) -> Cluster:
    """Return the cluster of a topology.conf. Raises BadInputError with the line."""
    lines = _lines(path, text)
    kinds = {line.kind for line in lines}
    if not kinds & {_SWITCH, _BLOCK}:
        raise BadInputError("has no switches and no blocks", place=path, valid="lines SwitchName=… or BlockName=…")
    if _SWITCH in kinds and len(kinds) > 1:
        line = next(line for line in lines if line.kind != _SWITCH)
        raise line.error("switches and blocks do not go together", "topology/tree or topology/block")
    hosts, levels, notes = _tree(lines) if _SWITCH in kinds else _blocks(lines)
    return Cluster(tuple(hosts), accelerators_per_host, tuple(levels), notes=tuple(notes))


def _lines(path: Path, text: str) -> list[_Line]:
    found = []
    for number, raw in enumerate(text.splitlines(), 1):
        place = f"{path}:{number}"
        try:
            words = shlex.split(raw, comments=True)
        except ValueError as error:
            raise BadInputError(f"cannot be read: {error}", place=place) from None
        if words:
            found.append(_line(place, words))
    return found


def _line(place: str, words: Sequence[str]) -> _Line:
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise BadInputError(f"{shown(word)} is no parameter", place=place, valid="NAME=VALUE")
        if key.lower() in values:
            raise BadInputError(f"{key} is given twice", place=place)
        values[key.lower()] = value
    kind = next(iter(values))
    if kind not in _KEYS:
        first = words[0].partition("=")[0]
        valid = ", ".join(keys[own] for own, keys in _KEYS.items())
        raise BadInputError(f"{shown(first)} begins no line", place=place, valid=valid)
    for key, word in zip(values, words, strict=True):
        if key not in _KEYS[kind]:
            raise BadInputError(
                f"unknown parameter {shown(word.partition('=')[0])}", place=place, valid=_KEYS[kind].values()
            )
    return _Line(place, kind, values)


def _unique(lines: Sequence[_Line]) -> dict[str, _Line]:
    found: dict[str, _Line] = {}
    for line in lines:
        if line.name in found:
            raise line.error(f"{line.name} is described twice, first at {found[line.name].place}")
        found[line.name] = line
    return found


def _hosts_of(lines: Mapping[str, _Line]) -> dict[str, str]:
    """Return the hosts in order, each with the name of what it belongs to."""
    found: dict[str, str] = {}
    for name, line in lines.items():
        if "nodes" not in line.values:
            continue
        for host in line.names("nodes"):
            if host in found:
                raise line.error(f"node {host} is of {found[host]} and of {name}", "one of them")
            found[host] = name
            if len(found) > MOST_NAMES:
                raise line.error("too many nodes", f"up to {MOST_NAMES:,}")
    return found


def _tree(lines: Sequence[_Line]) -> tuple[list[str], list[Level], list[str]]:
    switches = _unique(lines)
    for line in lines:
        if ("nodes" in line.values) == ("switches" in line.values):
            raise line.error(f"switch {line.name} has both or none of its children", "Switches or Nodes")
    parents, notes = _parents(switches)
    hosts = _hosts_of(switches)
    if not hosts:
        raise BadInputError("no switch has nodes", place=lines[0].place)
    chains = {name: _chain(name, parents, switches) for name in dict.fromkeys(hosts.values())}
    height = max(map(len, chains.values()))
    levels = []
    for number in range(height):
        # A switch nearer to the top than others stands for its own parents.
        keys = [chains[leaf][min(number, len(chains[leaf]) - 1)] for leaf in hosts.values()]
        levels.append(level_of(f"switch-{number + 1}", keys))
    return list(hosts), levels, notes


def _parents(switches: Mapping[str, _Line]) -> tuple[dict[str, str], list[str]]:
    parents: dict[str, str] = {}
    notes: list[str] = []
    children: dict[tuple[str, ...], str] = {}
    for name, line in switches.items():
        if "switches" not in line.values:
            continue
        names = tuple(line.names("switches"))
        if names in children:
            notes.append(f"{name} has the same switches as {children[names]}, and does not count.")
            continue
        children[names] = name
        for child in names:
            if child not in switches:
                raise line.error(f"switch {child} is not described", "a line SwitchName=… for it")
            if child in parents:
                raise line.error(f"switch {child} is of {parents[child]} and of {name}", "one of them")
            parents[child] = name
    return parents, notes


def _chain(leaf: str, parents: Mapping[str, str], switches: Mapping[str, _Line]) -> list[str]:
    chain = [leaf]
    while (parent := parents.get(chain[-1])) is not None:
        if parent in chain:
            raise switches[parent].error(f"switch {parent} is below itself")
        chain.append(parent)
        if len(chain) > _MOST_LEVELS:
            raise switches[leaf].error(f"{leaf} has too many switches above it", f"up to {_MOST_LEVELS} levels")
    return chain


def _blocks(lines: Sequence[_Line]) -> tuple[list[str], list[Level], list[str]]:
    blocks = _unique([line for line in lines if line.kind == _BLOCK])
    for line in blocks.values():
        if "nodes" not in line.values:
            raise line.error(f"block {line.name} has no nodes", "Nodes")
    hosts = _hosts_of(blocks)
    names = list(hosts.values())
    levels = [level_of("block", names)]
    place = {name: number for number, name in enumerate(blocks)}
    sizes = [line for line in lines if line.kind == _SIZES]
    if len(sizes) > 1:
        raise sizes[1].error(f"BlockSizes are given twice, first at {sizes[0].place}")
    for together in _multiples(sizes[0], levels[0]) if sizes else ():
        keys = [place[name] // together for name in names]
        levels.append(level_of(f"block-{together}", keys, {key: f"{together} blocks, {key}" for key in keys}))
    levels.append(level_of(WHOLE, [WHOLE] * len(names)))
    return list(hosts), levels, []


def _multiples(line: _Line, base: Level) -> list[int]:
    """Return how many blocks each higher size pairs."""
    texts = line.values[_SIZES].split(",")
    if not all(text.isascii() and text.isdigit() and len(text) <= 9 and int(text) for text in texts):
        raise line.error(f"{shown(line.values[_SIZES])} are no sizes", "numbers, such as 30,120")
    found = [int(text) for text in texts]
    smallest = int(base.sizes.min())
    if smallest < found[0]:
        raise line.error(f"a block of {smallest} nodes is below the base size, {found[0]}", f"up to {smallest}")
    for low, high in pairwise(found):
        times, rest = divmod(high, low)
        if rest or times < 2 or times & (times - 1):
            raise line.error(f"{high} is no power of two times {low}", "such as 30,120")
    return [size // found[0] for size in found[1:]]
