"""Cost of in-network reduction in a switch: slots, entries, and how many jobs fit in a memory.

The compiled program declares the sizes; the controller's plan for a job determines its entries.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import finsy

from weft.controller.errors import JobError, PipelineError
from weft.controller.features.aggregation import JOB_ACTION, aggregation_entities
from weft.controller.jobs import MAX_JOB_ID, JobTable
from weft.controller.pipeline import SLOT_REGISTER, Pipeline
from weft.controller.program_sizes import (
    EntrySize,
    PacketSize,
    RegisterSize,
    entry_size,
    packet_size,
    parameter_bits,
    register_sizes,
    standard_field_bits,
)
from weft.topologies import leaf_spine
from weft.topologies.fabric import DEFAULT_TREE_CHILDREN

_SLOT_BASE = "slot_base"


@dataclass(frozen=True)
class TableCost:
    """A job's entries in a table of a switch."""

    entry: EntrySize
    entries: int

    @property
    def bits(self) -> int:
        """Bits of all the job's entries in the table."""
        return self.entry.bits * self.entries

    @property
    def most_jobs(self) -> int:
        """Number of jobs that fit in the table."""
        return self.entry.table_size // self.entries


@dataclass(frozen=True)
class JobCost:
    """A job's cost in a switch that is a node of its tree and has a parent.

    Attributes:
        children: workers below a leaf, or switches below a spine.
        slots: slots of the job.
        slot_bits: register bits of all the slots.
        tables: entries in each table.
        group_bits: the multicast group that copies results to the children.

    """

    children: int
    slots: int
    slot_bits: int
    tables: tuple[TableCost, ...]
    group_bits: int

    @property
    def entry_bits(self) -> int:
        """Bits of the job's entries and its multicast group."""
        return sum(each.bits for each in self.tables) + self.group_bits

    @property
    def bits(self) -> int:
        """Total bits of the job."""
        return self.slot_bits + self.entry_bits


class SwitchCost:
    """A program's use of switch memory. Raises PipelineError if the program does not aggregate."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._p4info = pipeline.p4info
        self._program = json.loads(pipeline.device_config)
        self.slots = pipeline.slot_capacity()
        if not self.slots:
            raise PipelineError(f"the program has no register {SLOT_REGISTER}: it does not aggregate")
        """Slots of the compiled program."""
        registers = register_sizes(self._p4info)
        tag = next(each for each in registers if each.name.rpartition(".")[2] == SLOT_REGISTER)
        self.slot_registers = [each for each in registers if each.control == tag.control and each.cells == tag.cells]
        """Registers with cells for every slot."""
        self.other_registers: list[RegisterSize] = [each for each in registers if each not in self.slot_registers]
        """The program's other registers, which do not depend on jobs."""

    @property
    def slot_bits(self) -> int:
        """Register bits of a slot, for both its versions."""
        return sum(each.bits for each in self.slot_registers) // self.slots

    @property
    def other_bits(self) -> int:
        """Bits of the registers that do not depend on jobs."""
        return sum(each.bits for each in self.other_registers)

    @cached_property
    def packet(self) -> PacketSize:
        """Size of the program's per-packet state."""
        return packet_size(self._program)

    def job(self, children: int, slots: int) -> JobCost:
        """Return a job's cost. Raises JobError for a number of children that a node cannot have."""
        if not 1 <= children <= DEFAULT_TREE_CHILDREN:
            raise JobError(f"{children} children of a node", valid=f"1 to {DEFAULT_TREE_CHILDREN}")
        entries, replicas = _planned(children)
        tables = [TableCost(entry_size(self._p4info, table), count) for table, count in entries.items()]
        widths = {name: standard_field_bits(self._program, name) for name in ("mcast_grp", "egress_port", "egress_rid")}
        group_bits = widths["mcast_grp"] + replicas * (widths["egress_port"] + widths["egress_rid"])
        return JobCost(children, slots, slots * self.slot_bits, tuple(tables), group_bits)

    def limits(self, job: JobCost, memory_bytes: int | None = None) -> dict[str, int]:
        """Return how many such jobs fit, by limiting resource.

        Without `memory_bytes`, the slots of the compiled program are the limit; with it, the memory holds the program's
        other registers and each job's slots and entries. Jobs' slot ranges are consecutive, and the start of each must
        fit the `slot_base` field of its entry.
        """
        if memory_bytes is None:
            room = {"slots": self.slots // job.slots}
        else:
            room = {"memory": max(0, memory_bytes * 8 - self.other_bits) // job.bits}
        tables = {each.entry.table: each.most_jobs for each in job.tables}
        bases = 1 << parameter_bits(self._p4info, JOB_ACTION, _SLOT_BASE)
        return {**room, **tables, _SLOT_BASE: -(-bases // job.slots), "job ids": MAX_JOB_ID}

    def memory_bytes(self, job: JobCost, jobs: int) -> int:
        """Return the bytes that `jobs` jobs need, including the program's other registers."""
        return -(-(self.other_bits + jobs * job.bits) // 8)


@cache
def _planned(children: int) -> tuple[Mapping[str, int], int]:
    """Return the planned entries by table, and the replicas, of a node with a parent and `children` children."""
    fabric = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=children)
    below, beyond = fabric.hosts[:children], fabric.hosts[children]
    jobs = JobTable(fabric, slot_capacity=1)
    jobs.add(1, [host.name for host in (*below, beyond)], slot_count=1)
    (leaf,) = {host.nics[0].switch for host in below}
    entries: Counter[str] = Counter()
    replicas = 0
    for entity in aggregation_entities(fabric, jobs.jobs)[leaf]:
        if isinstance(entity, finsy.P4TableEntry):
            entries[entity.table_id] += 1
        elif isinstance(entity, finsy.P4MulticastGroupEntry):
            replicas += len(entity.replicas)
    return entries, replicas
