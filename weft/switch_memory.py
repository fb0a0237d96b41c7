"""From a scenario's sections on memory, flow control and switching to the configuration of switches and hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine import pfc_headroom_bytes
from topologies import FabricSpec, PortSpec, SwitchSpec
from weft.errors import BadInputError
from weft.options import FabricOptions
from weft.scenario import SwitchingSection


def with_memory(
    configs: Sequence[dict[str, Any]], fabric: FabricSpec, options: FabricOptions, frame_bytes: int
) -> list[dict[str, Any]]:
    """Return switches' configurations with what `buffer`, `scheduling`, `pfc` and `switching` ask for.

    Raises:
        BadInputError: the buffer does not hold what is reserved in it.
    """
    return [_switch_with_memory(dict(each), fabric, options, frame_bytes) for each in configs]


def _switch_with_memory(
    config: dict[str, Any], fabric: FabricSpec, options: FabricOptions, frame_bytes: int
) -> dict[str, Any]:
    switch = fabric.device(config["device_id"])
    ports = [dict(port) for port in config["ports"]]
    for port in ports:
        if options.scheduling.quantum:
            port["quantum_bytes"] = options.scheduling.quantum_by_class
        if options.pfc.classes:
            port["pfc"] = _pfc_config(switch.port(port["port"]), switch, options, frame_bytes)
    config["ports"] = ports
    if options.buffer.capacity is not None or options.pfc.classes:
        config["buffer"] = _buffer_config(switch, options)
        _require_room(switch, config)
    if options.switching != SwitchingSection():
        config["switching"] = {
            "latency_ps": options.switching.latency,
            "cut_through": options.switching.cut_through,
        }
    return config


def _buffer_config(switch: SwitchSpec, options: FabricOptions) -> dict[str, Any]:
    buffer = options.buffer
    own = sum(port.link.queue_capacity_bytes for port in switch.ports)
    return {
        "capacity_bytes": own if buffer.capacity is None else buffer.capacity,
        "reserved_bytes": buffer.reserved_by_class,
        "alpha": buffer.alpha_by_class,
    }


def _pfc_config(
    port: PortSpec, switch: SwitchSpec, options: FabricOptions, frame_bytes: int
) -> dict[str, Any]:
    pfc = options.pfc
    headroom = pfc.headroom
    if headroom is None:
        headroom = pfc_headroom_bytes(
            rate_bps=port.link.rate_bps,
            delay_ps=port.link.delay_ps,
            frame_bytes=frame_bytes,
            # What has come, and is not yet in the queue that it will fill.
            response_ps=options.switching.latency,
        )
    return {
        "classes": sorted(set(pfc.classes)),
        "source_mac": switch.mac,
        "xoff_bytes": pfc.xoff or 0,
        "alpha": pfc.pause_alpha,
        "hysteresis_bytes": 2 * frame_bytes if pfc.hysteresis is None else pfc.hysteresis,
        "headroom_bytes": headroom,
        "pause_quanta": pfc.pause_quanta,
    }


def _require_room(switch: SwitchSpec, config: dict[str, Any]) -> None:
    buffer = config["buffer"]
    reserved = len(config["ports"]) * sum(buffer["reserved_bytes"])
    headroom = sum(
        port["pfc"]["headroom_bytes"] * len(port["pfc"]["classes"])
        for port in config["ports"]
        if "pfc" in port
    )
    if reserved + headroom >= buffer["capacity_bytes"]:
        raise BadInputError(
            f"buffer: {buffer['capacity_bytes']} B of {switch.name} leave nothing to share: its {len(config['ports'])} "
            f"ports reserve {reserved} B and need {headroom} B of headroom for PFC"
        )


def host_pfc_quanta(options: FabricOptions) -> int:
    """Return the quanta of a host's pauses (`traffic.control.NicSettings.pfc_quanta`), 0 without PFC."""
    return options.pfc.pause_quanta if options.pfc.classes else 0
