"""Checksums: verified between parser and ingress, updated before the deparser."""

from __future__ import annotations

from weft.switch.bmv2json import Checksum
from weft.switch.lowering.calculations import hash_calculation
from weft.switch.lowering.emitter import I32, Emitter, Value, constant
from weft.switch.lowering.expressions import lower_condition
from weft.switch.lowering.fields import field_place, is_valid, load_field, store_field
from weft.switch.lowering.tracing import report
from weft.switch.trace.places import ChecksumVerified, updated_place


def verify(emit: Emitter) -> None:
    """Set PacketState.checksum_error to 1 if a checksum to verify does not match."""
    for checksum in emit.program.checksums.values():
        if not checksum.verify:
            continue
        target = field_place(emit, checksum.target)
        applies = emit.builder.and_(is_valid(emit, target.header), _condition(emit, checksum))
        with emit.when(applies, likely=True):
            value = hash_calculation(emit, emit.program.calculations[checksum.calculation])
            present = emit.resize(load_field(emit, target), 64)
            report(emit, ChecksumVerified(checksum.name), [emit.builder.icmp_unsigned("==", value, present)])
            with emit.when(emit.builder.icmp_unsigned("!=", value, present), likely=False):
                emit.store_state("checksum_error", I32(1))


def update(emit: Emitter) -> None:
    """Write every checksum to update."""
    for checksum in emit.program.checksums.values():
        if not checksum.update:
            continue
        with emit.when(_condition(emit, checksum), likely=True):
            value = hash_calculation(emit, emit.program.calculations[checksum.calculation])
            written = emit.resize(value, checksum.target.width_bits)
            store_field(emit, field_place(emit, checksum.target), written)
            report(emit, updated_place(checksum), [written])


def _condition(emit: Emitter, checksum: Checksum) -> Value:
    return constant(1, 1) if checksum.condition is None else lower_condition(emit, checksum.condition)
