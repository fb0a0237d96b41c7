"""From a fabric's description to the configuration of its embedded switches, whatever the clock."""

from __future__ import annotations

from typing import Any

from weft.scenario import FaultsSection, LinkFaults
from weft.topologies import FabricSpec, PortSpec
from weft.topologies.addressing import CPU_PORT


def switch_configs(
    fabric: FabricSpec, faults: FaultsSection, *, host_interfaces: bool, fabric_interfaces: bool
) -> list[dict[str, Any]]:
    """Return every switch's configuration (`weft.switch.daemon.config.SwitchConfig`).

    Ports to hosts, and ports to switches, have interfaces where asked for.
    """
    return [
        {
            "device_id": switch.device_id,
            "name": switch.name,
            "cpu_port": CPU_PORT,
            "depth_unit": "cells",
            "time_unit": "ns",
            "ports": [
                _port_config(
                    port, switch.name, faults, host_interfaces if port.peer_is_host else fabric_interfaces
                )
                for port in switch.ports
            ],
        }
        for switch in fabric.switches
    ]


def _port_config(port: PortSpec, switch: str, faults: FaultsSection, has_interface: bool) -> dict[str, Any]:
    config: dict[str, Any] = {
        "port": port.number,
        "rate_bps": port.link.rate_bps,
        "delay_ps": port.link.delay_ps,
        "queue_capacity_bytes": port.link.queue_capacity_bytes,
        "host_uplink": port.peer_is_host,
    }
    if faults.any:
        config["faults"] = _faults_config(faults.on(switch, port.peer.node))
        if port.peer_is_host:
            config["uplink_faults"] = _faults_config(faults.on(port.peer.node, switch))
    if has_interface:
        config["interface"] = port.interface
    return config


def _faults_config(faults: LinkFaults) -> dict[str, Any]:
    return {
        "loss": faults.loss,
        "duplicate": faults.duplicate,
        "delay_probability": faults.delay_probability,
        "extra_delay_ps": faults.extra_delay,
        "bit_error_rate": faults.bit_error_rate,
    }


def links_between_switches(fabric: FabricSpec) -> list[tuple[int, int, int, int]]:
    """Return the links between switches as (device, port, device, port)."""
    devices = {switch.name: switch.device_id for switch in fabric.switches}
    return [
        (devices[link.a.node], link.a.port, devices[link.b.node], link.b.port)
        for link in fabric.links
        if link.a.node in devices and link.b.node in devices
    ]
