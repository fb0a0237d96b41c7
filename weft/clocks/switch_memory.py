"""From a scenario's sections on memory, flow control and switching to the configuration of switches and hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.engine import CREDIT_BLOCK_BYTES, pfc_headroom_bytes
from weft.scenario import KeyProblem, SwitchingSection
from weft.scenario.options import FabricOptions
from weft.topologies import FabricSpec, PortSpec, SwitchSpec
from weft.traffic.transport_settings import CreditSettings


def with_memory(
    configs: Sequence[dict[str, Any]], fabric: FabricSpec, options: FabricOptions, frame_bytes: int
) -> list[dict[str, Any]]:
    """Return switches' configurations with what `buffer`, `scheduling`, `pfc`, `credits` and `switching` ask for.

    Raises:
        KeyProblem: the buffer does not hold what is reserved in it.
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
        peer = switch.port(port["port"])
        if options.pfc.classes:
            port["pfc"] = _pfc_config(peer, switch, options, frame_bytes)
        if options.credits.on(switch.name, peer.peer.node):
            port["credits"] = {"source_mac": switch.mac, **_credit_config(options, frame_bytes)}
    config["ports"] = ports
    if options.buffer.capacity is not None or options.pfc.classes or options.credits.classes:
        config["buffer"] = _buffer_config(switch, options)
        _require_room(switch, config, frame_bytes)
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


def _credit_config(options: FabricOptions, frame_bytes: int) -> dict[str, Any]:
    buffer_bytes = options.credits.buffer
    if buffer_bytes < -(-frame_bytes // CREDIT_BLOCK_BYTES) * CREDIT_BLOCK_BYTES:
        raise KeyProblem(
            "credits.buffer",
            f"{buffer_bytes} B hold no frame of {frame_bytes} B in blocks of {CREDIT_BLOCK_BYTES} B, "
            "so none would ever be sent",
        )
    return {
        "classes": sorted(set(options.credits.classes)),
        "buffer_bytes": buffer_bytes,
        "largest_frame_bytes": frame_bytes,
    }


def _require_room(switch: SwitchSpec, config: dict[str, Any], frame_bytes: int) -> None:
    buffer = config["buffer"]
    if buffer["capacity_bytes"] < frame_bytes:
        raise KeyProblem(
            "buffer.capacity", f"{buffer['capacity_bytes']} B hold no frame, which may have {frame_bytes} B"
        )
    reserved = len(config["ports"]) * sum(buffer["reserved_bytes"])
    headroom = _of_all_classes(config, "pfc", "headroom_bytes")
    credit = _of_all_classes(config, "credits", "buffer_bytes")
    if reserved + headroom + credit >= buffer["capacity_bytes"]:
        raise KeyProblem(
            "buffer",
            f"{buffer['capacity_bytes']} B of {switch.name} leave nothing to share: its {len(config['ports'])} "
            f"ports reserve {reserved} B and need {headroom} B of headroom for PFC and {credit} B for credits",
        )


def _of_all_classes(config: dict[str, Any], flow_control: str, key: str) -> int:
    """Sum a port's bytes for each class of its flow control over the ports that have it."""
    found = [port[flow_control] for port in config["ports"] if flow_control in port]
    return sum(each[key] * len(each["classes"]) for each in found)


def host_credits(options: FabricOptions, frame_bytes: int, host: str, leaf: str) -> CreditSettings | None:
    """Return the credits of a host's port, None where its link has none."""
    if not options.credits.on(host, leaf):
        return None
    return CreditSettings(**_credit_config(options, frame_bytes))


def lossless_buffer_bytes(options: FabricOptions) -> int:
    """Return the memory that the ports of a switch share under flow control; 0 if they share none, or have none."""
    has_flow_control = bool(options.pfc.classes or options.credits.classes)
    return (options.buffer.capacity or 0) if has_flow_control else 0


def host_pfc_quanta(options: FabricOptions) -> int:
    """Return the quanta of a host's pauses (`weft.traffic.control.NicSettings.pfc_quanta`), 0 without PFC."""
    return options.pfc.pause_quanta if options.pfc.classes else 0
