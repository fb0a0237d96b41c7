"""A `SwitchBackend` that interprets programs. It has no ports: callers pass packets to `process`."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from weft.switch.backend import (
    ActionCall,
    CloneSession,
    CounterValue,
    GroupMember,
    IdleTimeout,
    MeterConfig,
    MeterState,
    NotReadyError,
    PacketIn,
    Replica,
    StreamEvent,
    TableAction,
    TableEntry,
    TableKey,
    UnsupportedProgramError,
)
from weft.switch.backend.checks import check_clone_session, check_multicast_group, named
from weft.switch.backend.live_replicas import Failover
from weft.switch.bmv2json import Program
from weft.switch.oracle.datapath import DataPath, Output, Timing
from weft.switch.oracle.objects import OracleObjects
from weft.switch.oracle.tables import InstalledEntry, OracleProfile, OracleTable
from weft.switch.trace.events import CopyTrace

__all__ = ["DEFAULT_CPU_PORT", "DEFAULT_DROP_PORT", "OracleSwitch", "Output", "Timing"]

DEFAULT_CPU_PORT = 510
DEFAULT_DROP_PORT = 511


class OracleSwitch:
    """The oracle behind the interface of a switch. `drops` counts by reason.

    `outputs` collects packets sent because of packet_out.
    """

    def __init__(self, cpu_port: int = DEFAULT_CPU_PORT, drop_port: int = DEFAULT_DROP_PORT, seed: int = 0) -> None:
        self._cpu_port = cpu_port
        self._drop_port = drop_port
        self._seed = seed
        self._lock = threading.RLock()
        self._failover = Failover()
        self._objects: OracleObjects | None = None
        self._events: queue.SimpleQueue[StreamEvent] = queue.SimpleQueue()
        self.drops: Counter[str] = Counter()
        self.outputs: list[Output] = []

    @property
    def objects(self) -> OracleObjects:
        """The loaded program's objects. Raises NotReadyError without a program."""
        if self._objects is None:
            raise NotReadyError("no program is loaded")
        return self._objects

    # packets

    def process(
        self, port: int, data: bytes, timing: Timing | None = None, trace: CopyTrace | None = None
    ) -> list[Output]:
        """Receive a packet, and add its events to `trace`.

        Returns the packets that leave, except by the CPU port, where they become packet-ins.
        """
        timing = timing or Timing()
        with self._lock:
            self.objects.now_ns = max(self.objects.now_ns, timing.now_ns)
            path = DataPath(self.objects, timing, self._events.put, self.drops)
            outputs = path.run(port, data, trace)
        for output in outputs:
            if output.port == self._cpu_port:
                self._events.put(PacketIn(output.data))
        return [output for output in outputs if output.port != self._cpu_port]

    def packet_out(self, data: bytes) -> None:
        """See SwitchBackend."""
        self.outputs.extend(self.process(self._cpu_port, data))

    def set_port_up(self, port: int, up: bool) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._failover.set_port_up(port, up)
            self._update_profiles()

    def _update_profiles(self) -> None:
        if self._objects is not None:
            for profile in self._objects.profiles.values():
                profile.ports_down = set(self._failover.ports_down)

    def advance_time(self, now_ns: int) -> None:
        """Advance time and report entries that have reached their idle timeout."""
        with self._lock:
            self.objects.now_ns = max(self.objects.now_ns, now_ns)
            for name, table in self.objects.tables.items():
                for (key, priority), entry in table.entries.items():
                    idle_ns = self.objects.now_ns - max(entry.last_hit_ns, entry.last_report_ns)
                    if 0 < entry.idle_timeout_ns <= idle_ns:
                        entry.last_report_ns = self.objects.now_ns
                        self._events.put(IdleTimeout(name, key, priority))

    def wait_stream_event(self, timeout_s: float | None) -> StreamEvent | None:
        """See SwitchBackend."""
        try:
            return self._events.get(timeout=timeout_s)
        except queue.Empty:
            return None

    # program

    @property
    def program(self) -> Program | None:
        """See SwitchBackend."""
        return None if self._objects is None else self._objects.program

    def verify(self, program: Program) -> None:
        """See SwitchBackend."""
        _check_architecture(program)
        OracleObjects(program, self._drop_port, self._seed)

    def load(self, program: Program, preinitialized: Collection[str] = ()) -> None:
        """See SwitchBackend."""
        _check_architecture(program)
        objects = OracleObjects(program, self._drop_port, self._seed)
        for name in preinitialized:
            objects.tables[name].modifiable = True
        with self._lock:
            while self.wait_stream_event(0) is not None:
                pass  # laid out as the program before had it
            self._objects = objects
            self._failover.clear()
            self._update_profiles()

    def atomically(self) -> AbstractContextManager[Any]:
        """See SwitchBackend."""
        return self._lock

    # tables

    def _table(self, name: str) -> OracleTable:
        return named(self.objects.tables, name, "table")

    def _entry(self, table: str, key: TableKey | None, priority: int) -> InstalledEntry:
        return self._table(table).find(key, priority)

    def table_insert(self, table: str, entry: TableEntry) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._table(table).insert(entry, self.objects.now_ns)

    def table_modify(self, table: str, entry: TableEntry) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._table(table).modify(entry, self.objects.now_ns)

    def table_delete(self, table: str, key: TableKey, priority: int) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._table(table).delete(key, priority)

    def table_entry(self, table: str, key: TableKey, priority: int) -> TableEntry:
        """See SwitchBackend."""
        with self._lock:
            return self._table(table).entry(key, priority)

    def table_entries(self, table: str) -> Iterator[TableEntry]:
        """See SwitchBackend."""
        with self._lock:
            target = self._table(table)
            return iter([target.entry(*key) for key in target.entries])

    def table_set_default(self, table: str, action: TableAction | None) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._table(table).set_default(action)

    def table_idle_ns(self, table: str, key: TableKey, priority: int) -> int:
        """See SwitchBackend."""
        with self._lock:
            return self.objects.now_ns - self._entry(table, key, priority).last_hit_ns

    # action profiles

    def _profile(self, name: str) -> OracleProfile:
        return named(self.objects.profiles, name, "action profile")

    def member_insert(self, profile: str, member_id: int, action: ActionCall) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._profile(profile).insert_member(member_id, action)

    def member_modify(self, profile: str, member_id: int, action: ActionCall) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._profile(profile).modify_member(member_id, action)

    def member_delete(self, profile: str, member_id: int) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._profile(profile).delete_member(member_id)

    def group_insert(
        self, profile: str, group_id: int, members: Sequence[GroupMember], *, random: bool = False
    ) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._profile(profile).set_group(group_id, members, new=True)
            if random:
                self._profile(profile).random_groups.add(group_id)

    def group_modify(self, profile: str, group_id: int, members: Sequence[GroupMember]) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._profile(profile).set_group(group_id, members, new=False)

    def group_delete(self, profile: str, group_id: int) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._profile(profile).delete_group(group_id)

    # counters, meters, registers

    def counter_read(self, counter: str, index: int) -> CounterValue:
        """See SwitchBackend."""
        with self._lock:
            return self.objects.counter_cells(counter, index)[index]

    def counter_read_all(self, counter: str) -> Sequence[CounterValue]:
        """See SwitchBackend."""
        with self._lock:
            return list(named(self.objects.counters, counter, "counter"))

    def counter_write(self, counter: str, index: int, value: CounterValue) -> None:
        """See SwitchBackend."""
        with self._lock:
            self.objects.counter_cells(counter, index)[index] = value

    def direct_counter_read(self, table: str, key: TableKey | None, priority: int) -> CounterValue:
        """See SwitchBackend."""
        with self._lock:
            return self._entry(table, key, priority).counter

    def direct_counter_write(self, table: str, key: TableKey | None, priority: int, value: CounterValue) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._entry(table, key, priority).counter = value

    def meter_read(self, meter: str, index: int) -> MeterState:
        """See SwitchBackend."""
        with self._lock:
            return self.objects.meter(meter, index).state()

    def meter_write(self, meter: str, index: int, config: MeterConfig | None) -> None:
        """See SwitchBackend."""
        with self._lock:
            self.objects.meter(meter, index).configure(config, self.objects.now_ns)

    def meter_restore(self, meter: str, index: int, state: MeterState) -> None:
        """See SwitchBackend."""
        with self._lock:
            self.objects.meter(meter, index).restore(state)

    def direct_meter_read(self, table: str, key: TableKey | None, priority: int) -> MeterState:
        """See SwitchBackend."""
        with self._lock:
            return self._entry(table, key, priority).meter.state()

    def direct_meter_write(self, table: str, key: TableKey | None, priority: int, config: MeterConfig | None) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._entry(table, key, priority).meter.configure(config, self.objects.now_ns)

    def direct_meter_restore(self, table: str, key: TableKey | None, priority: int, state: MeterState) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._entry(table, key, priority).meter.restore(state)

    def register_read(self, register: str, index: int) -> int:
        """See SwitchBackend."""
        with self._lock:
            return self.objects.register_cells(register, index)[index]

    def register_read_all(self, register: str) -> Sequence[int]:
        """See SwitchBackend."""
        with self._lock:
            return list(named(self.objects.registers, register, "register"))

    def register_write(self, register: str, index: int, value: int) -> None:
        """See SwitchBackend."""
        with self._lock:
            self.objects.register_cells(register, index, value)[index] = value

    def register_fill(self, register: str, value: int) -> None:
        """See SwitchBackend."""
        with self._lock:
            cells = named(self.objects.registers, register, "register")
            if cells:
                self.objects.register_cells(register, 0, value)[:] = [value] * len(cells)

    # replication and value sets

    def multicast_group_set(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """See SwitchBackend."""
        with self._lock:
            objects = self.objects
            check_multicast_group(group_id, replicas)
            self._failover.apply(
                ("multicast group", group_id),
                replicas,
                lambda live: objects.set_multicast_group(group_id, live),
            )

    def multicast_group_delete(self, group_id: int) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._failover.forget(("multicast group", group_id))
            self.objects.delete_multicast_group(group_id)

    def clone_session_set(self, session_id: int, session: CloneSession) -> None:
        """See SwitchBackend."""
        with self._lock:
            objects = self.objects
            check_clone_session(session_id, session)
            self._failover.apply(
                ("clone session", session_id),
                session.replicas,
                lambda live: objects.set_clone_session(session_id, replace(session, replicas=tuple(live))),
            )

    def clone_session_delete(self, session_id: int) -> None:
        """See SwitchBackend."""
        with self._lock:
            self._failover.forget(("clone session", session_id))
            self.objects.delete_clone_session(session_id)

    def value_set_write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        """See SwitchBackend."""
        with self._lock:
            named(self.objects.value_sets, value_set, "value set")
            self.objects.value_sets[value_set] = list(members)


def _check_architecture(program: Program) -> None:
    """Check for v1model: one parser, one deparser, the pipelines ingress and egress."""
    for name in ("ingress", "egress"):
        if name not in program.pipelines:
            raise UnsupportedProgramError(f"$.pipelines: there is no pipeline {name!r}")
    for section, objects in (("parsers", program.parsers), ("deparsers", program.deparsers)):
        if len(objects) != 1:
            raise UnsupportedProgramError(f"$.{section}: v1model has exactly one, got {len(objects)}")
    for name in ("standard_metadata.egress_spec", "standard_metadata.ingress_port"):
        if program.intrinsic(name) is None:
            raise UnsupportedProgramError(f"$.headers: v1model needs the field {name!r}")
