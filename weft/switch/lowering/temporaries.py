"""Finds temporaries: metadata fields without a value that lasts from one pipeline to the next.

A temporary need not be stored with a packet. Compilers make many: fabric.p4 has about a hundred, nearly all for
packets of in-network aggregation.

Each pipeline writes a temporary before reading it, or no other pipeline mentions it, so that it is 0 at the start of
the pipeline. This is a definite assignment analysis: forward over a pipeline's graph and an action's primitives, it
finds the fields written on every path. Fields mentioned elsewhere, such as in the parser, are not temporaries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from weft.switch import bmv2json
from weft.switch.lowering import intrinsics
from weft.switch.lowering.effects import (
    Effects,
    Name,
    all_names,
    executed,
    mentioned,
    names_in,
    read_too_early,
    touched,
)
from weft.switch.lowering.layout import BLOCK_ALIGNMENT, Temporary, align, native_bytes

MOST_TEMPORARIES_BYTES = 64 * 1024
"""Most bytes of a program's temporaries, as each pipeline has all on its stack; others stay in the packet's state."""


@dataclass(frozen=True, slots=True)
class Temporaries:
    """The temporaries of a program."""

    kinds: dict[Name, Temporary]
    """Kind of each temporary, in order of names."""
    zeroed: dict[str, tuple[Name, ...]]
    """Temporaries that a pipeline may read before writing them, by pipeline."""


def temporaries(program: bmv2json.Program) -> Temporaries:
    """Return all temporaries among the metadata fields of `program`."""
    whole_instances = set(program.headers)
    fields = {
        (header.name, item.name): item.width_bits
        for header in program.headers.values()
        if header.metadata
        for item in header.type.fields
        if not item.variable
    }
    effects = Effects(program)
    mentions = {name: mentioned(program, pipeline, effects) for name, pipeline in program.pipelines.items()}
    early = {name: read_too_early(pipeline, effects) for name, pipeline in program.pipelines.items()}
    lasting = set(_lasting(program))
    for reader, fields_read in early.items():
        for other in mentions.keys() - {reader}:
            lasting |= fields_read & mentions[other]
    used_whole = {header for header, field in lasting.union(*mentions.values()) if not field} & whole_instances
    shared = _in_shared_actions(program, effects)
    found: dict[Name, Temporary] = {}
    room_bytes = MOST_TEMPORARIES_BYTES
    for name in sorted(fields.keys() - lasting):
        size_bytes = align(native_bytes(fields[name]), BLOCK_ALIGNMENT)
        if name[0] in used_whole or size_bytes > room_bytes:
            continue
        room_bytes -= size_bytes
        found[name] = Temporary.SHARED if name in shared else Temporary.PRIVATE
    zeroed = {pipeline: tuple(sorted(fields_read & found.keys())) for pipeline, fields_read in early.items()}
    return Temporaries(found, zeroed)


def called_once(program: bmv2json.Program) -> frozenset[int]:
    """Return the ids of actions called from exactly one place, a table or a node of a pipeline."""
    calls: Counter[int] = Counter()
    for pipeline in program.pipelines.values():
        for node in pipeline.nodes.values():
            match node:
                case bmv2json.Table():
                    calls.update(action.id for action in executed(node))
                case bmv2json.ActionCallNode(action=action):
                    calls[action.id] += 1
    return frozenset(action_id for action_id, count in calls.items() if count == 1)


def _in_shared_actions(program: bmv2json.Program, effects: Effects) -> frozenset[Name]:
    """Return the fields mentioned by actions that are called from several places."""
    once = called_once(program)
    shared = (
        touched(effects.primitive(call))
        for action in program.actions.values()
        if action.id not in once
        for call in action.primitives
    )
    return frozenset[Name]().union(*shared)


# ---- fields that last


def _lasting(program: bmv2json.Program) -> Iterator[Name]:
    """Yield the fields read or written outside of pipelines."""
    for header in ("standard_metadata", "intrinsic_metadata", "queueing_metadata"):
        yield header, ""
    for name in intrinsics.NAMES:
        intrinsic = program.intrinsic(name)
        if intrinsic is not None:
            yield intrinsic.header, intrinsic.field
    for field_list in (*program.field_lists.values(), *program.learn_lists.values()):
        yield from all_names(field_list.elements)
    for checksum in program.checksums.values():
        yield from all_names((checksum.target, checksum.condition))
        yield from all_names(program.calculations[checksum.calculation].input)
    effects = Effects(program)
    for deparser in program.deparsers.values():
        for call in deparser.primitives:
            yield from touched(effects.primitive(call))
    for parser in program.parsers.values():
        for state in parser.states.values():
            yield from all_names(state.transition_key)
            for operation in state.operations:
                yield from _in_parser(operation, effects)


def _in_parser(operation: object, effects: Effects) -> Iterator[Name]:
    match operation:
        case bmv2json.Extract(length_bits=length):
            yield from names_in(length)
        case bmv2json.SetField(target, source):
            yield from all_names((target, source))
        case bmv2json.Verify(condition, error):
            yield from all_names((condition, error))
        case bmv2json.ParserPrimitive(call):
            yield from touched(effects.primitive(call))
        case other:
            yield from names_in(getattr(other, "bits", None))
