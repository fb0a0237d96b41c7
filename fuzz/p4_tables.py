"""Random tables of P4 programs: their keys, actions, and the entries in the program."""

from __future__ import annotations

import random

from fuzz.p4_expressions import Expressions

MEMORY_CELLS = 8
"""Of every counter, meter and register: a power of two."""
_MOST_ENTRIES = 5
_WIDEST_PREFIX = 64
"""p4c takes wider prefixes for masks with holes."""


class Tables:
    """The tables and actions of one control."""

    def __init__(self, rng: random.Random, scope: Expressions) -> None:
        self._rng = rng
        self._scope = scope
        self.actions: list[tuple[str, list[int]]] = []
        """Name and widths of the parameters."""
        self._unapplied: list[str] = []

    def call(self) -> str:
        """A call of an action with constants."""
        name, widths = self._rng.choice(self.actions)
        return f"{name}({', '.join(f'{width}w{self._rng.getrandbits(width)}' for width in widths)})"

    def table(self, name: str) -> str:
        """A declaration of a table, which can be applied once."""
        rng = self._rng
        fields = self._scope.fields + self._scope.inputs
        keys = rng.sample(fields, min(len(fields), rng.randrange(1, 4)))
        kinds = [rng.choice(("exact", "ternary", "range", "optional")) for _ in keys]
        if rng.random() < 0.4:  # one lpm key at most, beside exact ones
            kinds = ["exact"] * len(keys)
            kinds[rng.randrange(len(kinds))] = "lpm"
        key = " ".join(f"{field}: {kind};" for (field, _, _), kind in zip(keys, kinds, strict=True))
        actions = " ".join(f"{each};" for each, _ in self.actions)
        self._unapplied.append(name)
        rest = f"default_action = {self.call()};"
        declared = ""
        match rng.randrange(4):
            case 0 | 1:
                rest += f" {rng.choice(('const ', ''))}entries = {{ {self._entries(keys, kinds)} }}"
            case 2:
                declared = f"    direct_counter(CounterType.packets_and_bytes) {name}_counter;\n"
                rest += f" counters = {name}_counter;"
            case _ if "range" not in kinds:
                selector = " meta.seen: selector;"
                declared = f"    action_selector(HashAlgorithm.crc16, 32, 16) {name}_selector;\n"
                key += selector
                rest = f"implementation = {name}_selector;"
            case _:
                pass
        return f"{declared}    table {name} {{ key = {{ {key} }} actions = {{ {actions} NoAction; }} {rest} }}"

    def applied(self) -> str:
        """A statement that applies a table, if one is left."""
        scope, rng = self._scope, self._rng
        if not self._unapplied:
            return scope.assignment()
        table = self._unapplied.pop()
        action, _ = rng.choice(self.actions)
        return rng.choice(
            (
                f"if ({table}.apply().hit) {{ {scope.assignment()} }}",
                f"if (!{table}.apply().hit) {{ {scope.assignment()} }} else {{ {scope.assignment()} }}",
                f"switch ({table}.apply().action_run) {{ {action}: {{ {scope.assignment()} }}"
                f" default: {{ {scope.assignment()} }} }}",
                f"{table}.apply();",
            )
        )

    def _entries(self, keys: list[tuple[str, int, bool]], kinds: list[str]) -> str:
        entries: dict[str, str] = {}
        for _ in range(self._rng.randrange(1, _MOST_ENTRIES + 1)):
            matches = [self._match(width, signed, kind) for (_, width, signed), kind in zip(keys, kinds, strict=True)]
            entries.setdefault(", ".join(matches), self.call())
        return " ".join(f"({key}): {call};" for key, call in entries.items())

    def _match(self, width: int, signed: bool, kind: str) -> str:
        small = max(1, width - 1)
        letter = "s" if signed else "w"
        low, high = sorted(self._rng.getrandbits(small) for _ in range(2))
        if kind != "exact" and self._rng.random() < 0.2:
            return "_"
        if signed or kind in ("exact", "optional"):
            return f"{width}{letter}{low}"
        if kind == "lpm":
            if width > _WIDEST_PREFIX:
                return f"{width}w{low}"
            mask = (1 << width) - (1 << self._rng.randrange(width))
            return f"{width}w{low & mask} &&& {width}w{mask}"
        return f"{width}w{low} {'&&&' if kind == 'ternary' else '..'} {width}w{high}"
