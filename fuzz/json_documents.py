"""The BMv2 JSON loader: a document loads and runs, or is refused with the path of the bad node."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from fuzz.programs import case_programs, document
from fuzz.target import Finding
from fuzz.twin import Twin
from weft.switch.backend import UnsupportedProgramError
from weft.switch.bmv2json import Bmv2JsonError, load_program

_RUN_ONE_OF = 3
_PACKETS = 6
_DETAIL = re.compile(r"'[^']*'|\[.*\]|\d+|0x[0-9a-f]+")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[(\"(?:[^\"\\]|\\.)*\")\]")
_NUMBERS = (
    0,
    1,
    2,
    -1,
    7,
    8,
    9,
    31,
    64,
    255,
    256,
    511,
    65535,
    2**31,
    2**32,
    2**63,
    2**64,
    2**200,
    -(2**31),
    0.5,
    1e300,
)
_STRINGS = (
    "", "0x", "0x0", "-0x1", "0xffffffffffffffffffff", "field", "header", "expression", "hexstr", "local",
    "lookahead", "stack_field", "header_stack", "union_stack", "bool", "string", "runtime_data",
    "parameters_vector", "scalars", "standard_metadata", "$valid$", "egress_spec", "d2b", "b2d", "?", "+",
    "<<", "two_comp_mod", "sat_cast", "usat_cast", "dereference_header_stack", "last_stack_index",
    "size_stack", "access_field", "valid_union", "exact", "lpm", "ternary", "range", "simple", "indirect",
    "indirect_ws", "extract", "extract_VL", "set", "verify", "shift", "advance", "primitive", "assign",
    "assign_VL", "assign_header", "assign_union", "assign_header_stack", "push", "pop", "add_header",
    "remove_header", "_jump", "_jump_if_zero", "exit", "drop", "resubmit", "recirculate",
    "clone_ingress_pkt_to_egress", "truncate", "count", "execute_meter", "register_read",
    "register_write", "generate_digest", "modify_field_with_hash_based_offset", "default", "parse_vset",
    "start", "ingress", "egress", "*", "\x00", "é", "a.b",
)  # fmt: skip


class JsonTarget:
    """A case is a document."""

    name = "json"
    suffix = ".json"
    covered_paths = ("weft/switch/bmv2json", "weft/switch/lowering", "weft/switch/oracle")
    timeout_s = 30.0

    def seeds(self) -> list[bytes]:
        """What the compiler makes of Weft's conformance cases."""
        return [document(path) for path in case_programs()]

    def mutate(self, rng: random.Random, parents: Sequence[bytes]) -> bytes:
        """A document with a few nodes changed; now and then one with damaged bytes."""
        if rng.random() < 0.05:
            return _damaged(rng, parents[0])
        try:
            tree, other = json.loads(parents[0]), json.loads(parents[-1])
        except (ValueError, RecursionError):
            return _damaged(rng, parents[-1])
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            tree = mutate_tree(rng, tree, other)
        return json.dumps(tree).encode()

    def execute(self, case: bytes) -> str:
        """Load; run packets through some of the documents that load."""
        try:
            program = load_program(case)
        except Bmv2JsonError as error:
            _require_path(error, case)
            return "refused: " + _DETAIL.sub("·", error.problem)[:60]
        digest = sha256(case).digest()
        if digest[0] % _RUN_ONE_OF:
            return "loaded"
        try:
            twin = Twin(program)
        except UnsupportedProgramError as error:
            return "refused by the switch: " + _DETAIL.sub("·", str(error))[:60]
        rng = random.Random(digest)
        for _ in range(_PACKETS):
            twin.process(rng.randrange(4), rng.randbytes(rng.choice((0, 1, 14, 40, 120))))
        twin.compare_state()
        return "loaded and run"


def _require_path(error: Bmv2JsonError, case: bytes) -> None:
    """The error's path leads to a node of the document."""
    try:
        node: Any = json.loads(case)
    except (ValueError, RecursionError):
        node = None
    if not error.place.startswith("$"):
        raise Finding(f"an error without a path: {error}") from error
    if node is None:
        return
    at = 1
    while at < len(error.place):
        step = _STEP.match(error.place, at)
        try:
            if step is None:
                raise KeyError(error.place[at:])
            name, index, quoted = step.groups()
            node = node[int(index) if index else json.loads(quoted) if quoted else name]
            at = step.end()
        except (KeyError, IndexError, TypeError):
            raise Finding(f"an error with a path that is not there: {error}") from error


def _damaged(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    if rng.random() < 0.3:
        return data[:at]
    patch = rng.choice(
        (rng.randbytes(rng.randrange(4)), b"[" * 100_000, b'"', b"}", b"NaN", b"1e999", b"-", b"\\ud800")
    )
    return data[:at] + patch + data[at + rng.randrange(4) :]


def mutate_tree(rng: random.Random, tree: Any, other: Any) -> Any:
    """`tree` with one node changed; `other` lends nodes."""
    places = _places(tree)
    if not places:
        return _value(rng, other)
    holder, step = rng.choice(places)
    match rng.randrange(8):
        case 0:
            del holder[step]
        case 1:
            holder[step] = _value(rng, other)
        case 2:
            holder[step] = copy.deepcopy(_like(rng, holder[step], step, places))
        case 3 if isinstance(holder, list):
            holder.insert(step, copy.deepcopy(holder[rng.randrange(len(holder))]))
        case 3:
            holder[rng.choice((*_STRINGS, *holder))] = _value(rng, other)
        case 4 if isinstance(holder, list):
            rng.shuffle(holder)
        case 4 | 5:
            holder[step] = _near(rng, holder[step])
        case 6:
            theirs = _places(other)
            lender, at = rng.choice(theirs) if theirs else (holder, step)
            holder[step] = copy.deepcopy(lender[at])
        case _:
            holder[step] = copy.deepcopy(_like(rng, holder[step], step, places))
    return tree


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """All (holder, key or index) pairs."""
    found: list[tuple[Any, Any]] = []
    pending = [tree]
    while pending:
        holder = pending.pop()
        if isinstance(holder, dict):
            steps: list[Any] = list(holder)
        elif isinstance(holder, list):
            steps = list(range(len(holder)))
        else:
            continue
        found += [(holder, step) for step in steps]
        pending += [holder[step] for step in steps]
    return found


def _value(rng: random.Random, other: Any) -> Any:
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice((None, True, False))
    if kind == 1:
        return rng.choice(_NUMBERS)
    if kind == 2:
        return rng.choice(_STRINGS)
    if kind == 3:
        return rng.choice(([], {}, [[]], [None], {"type": rng.choice(_STRINGS), "value": rng.choice(_STRINGS)}))
    places = _places(other)
    if not places:
        return None
    holder, step = rng.choice(places)
    return copy.deepcopy(holder[step])


def _like(rng: random.Random, value: Any, step: Any, places: list[tuple[Any, Any]]) -> Any:
    """The value of another place with the same name, or of the same type."""
    alike = [holder[at] for holder, at in places if at == step and holder[at] != value]
    if not alike:
        alike = [holder[at] for holder, at in places if type(holder[at]) is type(value)]
    return rng.choice(alike)


def _near(rng: random.Random, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, -value, value * 8, value ^ 1, rng.choice(_NUMBERS)))
    if isinstance(value, str):
        return rng.choice((value + "x", value[:-1], value.upper(), value * 2, rng.choice(_STRINGS)))
    if isinstance(value, list):
        return rng.choice((value[:-1], value[1:], value + value, [value], value[::-1]))
    if isinstance(value, dict):
        return rng.choice((list(value), list(value.values()), {**value, "type": rng.choice(_STRINGS)}))
    return rng.choice(_NUMBERS)
