"""simple_switch's intrinsic metadata: the field for each member of PacketState, and when it is copied."""

from __future__ import annotations

from weft.switch.lowering.emitter import I32, Emitter, Value
from weft.switch.lowering.fields import field_place, load_field, store_field

INGRESS_INPUT = (
    ("standard_metadata.ingress_port", "ingress_port", 32),
    ("standard_metadata.packet_length", "packet_length_bytes", 32),
    ("standard_metadata.instance_type", "instance_type", 32),
    ("intrinsic_metadata.ingress_global_timestamp", "ingress_timestamp", 64),
)
AGAIN_INPUT = (
    ("standard_metadata.packet_length", "packet_length_bytes", 32),
    ("standard_metadata.instance_type", "instance_type", 32),
)
"""Metadata set again for a resubmitted or recirculated packet; its other metadata are 0 or preserved."""
PARSER_RESULT = (
    ("standard_metadata.parser_error", "parser_error", 32),
    ("standard_metadata.checksum_error", "checksum_error", 32),
)
INGRESS_OUTPUT = (
    ("standard_metadata.egress_spec", "egress_spec"),
    ("intrinsic_metadata.mcast_grp", "multicast_group"),
    ("intrinsic_metadata.priority", "priority"),
)
EGRESS_INPUT = (
    ("standard_metadata.egress_port", "egress_port", 32),
    ("standard_metadata.egress_spec", "egress_spec", 32),
    ("standard_metadata.packet_length", "packet_length_bytes", 32),
    ("standard_metadata.instance_type", "instance_type", 32),
    ("intrinsic_metadata.egress_rid", "egress_rid", 32),
    ("intrinsic_metadata.egress_global_timestamp", "egress_timestamp", 64),
    ("queueing_metadata.enq_timestamp", "enqueue_timestamp", 64),
    ("queueing_metadata.enq_qdepth", "enqueue_depth", 32),
    ("queueing_metadata.deq_timedelta", "dequeue_time_delta", 32),
    ("queueing_metadata.deq_qdepth", "dequeue_depth", 32),
    ("queueing_metadata.qid", "queue_class", 32),
    ("queueing_metadata.trimmed", "trimmed", 8),
)
EGRESS_OUTPUT = (("standard_metadata.egress_spec", "egress_spec"),)

NAMES = frozenset(
    name
    for members in (
        INGRESS_INPUT,
        AGAIN_INPUT,
        PARSER_RESULT,
        INGRESS_OUTPUT,
        EGRESS_INPUT,
        EGRESS_OUTPUT,
    )
    for name, *_ in members
)
"""All fields that the runtime writes or reads."""


def write_intrinsic(emit: Emitter, name: str, value: Value) -> None:
    """Write the field for `name`, if the program has it."""
    field = emit.program.intrinsic(name)
    if field is not None:
        store_field(emit, field_place(emit, field), emit.resize(value, field.width_bits))


def take_in(emit: Emitter, members: tuple[tuple[str, str, int], ...]) -> None:
    """Copy members of PacketState to their fields."""
    for name, member, width_bits in members:
        if emit.program.intrinsic(name) is not None:
            write_intrinsic(emit, name, emit.load_state(member, width_bits))


def hand_out(emit: Emitter, members: tuple[tuple[str, str], ...]) -> None:
    """Copy fields to their members of PacketState; a field that the program lacks counts as 0."""
    for name, member in members:
        field = emit.program.intrinsic(name)
        value = I32(0) if field is None else emit.resize(load_field(emit, field_place(emit, field)), 32)
        emit.store_state(member, value)
