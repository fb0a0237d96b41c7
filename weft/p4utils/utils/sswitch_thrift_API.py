"""p4-utils' `SimpleSwitchThriftAPI`, by which controllers program a switch with a Thrift port.

Nothing listens on the port: it names the switch, which is programmed over P4Runtime in a role of its own. Calls print
and return what p4-utils' do; one that the switch refuses prints why and returns None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from finsy.proto import p4i

from weft.controller.grpc_targets import GrpcTarget
from weft.controller.switch_cli.opening import SIMPLE_SWITCH_ROLE
from weft.errors import BadInputError
from weft.p4utils.errors import UnsupportedCallError
from weft.p4utils.utils.switch_client import SwitchClient, UIn_Error, has_priority, prints_errors
from weft.system.thrift_ports import find

__all__ = ["SimpleSwitchThriftAPI", "UIn_Error"]
_LOCAL = ("localhost", "127.0.0.1", "0.0.0.0", "::1")
_CUSTOM_CRC_BITS = {"crc16_custom": 16, "crc32_custom": 32}
_UNSUPPORTED = {
    "client": "there is no Thrift client; digests come over P4Runtime: SimpleSwitchP4RuntimeAPI.get_digest_list",
    "mc_client": "there is no Thrift client",
    "sswitch_client": "there is no Thrift client",
    "mirroring_add_port_and_mgrp": "a clone session has ports or a group: mirroring_add, mirroring_add_mc",
    "set_crc16_parameters": "custom CRCs keep BMv2's initial parameters",
    "set_crc32_parameters": "custom CRCs keep BMv2's initial parameters",
    "load_new_config_file": "the lab loads programs",
    "swap_configs": "the lab loads programs",
    "port_add": "the lab has the ports of its network",
    "port_remove": "the lab has the ports of its network",
    "serialize_state": "a switch's state cannot be saved",
    "shell": "use Python's subprocess",
}
Rates = Sequence[tuple[float, int]]


class SimpleSwitchThriftAPI:
    """A client of the switch with a Thrift port.

    Match keys and parameters are texts in simple_switch_CLI's forms. Raises EnvironmentLacksError if no switch with the
    port runs, and `UnsupportedCallError` for calls of p4-utils that Weft lacks.
    """

    def __init__(self, thrift_port: int, thrift_ip: str = "localhost", json_path: str | None = None) -> None:
        if thrift_ip not in _LOCAL:
            raise BadInputError(f"{thrift_ip!r}: switches are found on this machine only", valid=_LOCAL)
        served = find(int(thrift_port))
        target = GrpcTarget(served.address, served.device_id)
        self.thrift_port = int(thrift_port)
        self._switch = SwitchClient(f"the switch at Thrift port {thrift_port}", target, SIMPLE_SWITCH_ROLE)

    def __getattr__(self, name: str) -> Any:
        if name in _UNSUPPORTED:
            raise UnsupportedCallError(f"SimpleSwitchThriftAPI.{name} is not supported: {_UNSUPPORTED[name]}")
        raise AttributeError(f"SimpleSwitchThriftAPI has no {name}")

    # Tables

    @prints_errors
    def table_add(
        self,
        table_name: str,
        action_name: str,
        match_keys: Iterable[object],
        action_params: Iterable[object] = (),
        prio: int = 0,
    ) -> int:
        """Add an entry and return its handle; of ternary entries the lowest `prio` goes first, as in BMv2."""
        words = [*match_keys, "=>", *action_params]
        if has_priority(self._switch.table(table_name)):
            words.append(int(prio))
        handle = self._switch.run_for_handle("table_add", table_name, action_name, *words)
        print(f"Entry has been added with handle {handle}\n")
        return handle

    @prints_errors
    def table_set_default(self, table_name: str, action_name: str, action_params: Iterable[object] = ()) -> None:
        """Set a table's default action."""
        self._switch.run("table_set_default", table_name, action_name, *action_params)

    @prints_errors
    def table_reset_default(self, table_name: str) -> None:
        """Reset a table's default action to the program's."""
        self._switch.run("table_reset_default", table_name)

    @prints_errors
    def table_modify(
        self, table_name: str, action_name: str, entry_handle: int, action_params: Iterable[object] = ()
    ) -> int:
        """Change an entry's action and return its handle."""
        self._switch.run("table_modify", table_name, action_name, entry_handle, *action_params)
        return int(entry_handle)

    def table_modify_match(
        self, table_name: str, action_name: str, match_keys: Iterable[object], action_params: Iterable[object] = ()
    ) -> int | None:
        """Change the action of the entry with a key and return its handle. Raises UIn_Error if there is none."""
        return self.table_modify(table_name, action_name, self._handle(table_name, match_keys), action_params)

    @prints_errors
    def table_delete(self, table_name: str, entry_handle: int, quiet: bool = False) -> None:
        """Remove an entry."""
        if not quiet:
            print(f"Deleting entry {entry_handle} from {table_name}")
        self._switch.run("table_delete", table_name, entry_handle)

    def table_delete_match(self, table_name: str, match_keys: Iterable[object]) -> None:
        """Remove the entry with a key. Raises UIn_Error if there is none."""
        self.table_delete(table_name, self._handle(table_name, match_keys))

    @prints_errors
    def table_clear(self, table_name: str) -> None:
        """Remove all entries of a table."""
        self._switch.run("table_clear", table_name)

    @prints_errors
    def table_num_entries(self, table_name: str) -> int:
        """Return the number of entries of a table."""
        return int(self._switch.run("table_num_entries", table_name))

    @prints_errors
    def table_set_timeout(self, table_name: str, entry_handle: int, timeout_ms: int) -> None:
        """Set an entry's idle timeout."""
        self._switch.run("table_set_timeout", table_name, entry_handle, timeout_ms)

    @prints_errors
    def table_dump(self, table_name: str) -> None:
        """Print a table's entries."""
        print(self._switch.run("table_dump", table_name))

    @prints_errors
    def table_dump_entry(self, table_name: str, entry_handle: int) -> None:
        """Print an entry."""
        print(self._switch.run("table_dump_entry", table_name, entry_handle))

    @prints_errors
    def table_dump_entry_from_key(self, table_name: str, match_keys: Iterable[object], prio: int = 0) -> None:
        """Print the entry with a key."""
        priority = [int(prio)] if has_priority(self._switch.table(table_name)) else []
        print(self._switch.run("table_dump_entry_from_key", table_name, *match_keys, *priority))

    def get_handle_from_match(self, table_name: str, match_keys: Iterable[object], pop: bool = False) -> int | None:
        """Return the handle of the entry with a key; None if there is none."""
        found = self._switch.entries_with_key(table_name, match_keys)
        return self._switch.session.handle_of(found[0]) if found else None

    def load_table_entries_match_to_handle(self) -> None:
        """Do nothing: entries are looked up in the switch."""

    def _handle(self, table_name: str, match_keys: Iterable[object]) -> int:
        keys = list(match_keys)
        handle = self.get_handle_from_match(table_name, keys)
        if handle is None:
            raise UIn_Error(f"Table {table_name} has no match {keys}")
        return handle

    # Action profiles

    @prints_errors
    def act_prof_create_member(self, act_prof_name: str, action_name: str, action_params: Iterable[object] = ()) -> int:
        """Add a member and return its handle."""
        return self._switch.run_for_handle("act_prof_create_member", act_prof_name, action_name, *action_params)

    @prints_errors
    def act_prof_modify_member(
        self, act_prof_name: str, action_name: str, mbr_handle: int, action_params: Iterable[object] = ()
    ) -> int:
        """Change a member's action and return its handle."""
        self._switch.run("act_prof_modify_member", act_prof_name, action_name, mbr_handle, *action_params)
        return int(mbr_handle)

    @prints_errors
    def act_prof_delete_member(self, act_prof_name: str, mbr_handle: int) -> None:
        """Remove a member."""
        self._switch.run("act_prof_delete_member", act_prof_name, mbr_handle)

    @prints_errors
    def act_prof_create_group(self, act_prof_name: str) -> int:
        """Add a group and return its handle."""
        return self._switch.run_for_handle("act_prof_create_group", act_prof_name)

    @prints_errors
    def act_prof_delete_group(self, act_prof_name: str, grp_handle: int) -> None:
        """Remove a group."""
        self._switch.run("act_prof_delete_group", act_prof_name, grp_handle)

    @prints_errors
    def act_prof_add_member_to_group(self, act_prof_name: str, mbr_handle: int, grp_handle: int) -> None:
        """Add a member to a group."""
        self._switch.run("act_prof_add_member_to_group", act_prof_name, mbr_handle, grp_handle)

    @prints_errors
    def act_prof_remove_member_from_group(self, act_prof_name: str, mbr_handle: int, grp_handle: int) -> None:
        """Remove a member from a group."""
        self._switch.run("act_prof_remove_member_from_group", act_prof_name, mbr_handle, grp_handle)

    @prints_errors
    def act_prof_dump(self, act_prof_name: str) -> None:
        """Print a profile's members and groups."""
        print(self._switch.run("act_prof_dump", act_prof_name))

    @prints_errors
    def act_prof_dump_member(self, act_prof_name: str, mbr_handle: int) -> None:
        """Print a member."""
        print(self._switch.run("act_prof_dump_member", act_prof_name, mbr_handle))

    @prints_errors
    def act_prof_dump_group(self, act_prof_name: str, grp_handle: int) -> None:
        """Print a group."""
        print(self._switch.run("act_prof_dump_group", act_prof_name, grp_handle))

    # Multicast groups and clone sessions

    @prints_errors
    def mc_mgrp_create(self, mgrp: int) -> int:
        """Create a multicast group and return its number."""
        print(self._switch.run("mc_mgrp_create", mgrp))
        return int(mgrp)

    @prints_errors
    def mc_mgrp_destroy(self, mgrp: int) -> None:
        """Remove a multicast group."""
        print(self._switch.run("mc_mgrp_destroy", mgrp))

    @prints_errors
    def mc_node_create(self, rid: int, ports: Iterable[object], lags: Iterable[object] = ()) -> int:
        """Create a node with ports and return its handle."""
        return self._switch.run_for_handle("mc_node_create", rid, *_ports(ports, lags))

    @prints_errors
    def mc_node_update(self, l1_hdl: int, ports: Iterable[object], lags: Iterable[object] = ()) -> int:
        """Change a node's ports and return its handle."""
        self._switch.run("mc_node_update", l1_hdl, *_ports(ports, lags))
        return int(l1_hdl)

    @prints_errors
    def mc_node_associate(self, mgrp: int, l1_hdl: int) -> None:
        """Add a node's ports to a group."""
        self._switch.run("mc_node_associate", mgrp, l1_hdl)

    @prints_errors
    def mc_node_dissociate(self, mgrp: int, l1_hdl: int) -> None:
        """Remove a node's ports from a group."""
        self._switch.run("mc_node_dissociate", mgrp, l1_hdl)

    @prints_errors
    def mc_node_destroy(self, l1_hdl: int) -> None:
        """Remove a node."""
        self._switch.run("mc_node_destroy", l1_hdl)

    @prints_errors
    def mc_set_lag_membership(self, lag_index: int, ports: Iterable[object]) -> None:
        """Set the ports of a lag."""
        self._switch.run("mc_set_lag_membership", lag_index, *ports)

    @prints_errors
    def mc_dump(self) -> None:
        """Print all groups and nodes."""
        print(self._switch.run("mc_dump"))

    @prints_errors
    def mirroring_add(self, mirror_id: int, egress_port: int) -> None:
        """Send packets cloned to a session out of a port."""
        self._switch.run("mirroring_add", mirror_id, egress_port)

    @prints_errors
    def mirroring_add_mc(self, mirror_id: int, mgrp: int) -> None:
        """Send packets cloned to a session to a multicast group."""
        self._switch.run("mirroring_add_mc", mirror_id, mgrp)

    @prints_errors
    def mirroring_delete(self, mirror_id: int) -> None:
        """Remove a clone session."""
        self._switch.run("mirroring_delete", mirror_id)

    @prints_errors
    def mirroring_get(self, mirror_id: int) -> None:
        """Print a clone session."""
        print(self._switch.run("mirroring_get", mirror_id))

    # Registers, counters and meters

    @prints_errors
    def register_read(self, register_name: str, index: int | None = None, show: bool = False) -> int | list[int]:
        """Return a register's cell, or all cells."""
        said = self._switch.run("register_read", register_name, *([] if index is None else [int(index)]))
        if show:
            print(said)
        values = [int(value) for value in said.rpartition("= ")[2].split(", ")]
        return values if index is None else values[0]

    @prints_errors
    def register_write(self, register_name: str, index: int | Sequence[int], value: int) -> None:
        """Set a register's cell, or the cells from the first index up to the second one."""
        cells = range(int(index[0]), int(index[1])) if isinstance(index, Sequence) else [int(index)]
        for each in cells:
            self._switch.run("register_write", register_name, each, int(value))

    @prints_errors
    def register_reset(self, register_name: str) -> None:
        """Set all cells of a register to 0."""
        self._switch.run("register_reset", register_name)

    @prints_errors
    def counter_read(self, counter_name: str, index: int) -> tuple[int, int]:
        """Return the bytes and the packets that a counter's cell, or an entry's counter, has counted."""
        said = self._switch.run("counter_read", counter_name, int(index))
        print(said)
        octets, packets = (int(part.split()[0]) for part in said.rpartition("(")[2].split(", "))
        return octets, packets

    @prints_errors
    def counter_write(self, counter_name: str, index: int, pkts: int = 0, byts: int = 0) -> None:
        """Set a counter's cell."""
        print(self._switch.run("counter_write", counter_name, int(index), int(pkts), int(byts)))

    @prints_errors
    def counter_reset(self, counter_name: str) -> None:
        """Set all cells of a counter to 0."""
        self._switch.run("counter_reset", counter_name)

    @prints_errors
    def meter_set_rates(self, meter_name: str, index: int, rates: Rates) -> None:
        """Set the rates of a meter's cell: committed and peak, each a pair of units per microsecond and a burst."""
        self._switch.run("meter_set_rates", meter_name, int(index), *_rates(rates))

    @prints_errors
    def meter_array_set_rates(self, meter_name: str, rates: Rates) -> None:
        """Set the rates of all cells of a meter."""
        self._switch.run("meter_array_set_rates", meter_name, *_rates(rates))

    @prints_errors
    def meter_get_rates(self, meter_name: str, index: int) -> list[tuple[float, int]]:
        """Return the rates of a meter's cell; none if it has none."""
        said = self._switch.run("meter_get_rates", meter_name, int(index))
        print(said)
        parts = [line.replace(",", "").split() for line in said.splitlines() if "info rate" in line]
        return [(float(words[4]), int(words[8])) for words in parts]

    # Value sets, queues, the switch

    @prints_errors
    def pvs_add(self, pvs_name: str, value: object) -> None:
        """Add a value to a parser value set."""
        self._switch.run("pvs_add", pvs_name, value)

    @prints_errors
    def pvs_remove(self, pvs_name: str, value: object) -> None:
        """Remove a value from a parser value set."""
        self._switch.run("pvs_remove", pvs_name, value)

    @prints_errors
    def pvs_clear(self, pvs_name: str) -> None:
        """Remove all values from a parser value set."""
        self._switch.run("pvs_clear", pvs_name)

    @prints_errors
    def pvs_get(self, pvs_name: str) -> list[str]:
        """Print and return the values of a parser value set."""
        said = self._switch.run("pvs_get", pvs_name)
        print(said)
        return said.splitlines()

    @prints_errors
    def set_queue_depth(self, queue_depth: int, egress_port: int | None = None, priority: int | None = None) -> None:
        """Set the depth of a port's queues, or of all ports', in packets."""
        self._switch.run("set_queue_depth", queue_depth, *_given(egress_port, priority))

    @prints_errors
    def set_queue_rate(self, rate: int, egress_port: int | None = None, priority: int | None = None) -> None:
        """Set the rate of a port, or of all ports, in packets a second."""
        self._switch.run("set_queue_rate", rate, *_given(egress_port, priority))

    @prints_errors
    def get_time_elapsed(self) -> None:
        """Print the microseconds since the switch started."""
        print(self._switch.run("get_time_elapsed"))

    @prints_errors
    def get_time_since_epoch(self) -> None:
        """Print the microseconds since 1970."""
        print(self._switch.run("get_time_since_epoch"))

    @prints_errors
    def reset_state(self) -> None:
        """Load the program again: entries, registers, counters, groups and clone sessions are gone."""
        self._switch.reload()

    @prints_errors
    def write_config_to_file(self, filename: str) -> None:
        """Write the running program in BMv2's JSON to a file."""
        self._switch.run("write_config_to_file", filename)

    # The program

    @prints_errors
    def show_tables(self) -> None:
        """Print the tables."""
        print(self._switch.run("show_tables"))

    @prints_errors
    def show_actions(self) -> None:
        """Print the actions."""
        print(self._switch.run("show_actions"))

    @prints_errors
    def show_ports(self) -> None:
        """Print the ports."""
        print(self._switch.run("show_ports"))

    @prints_errors
    def show_pvs(self, line: str = "") -> None:
        """Print the parser value sets."""
        print(self._switch.run("show_pvs"))

    @prints_errors
    def switch_info(self) -> None:
        """Print what the switch is."""
        print(self._switch.run("switch_info"))

    @prints_errors
    def table_info(self, table_name: str) -> None:
        """Print a table's keys and actions."""
        print(self._switch.run("table_info", table_name))

    @prints_errors
    def table_show_actions(self, table_name: str) -> None:
        """Print a table's actions."""
        print(self._switch.run("table_show_actions", table_name))

    @property
    def _info(self) -> p4i.P4Info:
        return self._switch.session.info

    def get_tables(self) -> dict[str, Any]:
        """Return the tables of P4Info by name."""
        return _by_name(self._info.tables)

    def get_actions(self) -> dict[str, Any]:
        """Return the actions of P4Info by name."""
        return _by_name(self._info.actions)

    def get_action_profs(self) -> dict[str, Any]:
        """Return the action profiles of P4Info by name."""
        return _by_name(self._info.action_profiles)

    def get_register_arrays(self) -> dict[str, Any]:
        """Return the registers of P4Info by name."""
        return _by_name(self._info.registers)

    def get_counter_arrays(self) -> dict[str, Any]:
        """Return the counters of P4Info by name, direct ones included."""
        return _by_name([*self._info.counters, *self._info.direct_counters])

    def get_meter_arrays(self) -> dict[str, Any]:
        """Return the meters of P4Info by name, direct ones included."""
        return _by_name([*self._info.meters, *self._info.direct_meters])

    def get_parse_vsets(self) -> dict[str, Any]:
        """Return the parser value sets of P4Info by name."""
        return _by_name(self._info.value_sets)

    def get_custom_crc_calcs(self) -> dict[str, int]:
        """Return the width in bits of each custom CRC of the program, by name."""
        return {
            each["name"]: _CUSTOM_CRC_BITS[each["algo"]]
            for each in self._switch.document().get("calculations", [])
            if each.get("algo") in _CUSTOM_CRC_BITS
        }


def _by_name(objects: Iterable[Any]) -> dict[str, Any]:
    return {str(each.preamble.name): each for each in objects}


def _ports(ports: Iterable[object], lags: Iterable[object]) -> list[object]:
    words = list(lags)
    return [*ports, *(["|", *words] if words else [])]


def _rates(rates: Rates | Mapping[Any, Any]) -> list[str]:
    return [f"{float(rate):.12f}:{int(burst)}" for rate, burst in rates]


def _given(egress_port: int | None, priority: int | None) -> list[int]:
    """Return the words for a port and a priority, as p4-utils reads them: a port of 0 is all ports."""
    if not egress_port:
        return []
    return [int(egress_port), *([int(priority)] if priority else [])]
