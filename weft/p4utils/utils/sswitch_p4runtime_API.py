"""p4-utils' `SimpleSwitchP4RuntimeAPI`: a controller over P4Runtime, the switch's primary.

Calls return True, or the value that they read; one that the switch refuses prints why and returns None.
"""

from __future__ import annotations

import queue
from collections.abc import Iterable, Sequence
from typing import Any

from finsy.proto import p4i, p4r

from weft.controller.errors import CommandError
from weft.controller.session import SwitchSession
from weft.controller.switch_cli.names import find
from weft.controller.switch_cli.replication import port_of, replica, write_clone_session
from weft.controller.switch_cli.tables import action_of, key_and_rest
from weft.p4utils.errors import UnsupportedCallError
from weft.p4utils.utils.switch_client import SwitchClient, has_priority, local_target, prints_errors

__all__ = ["SimpleSwitchP4RuntimeAPI"]
_UNITS_PER_MICROSECOND = 1e-6
_UNSUPPORTED = {
    "client": "there is no client of p4-utils' inside; the calls of this class do everything",
    "context": "there is no context of p4-utils' inside; get P4Info from p4rt_path",
}
_NO_PRIORITY = "0"
Rates = Sequence[tuple[float, int]]


class _DigestSession(SwitchSession):
    """Keeps the lists of digests as they come, and acknowledges them once they are taken."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.digests: queue.SimpleQueue[p4r.DigestList] = queue.SimpleQueue()

    async def _dispatch(self, message: p4r.StreamMessageResponse) -> None:
        if message.WhichOneof("update") == "digest":
            self.digests.put(message.digest)
        else:
            await super()._dispatch(message)

    async def acknowledge_list(self, taken: p4r.DigestList) -> None:
        """Tell the switch that a list has been taken."""
        ack = p4r.DigestListAck(digest_id=taken.digest_id, list_id=taken.list_id)
        await self._stream.write(p4r.StreamMessageRequest(digest_ack=ack))


class SimpleSwitchP4RuntimeAPI:
    """A controller of a switch at a port of this machine. Raises EnvironmentLacksError if no switch answers.

    Match keys and parameters are texts: `10.0.0.1`, `10.0.0.0/24`, `1&&&0xf`, `1..9`. A higher `prio` goes first, as in
    P4Runtime.
    """

    def __init__(
        self,
        device_id: int,
        grpc_port: int,
        grpc_ip: str = "0.0.0.0",
        p4rt_path: str | None = None,
        json_path: str | None = None,
    ) -> None:
        target = local_target(grpc_ip, grpc_port, device_id)
        self.device_id, self.grpc_port, self.grpc_ip = device_id, grpc_port, grpc_ip
        self.p4rt_path, self.json_path = p4rt_path, json_path
        self._switch = SwitchClient(f"the switch at port {grpc_port}", target, role="", kind=_DigestSession)
        self._switch.wait(self._switch.session.take_over())

    def __getattr__(self, name: str) -> Any:
        if name in _UNSUPPORTED:
            raise UnsupportedCallError(f"SimpleSwitchP4RuntimeAPI.{name} is not supported: {_UNSUPPORTED[name]}")
        raise AttributeError(f"SimpleSwitchP4RuntimeAPI has no {name}")

    @property
    def _session(self) -> _DigestSession:
        found = self._switch.session.switch
        assert isinstance(found, _DigestSession)
        return found

    def teardown(self) -> None:
        """Leave the switch."""
        self._switch.close()

    def reset_state(self) -> None:
        """Load the program again: entries, registers, counters, groups and clone sessions are gone."""
        self._switch.reload()

    def get_digest_list(self, timeout: float | None = None) -> p4r.DigestList | None:
        """Return the next list of digests and acknowledge it; None if none comes within `timeout` seconds."""
        try:
            taken = self._session.digests.get(timeout=timeout)
        except queue.Empty:
            return None
        self._switch.wait(self._session.acknowledge_list(taken))
        return taken

    # Tables

    def _entry(self, table_name: str, match_keys: Iterable[object], prio: int | None) -> p4r.TableEntry:
        table = self._switch.table(table_name)
        words = [str(key).replace("..", "->") for key in match_keys]
        entry, _ = key_and_rest(table, [*words, _NO_PRIORITY] if has_priority(table) else words)
        entry.priority = int(prio or 0)
        return entry

    def _with_action(
        self, entry: p4r.TableEntry, table_name: str, action_name: str, action_params: Iterable[object]
    ) -> p4r.TableEntry:
        words = [str(each) for each in action_params]
        action = action_of(self._switch.session, self._switch.table(table_name), action_name, words)
        entry.action.action.CopyFrom(action)
        return entry

    def _with_resources(
        self, entry: p4r.TableEntry, rates: Rates | None, pkts: int | None, byts: int | None
    ) -> p4r.TableEntry:
        if rates:
            entry.meter_config.CopyFrom(_meter_config(rates))
        if pkts or byts:
            entry.counter_data.packet_count, entry.counter_data.byte_count = int(pkts or 0), int(byts or 0)
        return entry

    def _write(self, kind: p4r.Update.Type.ValueType, **entity: Any) -> bool:
        self._switch.wait(self._switch.session.write(kind, **entity))
        return True

    @prints_errors
    def table_add(
        self,
        table_name: str,
        action_name: str,
        match_keys: Iterable[object],
        action_params: Iterable[object] = (),
        prio: int = 0,
        rates: Rates | None = None,
        pkts: int | None = None,
        byts: int | None = None,
    ) -> bool:
        """Add an entry, with rates a second and counts if its table has a meter and a counter."""
        print(f"Adding entry to: {table_name}")
        entry = self._with_action(self._entry(table_name, match_keys, prio), table_name, action_name, action_params)
        return self._write(p4r.Update.INSERT, table_entry=self._with_resources(entry, rates, pkts, byts))

    @prints_errors
    def table_modify_match(
        self,
        table_name: str,
        action_name: str,
        match_keys: Iterable[object],
        action_params: Iterable[object] = (),
        prio: int = 0,
        rates: Rates | None = None,
        pkts: int | None = None,
        byts: int | None = None,
    ) -> bool:
        """Change the entry with a key."""
        entry = self._with_action(self._entry(table_name, match_keys, prio), table_name, action_name, action_params)
        return self._write(p4r.Update.MODIFY, table_entry=self._with_resources(entry, rates, pkts, byts))

    @prints_errors
    def table_delete_match(self, table_name: str, match_keys: Iterable[object], prio: int | None = None) -> bool:
        """Remove the entry with a key."""
        return self._write(p4r.Update.DELETE, table_entry=self._entry(table_name, match_keys, prio))

    @prints_errors
    def table_set_default(self, table_name: str, action_name: str, action_params: Iterable[object] = ()) -> bool:
        """Set a table's default action."""
        entry = p4r.TableEntry(table_id=self._switch.table(table_name).preamble.id, is_default_action=True)
        return self._write(
            p4r.Update.MODIFY, table_entry=self._with_action(entry, table_name, action_name, action_params)
        )

    @prints_errors
    def table_reset_default(self, table_name: str) -> bool:
        """Reset a table's default action to the program's."""
        self._switch.run("table_reset_default", table_name)
        return True

    @prints_errors
    def table_clear(self, table_name: str) -> bool:
        """Remove all entries of a table."""
        self._switch.run("table_clear", table_name)
        return True

    # Direct counters and meters

    def _table_of(self, objects: Iterable[Any], name: str, what: str) -> str:
        found = find(objects, name, what)
        tables = {each.preamble.id: each.preamble.name for each in self._switch.session.info.tables}
        return str(tables[found.direct_table_id])

    def _direct(self, objects: Iterable[Any], name: str, what: str, keys: Iterable[object], prio: int) -> Any:
        return self._entry(self._table_of(objects, name, what), keys, prio)

    @prints_errors
    def direct_counter_read(
        self, direct_counter_name: str, match_keys: Iterable[object], prio: int = 0
    ) -> tuple[int, int]:
        """Return the bytes and the packets that the entry with a key has counted."""
        counters = self._switch.session.info.direct_counters
        entry = self._direct(counters, direct_counter_name, "counter", match_keys, prio)
        query = p4r.DirectCounterEntry(table_entry=entry)
        found = self._switch.wait(self._switch.session.read(direct_counter_entry=query))
        if not found:
            raise CommandError(f"no entry of {direct_counter_name} has this key")
        data = found[0].direct_counter_entry.data
        return int(data.byte_count), int(data.packet_count)

    @prints_errors
    def direct_counter_write(
        self, direct_counter_name: str, match_keys: Iterable[object], prio: int = 0, pkts: int = 0, byts: int = 0
    ) -> bool:
        """Set what the entry with a key has counted."""
        counters = self._switch.session.info.direct_counters
        entry = self._direct(counters, direct_counter_name, "counter", match_keys, prio)
        data = p4r.CounterData(packet_count=int(pkts), byte_count=int(byts))
        return self._write(p4r.Update.MODIFY, direct_counter_entry=p4r.DirectCounterEntry(table_entry=entry, data=data))

    @prints_errors
    def direct_counter_reset(self, direct_counter_name: str) -> bool:
        """Set all counters of a table's entries to 0."""
        self._switch.run("counter_reset", direct_counter_name)
        return True

    @prints_errors
    def direct_meter_set_rates(
        self, direct_meter_name: str, match_keys: Iterable[object], prio: int = 0, rates: Rates | None = None
    ) -> bool:
        """Set the rates a second of the entry with a key; None for none."""
        meters = self._switch.session.info.direct_meters
        entry = self._direct(meters, direct_meter_name, "meter", match_keys, prio)
        config = None if rates is None else _meter_config(rates)
        return self._write(p4r.Update.MODIFY, direct_meter_entry=p4r.DirectMeterEntry(table_entry=entry, config=config))

    @prints_errors
    def direct_meter_array_set_rates(self, direct_meter_name: str, rates: Rates) -> bool:
        """Set the rates a second of all entries."""
        self._switch.run("meter_array_set_rates", direct_meter_name, *_rate_words(rates))
        return True

    @prints_errors
    def direct_meter_get_rates(
        self, direct_meter_name: str, match_keys: Iterable[object], prio: int = 0
    ) -> list[tuple[int, int]]:
        """Return the rates a second of the entry with a key; none if it has none."""
        meters = self._switch.session.info.direct_meters
        entry = self._direct(meters, direct_meter_name, "meter", match_keys, prio)
        query = p4r.DirectMeterEntry(table_entry=entry)
        found = self._switch.wait(self._switch.session.read(direct_meter_entry=query))
        if not found:
            raise CommandError(f"no entry of {direct_meter_name} has this key")
        return _rates_of(found[0].direct_meter_entry)

    # Counters and meters

    @prints_errors
    def counter_read(self, counter_name: str, index: int) -> tuple[int, int]:
        """Return the bytes and the packets of a counter's cell."""
        counter = find(self._switch.session.info.counters, counter_name, "counter")
        query = p4r.CounterEntry(counter_id=counter.preamble.id, index=p4r.Index(index=int(index)))
        data = self._switch.wait(self._switch.session.read(counter_entry=query))[0].counter_entry.data
        return int(data.byte_count), int(data.packet_count)

    @prints_errors
    def counter_write(self, counter_name: str, index: int, pkts: int = 0, byts: int = 0) -> bool:
        """Set a counter's cell."""
        self._switch.run("counter_write", counter_name, int(index), int(pkts), int(byts))
        return True

    @prints_errors
    def counter_reset(self, counter_name: str) -> bool:
        """Set all cells of a counter to 0."""
        self._switch.run("counter_reset", counter_name)
        return True

    @prints_errors
    def meter_set_rates(self, meter_name: str, index: int, rates: Rates) -> bool:
        """Set the rates a second of a meter's cell."""
        self._switch.run("meter_set_rates", meter_name, int(index), *_rate_words(rates))
        return True

    @prints_errors
    def meter_array_set_rates(self, meter_name: str, rates: Rates) -> bool:
        """Set the rates a second of all cells of a meter."""
        self._switch.run("meter_array_set_rates", meter_name, *_rate_words(rates))
        return True

    @prints_errors
    def meter_get_rates(self, meter_name: str, index: int) -> list[tuple[int, int]]:
        """Return the rates a second of a meter's cell; none if it has none."""
        meter = find(self._switch.session.info.meters, meter_name, "meter")
        query = p4r.MeterEntry(meter_id=meter.preamble.id, index=p4r.Index(index=int(index)))
        found = self._switch.wait(self._switch.session.read(meter_entry=query))
        return _rates_of(found[0].meter_entry) if found else []

    # Multicast groups and clone sessions

    @prints_errors
    def mc_mgrp_create(self, mgrp: int, ports: Iterable[int] = (), instances: Iterable[int] | None = None) -> bool:
        """Create a multicast group of ports, each with an instance; by default all instances are 1."""
        return self._write_group(p4r.Update.INSERT, mgrp, _replicas(ports, instances))

    @prints_errors
    def mc_mgrp_destroy(self, mgrp: int) -> bool:
        """Remove a multicast group."""
        return self._write_group(p4r.Update.DELETE, mgrp, [])

    @prints_errors
    def mc_set_replicas(self, mgrp: int, ports: Iterable[int] = (), instances: Iterable[int] | None = None) -> bool:
        """Change the ports of a multicast group."""
        return self._write_group(p4r.Update.MODIFY, mgrp, _replicas(ports, instances))

    @prints_errors
    def mc_get_replicas(self, mgrp: int) -> tuple[list[int], list[int]]:
        """Return the ports and the instances of a multicast group."""
        query = p4r.PacketReplicationEngineEntry(multicast_group_entry=p4r.MulticastGroupEntry(multicast_group_id=mgrp))
        found = self._read_replicas(query)
        return _ports_and_instances([each for entry in found for each in entry.multicast_group_entry.replicas])

    def _write_group(self, kind: p4r.Update.Type.ValueType, mgrp: int, replicas: Sequence[p4r.Replica]) -> bool:
        group = p4r.MulticastGroupEntry(multicast_group_id=int(mgrp), replicas=replicas)
        entry = p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
        return self._write(kind, packet_replication_engine_entry=entry)

    def _read_replicas(self, query: p4r.PacketReplicationEngineEntry) -> list[p4r.PacketReplicationEngineEntry]:
        found = self._switch.wait(self._switch.session.read(packet_replication_engine_entry=query))
        return [each.packet_replication_engine_entry for each in found]

    @prints_errors
    def cs_create(
        self,
        session_id: int,
        ports: Iterable[int] = (),
        instances: Iterable[int] | None = None,
        cos: int = 0,
        packet_length: int = 0,
    ) -> bool:
        """Create a clone session with ports; `packet_length` truncates its packets."""
        return self._write_session(p4r.Update.INSERT, session_id, _replicas(ports, instances), cos, packet_length)

    @prints_errors
    def cs_set_replicas(
        self,
        session_id: int,
        ports: Iterable[int] = (),
        instances: Iterable[int] | None = None,
        cos: int = 0,
        packet_length: int = 0,
    ) -> bool:
        """Change the ports of a clone session."""
        return self._write_session(p4r.Update.MODIFY, session_id, _replicas(ports, instances), cos, packet_length)

    @prints_errors
    def cs_destroy(self, session_id: int) -> bool:
        """Remove a clone session."""
        session = self._switch.session
        self._switch.wait(write_clone_session(session, p4r.Update.DELETE, int(session_id)))
        return True

    @prints_errors
    def cs_get_replicas(self, session_id: int) -> tuple[list[int], list[int]]:
        """Return the ports and the instances of a clone session."""
        query = p4r.PacketReplicationEngineEntry(clone_session_entry=p4r.CloneSessionEntry(session_id=int(session_id)))
        found = self._read_replicas(query)
        return _ports_and_instances([each for entry in found for each in entry.clone_session_entry.replicas])

    def _write_session(
        self,
        kind: p4r.Update.Type.ValueType,
        session_id: int,
        replicas: Sequence[p4r.Replica],
        cos: int,
        packet_length: int,
    ) -> bool:
        clone = p4r.CloneSessionEntry(
            session_id=int(session_id),
            replicas=replicas,
            class_of_service=int(cos),
            packet_length_bytes=int(packet_length),
        )
        entry = p4r.PacketReplicationEngineEntry(clone_session_entry=clone)
        return self._write(kind, packet_replication_engine_entry=entry)

    # Digests

    @prints_errors
    def digest_enable(
        self, digest_name: str, max_timeout_ns: int = 0, max_list_size: int = 1, ack_timeout_ns: int = 0
    ) -> bool:
        """Have the switch send a digest's lists, which `get_digest_list` returns."""
        return self._write_digest(p4r.Update.INSERT, digest_name, max_timeout_ns, max_list_size, ack_timeout_ns)

    @prints_errors
    def digest_set_conf(
        self, digest_name: str, max_timeout_ns: int = 0, max_list_size: int = 1, ack_timeout_ns: int = 0
    ) -> bool:
        """Change when the switch sends a digest's lists."""
        return self._write_digest(p4r.Update.MODIFY, digest_name, max_timeout_ns, max_list_size, ack_timeout_ns)

    @prints_errors
    def digest_disable(self, digest_name: str) -> bool:
        """Have the switch send no more lists of a digest."""
        digest = p4r.DigestEntry(digest_id=self._digest(digest_name).preamble.id)
        return self._write(p4r.Update.DELETE, digest_entry=digest)

    @prints_errors
    def digest_get_conf(self, digest_name: str) -> tuple[int, int, int] | None:
        """Return a digest's largest delay in ns, largest list and wait for an answer in ns; None if it is off."""
        query = p4r.DigestEntry(digest_id=self._digest(digest_name).preamble.id)
        found = self._switch.wait(self._switch.session.read(digest_entry=query))
        if not found:
            return None
        config = found[0].digest_entry.config
        return int(config.max_timeout_ns), int(config.max_list_size), int(config.ack_timeout_ns)

    def _digest(self, name: str) -> p4i.Digest:
        digests: Sequence[p4i.Digest] = self._switch.session.info.digests
        return find(digests, name, "digest")

    def _write_digest(
        self,
        kind: p4r.Update.Type.ValueType,
        name: str,
        max_timeout_ns: int,
        max_list_size: int,
        ack_timeout_ns: int,
    ) -> bool:
        config = p4r.DigestEntry.Config(
            max_timeout_ns=int(max_timeout_ns), max_list_size=int(max_list_size), ack_timeout_ns=int(ack_timeout_ns)
        )
        digest = p4r.DigestEntry(digest_id=self._digest(name).preamble.id, config=config)
        return self._write(kind, digest_entry=digest)


def _replicas(ports: Iterable[int], instances: Iterable[int] | None) -> list[p4r.Replica]:
    numbers = [int(port) for port in ports]
    of_ports = [1] * len(numbers) if not instances else [int(instance) for instance in instances]
    if len(of_ports) != len(numbers):
        raise CommandError(f"{len(numbers)} ports have {len(of_ports)} instances", valid="one instance for each port")
    return [replica(port, instance) for port, instance in zip(numbers, of_ports, strict=True)]


def _ports_and_instances(replicas: Iterable[p4r.Replica]) -> tuple[list[int], list[int]]:
    found = [(port_of(each), int(each.instance)) for each in replicas]
    return [port for port, _ in found], [instance for _, instance in found]


def _meter_config(rates: Rates) -> p4r.MeterConfig:
    if len(rates) != 2:
        raise CommandError(f"has {len(rates)} rates", valid="two, committed and peak, each a rate a second and a burst")
    (cir, cburst), (pir, pburst) = rates
    return p4r.MeterConfig(cir=int(cir), cburst=int(cburst), pir=int(pir), pburst=int(pburst))


def _rate_words(rates: Rates) -> list[str]:
    """Return rates a second in the form of commands, per microsecond."""
    return [f"{rate * _UNITS_PER_MICROSECOND:.12f}:{int(burst)}" for rate, burst in rates]


def _rates_of(entry: p4r.MeterEntry | p4r.DirectMeterEntry) -> list[tuple[int, int]]:
    config = entry.config
    return [(config.cir, config.cburst), (config.pir, config.pburst)] if entry.HasField("config") else []
