"""Resolves users' names for a program's fields, tables, actions, states and constants."""

from __future__ import annotations

from collections.abc import Iterable

from weft.engine import _core
from weft.errors import Refusal
from weft.hints import did_you_mean
from weft.switch.bmv2json import FieldRef, Header, HeaderRef, KeyField, Program
from weft.switch.debug.condition_tokens import quoted
from weft.switch.trace.values import field_name

_STANDARD = "standard_metadata"
_SYNONYMS = {"src": ("source", "src"), "dst": ("destination", "dst")}


class UnknownNameError(Refusal, ValueError):
    """The program has no such name; the message lists the valid ones."""


class Names:
    """Names as in the program, without `hdr.`; metadata as `meta.`, standard metadata also without prefix.

    A field may be shortened to a unique prefix within its header (`ipv4.dst` for `ipv4.dst_addr`); a table, an action
    or a parser state to its part after a dot.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._fields: dict[str, dict[str, FieldRef]] = {}
        for header in program.headers.values():
            for field in header.type.fields:
                if not field.name.startswith("_padding"):
                    ref = FieldRef(header.name, field.name, field.width_bits, field.signed)
                    owner, _, own = shown_name(header, field.name).rpartition(".")
                    self._fields.setdefault(owner, {})[own] = ref
        self._tables = [name for name in program.tables if not name.startswith("tbl_")]
        self._actions = [action.name for action in program.actions.values()]
        self._states = [name for parser in program.parsers.values() for name in parser.states]

    def field(self, text: str) -> FieldRef:
        """Return a field of a header or of metadata. Raises UnknownNameError."""
        owner, dot, own = text.removeprefix("hdr.").rpartition(".")
        if not dot:
            found = self._fields.get(_STANDARD, {}).get(own) or self._fields.get("", {}).get(own)
            if found is not None:
                return found
            raise UnknownNameError(f"unknown name {quoted(text)}; {did_you_mean(text, self._words())}")
        fields = self._fields.get(owner)
        if fields is None:
            owners = [name for name in self._fields if name]
            raise UnknownNameError(f"unknown header {quoted(owner)}; {did_you_mean(owner, owners)}")
        found = fields.get(own) or _shortened(own, fields)
        if found is None:
            valid = (f"{owner}.{name}" for name in fields)
            raise UnknownNameError(f"unknown field {quoted(text)}; {did_you_mean(f'{owner}.{own}', valid)}")
        return found

    def header(self, text: str) -> HeaderRef | None:
        """Return a packet header, None if it does not exist."""
        found = self._program.headers.get(text.removeprefix("hdr."))
        return HeaderRef(found.name) if found is not None and not found.metadata else None

    def constant(self, text: str) -> int | None:
        """Return the value of `error.NAME` or an enum member; None for other names."""
        owner, _, own = text.rpartition(".")
        if owner == "error":
            if own not in self._program.errors:
                hint = did_you_mean(own, self._program.errors)
                raise UnknownNameError(f"unknown error {quoted(text)}; {hint}")
            return self._program.errors[own]
        members = self._program.enums.get(owner)
        if members is None:
            return None
        if own not in members:
            raise UnknownNameError(f"unknown member {quoted(text)}; {did_you_mean(own, members)}")
        return members[own]

    def table(self, text: str) -> str:
        """Return a table's full name. Raises UnknownNameError."""
        return _by_end(text, self._tables, "table")

    def action(self, text: str) -> str:
        """Return an action's full name. Raises UnknownNameError."""
        return _by_end(text, self._actions, "action")

    def state(self, text: str) -> str:
        """Return a parser state's full name. Raises UnknownNameError."""
        return _by_end(text, self._states, "parser state")

    def keys(self, table: str) -> tuple[KeyField, ...]:
        """Return the fields of a table's key."""
        return self._program.tables[table].key

    def action_ids(self, name: str) -> frozenset[int]:
        """Return the ids of actions with this name; p4c repeats NoAction."""
        return frozenset(each.id for each in self._program.actions.values() if each.name == name)

    def drop_reason(self, text: str) -> str:
        """Return the name of a drop reason. Raises UnknownNameError."""
        reasons = _core.Switch.drop_reasons()
        if text not in reasons:
            raise UnknownNameError(f"unknown reason {quoted(text)}; {did_you_mean(text, reasons)}")
        return text

    def _words(self) -> list[str]:
        headers = [name for name, each in self._program.headers.items() if not each.metadata]
        return [
            *headers,
            *self._fields.get(_STANDARD, ()),
            "drop",
            "absorbed",
            "table",
            "action",
            "state",
            "port",
            "out_port",
        ]


def shown_name(header: Header, field: str) -> str:
    """Return a field's name for users: ipv4.ttl, meta.flow, standard_metadata.egress_spec; a local variable's name."""
    return field_name(f"{header.name}.{field}")


def _shortened(own: str, fields: dict[str, FieldRef]) -> FieldRef | None:
    beginnings = _SYNONYMS.get(own, (own,))
    found = [ref for name, ref in fields.items() if name.startswith(tuple(beginnings))]
    return found[0] if len(found) == 1 else None


def _by_end(text: str, names: Iterable[str], what: str) -> str:
    known = list(dict.fromkeys(names))
    if text in known:
        return text
    found = [name for name in known if name.endswith(f".{text}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownNameError(f"{what} '{text}' is ambiguous", valid=found)
    raise UnknownNameError(f"unknown {what} {quoted(text)}; {did_you_mean(text, known)}")
