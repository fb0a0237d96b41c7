"""The stateful objects of a loaded program, and the control plane's access to them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from weft.switch.backend import (
    CloneSession,
    CounterValue,
    EntryNotFoundError,
    Replica,
    checks,
)
from weft.switch.bmv2json import Program
from weft.switch.oracle.hashes import algorithm
from weft.switch.oracle.meters import Meter
from weft.switch.oracle.state import PacketState
from weft.switch.oracle.tables import OracleProfile, OracleTable


class OracleObjects:
    """Tables, profiles, counters, meters, registers, multicast groups, clone sessions and value sets."""

    def __init__(self, program: Program, drop_port: int, seed: int) -> None:
        checks.check_capacity(program)
        self.program = program
        self.drop_port = drop_port
        self.now_ns = 0
        self.log_messages: list[str] = []
        self._random = random.Random(seed)
        self.profiles = {
            name: OracleProfile(profile, checks.profile_actions(program, name), self.random_between)
            for name, profile in program.action_profiles.items()
        }
        self.tables: dict[str, OracleTable] = {}
        for name, table in program.tables.items():
            profile = None if table.action_profile is None else self.profiles[table.action_profile]
            self.tables[name] = OracleTable(table, profile)
            if profile is not None:
                profile.tables.append(self.tables[name])
        self.counters = {
            name: [CounterValue()] * array.size for name, array in program.counter_arrays.items() if array.table is None
        }
        self.meters = {
            name: [Meter() for _ in range(array.size)]
            for name, array in program.meter_arrays.items()
            if array.table is None
        }
        self.registers = {name: [0] * array.size for name, array in program.register_arrays.items()}
        self.multicast_groups: dict[int, tuple[Replica, ...]] = {}
        self.clone_sessions: dict[int, CloneSession] = {}
        self.value_sets: dict[str, list[tuple[int, int]]] = {name: [] for name in program.value_sets}
        self._check_algorithms()

    def _check_algorithms(self) -> None:
        for name, calculation in self.program.calculations.items():
            algorithm(calculation.algorithm, f"calculation {name!r}")
        for name, profile in self.program.action_profiles.items():
            if profile.selector_algorithm is not None:
                algorithm(profile.selector_algorithm, f"action profile {name!r}")

    # the data plane's access (see switch.oracle.primitives.Machine)

    def register_cell(self, array: str, index: int) -> int:
        """The cell; 0 for an index out of range."""
        cells = self.registers[array]
        return cells[index] if 0 <= index < len(cells) else 0

    def set_register_cell(self, array: str, index: int, value: int) -> None:
        """Assign to the cell, cut to its width; an index out of range changes nothing."""
        cells = self.registers[array]
        if 0 <= index < len(cells):
            cells[index] = value & ((1 << self.program.register_arrays[array].width_bits) - 1)

    def count(self, array: str, index: int, packet: PacketState) -> None:
        """Count the packet; an index out of range changes nothing."""
        cells = self.counters.get(array)
        if cells is not None and 0 <= index < len(cells):
            cells[index] = counted(cells[index], packet)

    def run_meter(self, array: str, index: int, packet: PacketState) -> int | None:
        """Return the packet's colour (green without a configuration); None for an index out of range."""
        cells = self.meters.get(array)
        if cells is None or not 0 <= index < len(cells):
            return None
        return self.colour(array, cells[index], packet)

    def colour(self, array: str, meter: Meter, packet: PacketState) -> int:
        """The packet's colour by one meter of an array, which counts it."""
        amount = packet.ingress_bytes if self.program.meter_arrays[array].counts_bytes else 1
        return meter.execute(amount, packet.ingress_bytes, self.now_ns)

    def random_between(self, low: int, high: int) -> int:
        """A uniformly distributed integer, both ends included."""
        return self._random.randint(low, high)

    def value_set_members(self, name: str) -> Sequence[tuple[int, int]]:
        """Members of a parser value set as (value, mask)."""
        return self.value_sets[name]

    def log(self, message: str) -> None:
        """Keep a message of `log_msg`."""
        self.log_messages.append(message)

    # the control plane's access

    def counter_cells(self, name: str, index: int = 0) -> list[CounterValue]:
        """Return the cells of an indirect counter, after checking `index`."""
        cells = checks.named(self.counters, name, "counter")
        checks.check_index("counter", name, index, len(cells))
        return cells

    def meter(self, name: str, index: int) -> Meter:
        """A cell of an indirect meter."""
        cells = checks.named(self.meters, name, "meter")
        checks.check_index("meter", name, index, len(cells))
        return cells[index]

    def register_cells(self, name: str, index: int = 0, value: int = 0) -> list[int]:
        """Return the cells of a register, after checking `index` and `value`."""
        cells = checks.named(self.registers, name, "register")
        checks.check_index("register", name, index, len(cells))
        checks.check_value(f"register {name!r}", value, self.program.register_arrays[name].width_bits)
        return cells

    def set_multicast_group(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Create or replace a group."""
        checks.check_multicast_group(group_id, replicas)
        self.multicast_groups[group_id] = tuple(replicas)

    def delete_multicast_group(self, group_id: int) -> None:
        """Remove a group."""
        if self.multicast_groups.pop(group_id, None) is None:
            raise EntryNotFoundError(f"there is no multicast group {group_id}")

    def set_clone_session(self, session_id: int, session: CloneSession) -> None:
        """Create or replace a session."""
        checks.check_clone_session(session_id, session)
        self.clone_sessions[session_id] = session

    def delete_clone_session(self, session_id: int) -> None:
        """Remove a session."""
        if self.clone_sessions.pop(session_id, None) is None:
            raise EntryNotFoundError(f"there is no clone session {session_id}")


def counted(value: CounterValue, packet: PacketState) -> CounterValue:
    """The counter after this packet."""
    return CounterValue(value.packets + 1, value.bytes + packet.ingress_bytes)
