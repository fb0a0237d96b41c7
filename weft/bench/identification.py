"""The drafts' tables about the fabric under test: identification, topology, configuration, hosts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from weft.bench.subject import Subject
from weft.hints import DISTRIBUTION
from weft.quantities.readable import counted, format_rate, format_size, format_time
from weft.report.html import IN_FORCE, flat
from weft.trials import TrialRun

_OF_HOSTS = ("transport",)
"""Effective parameters that belong to the draft's host configuration."""


def identification_of(subject: Subject) -> dict[str, str]:
    """Return the draft's table of DUT parameters."""
    options, fabric = subject.spec.options, subject.fabric
    rates = sorted({link.link.rate_bps for link in fabric.links}, reverse=True)
    delays = sorted({link.link.delay_ps for link in fabric.links})
    version = metadata.version(DISTRIBUTION)
    program = "Weft's fabric.p4" if not subject.tree.get("p4") else str(options.p4)
    return {
        "Switch vendor and model": "Weft's embedded P4 switch (v1model)",
        "Switch ASIC": f"{program}, compiled to machine code; {options.switching.mode}, "
        f"latency {format_time(options.switching.latency)}",
        "NOS version": f"Weft {version}, tables written by its controller over P4Runtime",
        "Port speed": ", ".join(map(format_rate, rates)),
        "Buffer architecture": _buffers(subject),
        "Optics and cables": f"links with a propagation delay of {', '.join(map(format_time, delays))}",
        "NIC vendor and model": f"Weft's NIC: {counted(subject.nics, 'port')} of {format_rate(subject.nic_rate_bps)} "
        "for each accelerator",
        "NIC firmware": f"Weft {version}",
        "Host configuration": f"Weft's collectives, {options.transport.protocol} with "
        f"{options.transport.congestion_control}, payload of {options.mtu_bytes} B a packet",
    }


def _buffers(subject: Subject) -> str:
    sizes = sorted({link.link.queue_capacity_bytes for link in subject.fabric.links}, reverse=True)
    each = ", ".join(format_size(size) for size in sizes)
    capacity = subject.spec.options.buffer.capacity
    if capacity is not None:
        return f"shared by the ports of a switch: {format_size(capacity)}"
    if subject.is_lossless:
        return f"shared by the ports of a switch: the sum of {each} a port (effective parameters have it in bytes)"
    return f"dedicated: {each} a port"


def topology_of(subject: Subject) -> dict[str, str]:
    """Return facts of the topology."""
    fabric = subject.fabric
    roles: dict[str, int] = {}
    for switch in fabric.switches:
        roles[switch.role] = roles.get(switch.role, 0) + 1
    return {
        "Reference topology": _reference(subject),
        "Kind": str(fabric.parameters.get("kind", "")),
        "Accelerators": str(subject.ranks),
        "Accelerators of a host": str(subject.ranks_per_host),
        "Planes": str(fabric.planes),
        "Switches": ", ".join(f"{count} of role {role}" for role, count in roles.items()),
        "Links between switches": str(len(fabric.links_between_switches)),
        "Parameters": json.dumps(dict(fabric.parameters)),
    }


def _reference(subject: Subject) -> str:
    """Return the draft's reference topology that the fabric is of (sections 3.1.1 to 3.1.3)."""
    fabric = subject.fabric
    kind = fabric.parameters.get("kind")
    if kind == "rail_only" or fabric.parameters.get("rail_optimised"):
        return "C: rail-optimised"
    tiers = {switch.tier for switch in fabric.switches}
    if kind in ("leaf_spine", "fat_tree") or tiers in ({0, 1}, {0, 1, 2}):
        return "B: three-tier Clos" if 2 in tiers else "A: two-tier Clos"
    return f"none of the draft's: {kind}"


def configuration_of(run: TrialRun) -> dict[str, str]:
    """Return the parameters in force in switches, each default spelled out."""
    return {key: _text(value) for key, value in flat(_effective(run)).items() if not key.startswith(_OF_HOSTS)}


def hosts_of(run: TrialRun) -> dict[str, str]:
    """Return the parameters in force in hosts."""
    return {key: _text(value) for key, value in flat(_effective(run)).items() if key.startswith(_OF_HOSTS)}


def _effective(run: TrialRun) -> Mapping[str, Any]:
    found = run.results.made_by.parameters.get(IN_FORCE)
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
