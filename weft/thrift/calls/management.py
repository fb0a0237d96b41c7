"""Calls on the switch: its program, ports, queues and time, and those that Weft's switch has nothing for."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from weft.controller.switch_cli import management
from weft.thrift.bmv2 import IdError, LearnError, PortError, ResourceType, SwapError
from weft.thrift.calls.registry import CallRefusedError, CallUnsupportedError, Target, as_signed, carries_out
from weft.thrift.calls.tables import Record

# The program


@carries_out
async def bm_mgmt_get_info(on: Target) -> Record:
    """Return device id and Thrift port; there are no nanomsg sockets."""
    return {"device_id": as_signed(on.session.switch.device_id), "thrift_port": on.thrift_port}


@carries_out
async def bm_get_config(on: Target) -> str:
    """Return the program's JSON."""
    return (await on.session.switch.read_device_config()).decode(errors="replace")


@carries_out
async def bm_get_config_md5(on: Target) -> bytes:
    """Return the MD5 sum of the program's JSON, which clients compare with their file's."""
    config = await on.session.switch.read_device_config()
    return hashlib.md5(config, usedforsecurity=False).digest()


_OF_PIPELINES = {ResourceType.MATCH_TABLE: "tables", ResourceType.ACTION_PROFILE: "action_profiles"}
_OF_PROGRAM = {
    ResourceType.COUNTER: "counter_arrays",
    ResourceType.METER: "meter_arrays",
    ResourceType.REGISTER: "register_arrays",
    ResourceType.LEARNING_LIST: "learn_lists",
}


@carries_out
async def bm_get_id_from_name(on: Target, *, resource_type: int, resource_name: str) -> int:
    """Return an object's id in the program's JSON."""
    try:
        kind = ResourceType(resource_type)
    except ValueError:
        raise CallRefusedError(IdError.INVALID_RESOURCE_TYPE, f"there is no type {resource_type}") from None
    document: dict[str, Any] = json.loads(await on.session.switch.read_device_config())
    if kind in _OF_PIPELINES:
        places, key = document.get("pipelines", []), _OF_PIPELINES[kind]
    else:
        places, key = [document], _OF_PROGRAM[kind]
    for each in (each for place in places for each in place.get(key, [])):
        if each["name"] == resource_name:
            return int(each["id"])
    raise CallRefusedError(IdError.INVALID_RESOURCE_NAME, f"there is no {resource_name!r} in {key}")


@carries_out
async def bm_reset_state(on: Target) -> None:
    """Load the program again."""
    await on.session.reload()


@carries_out
async def bm_load_new_config(on: Target, *, config_str: str) -> None:
    """Refuse: a program needs its P4Info."""
    raise CallRefusedError(SwapError.CONFIG_SWAP_DISABLED, "programs are loaded over P4Runtime")


@carries_out
async def bm_swap_configs(on: Target) -> None:
    """Refuse: no program has been loaded by `bm_load_new_config`."""
    raise CallRefusedError(SwapError.NO_ONGOING_SWAP, "programs are loaded over P4Runtime")


# Ports, queues, time


@carries_out
async def bm_dev_mgr_show_ports(on: Target) -> list[Record]:
    """Return all ports."""
    found = (await management.manage(on.session, list_ports=True))["ports"]
    return [
        {"port_num": each["number"], "iface_name": each["interface"], "is_up": each["is_up"], "extra": {}}
        for each in found
    ]


@carries_out
async def bm_dev_mgr_add_port(on: Target, *, iface_name: str, port_num: int, pcap_path: str) -> None:
    """Refuse."""
    raise CallRefusedError(PortError.ERROR, "a switch has the ports that it was started with")


@carries_out
async def bm_dev_mgr_remove_port(on: Target, *, port_num: int) -> None:
    """Refuse."""
    raise CallRefusedError(PortError.ERROR, "a switch has the ports that it was started with")


@carries_out
async def set_egress_queue_depth(on: Target, *, port_num: int, depth_pkts: int) -> int:
    """Set the depth of a port's queues."""
    await management.set_queue_depth(on.session, [str(depth_pkts), str(port_num)])
    return 0


@carries_out
async def set_all_egress_queue_depths(on: Target, *, depth_pkts: int) -> int:
    """Set the depth of all queues."""
    await management.set_queue_depth(on.session, [str(depth_pkts)])
    return 0


@carries_out
async def set_egress_priority_queue_depth(on: Target, *, port_num: int, priority: int, depth_pkts: int) -> int:
    """Refuse: a port's queues have one depth."""
    await management.set_queue_depth(on.session, [str(depth_pkts), str(port_num), str(priority)])
    return 0


@carries_out
async def set_egress_queue_rate(on: Target, *, port_num: int, rate_pps: int) -> int:
    """Set the rate of a port."""
    await management.set_queue_rate(on.session, [str(rate_pps), str(port_num)])
    return 0


@carries_out
async def set_all_egress_queue_rates(on: Target, *, rate_pps: int) -> int:
    """Set the rate of all ports."""
    await management.set_queue_rate(on.session, [str(rate_pps)])
    return 0


@carries_out
async def set_egress_priority_queue_rate(on: Target, *, port_num: int, priority: int, rate_pps: int) -> int:
    """Refuse: a port's queues have one rate."""
    await management.set_queue_rate(on.session, [str(rate_pps), str(port_num), str(priority)])
    return 0


@carries_out
async def get_time_elapsed_us(on: Target) -> int:
    """Return the microseconds since the switch started."""
    return int((await management.manage(on.session))["elapsed_us"])


@carries_out
async def get_time_since_epoch_us(on: Target) -> int:
    """Return the microseconds since 1970."""
    return int((await management.manage(on.session))["since_epoch_us"])


# Calls that Weft's switch has nothing for


def _learning(name: str) -> None:
    async def refuse(on: Target, **_arguments: object) -> None:
        raise CallRefusedError(LearnError.ERROR, "digests come over P4Runtime, which acknowledges and configures them")

    refuse.__name__ = name
    carries_out(refuse)


def _unsupported(name: str, reason: str) -> None:
    async def refuse(on: Target, **_arguments: object) -> None:
        raise CallUnsupportedError(reason)

    refuse.__name__ = name
    carries_out(refuse)


for _name in ("ack", "ack_buffer", "set_timeout", "set_buffer_size"):
    _learning(f"bm_learning_{_name}")
for _name in ("set_crc16_custom_parameters", "set_crc32_custom_parameters", "set_toeplitz_hash_key"):
    _unsupported(f"bm_{_name}", "hash functions keep the program's parameters")
_unsupported("bm_serialize_state", "a switch's state cannot be saved")
