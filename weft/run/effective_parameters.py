"""What a run's parameters came to: every default of hosts and switches spelled out, for its results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from weft.clocks.switch_configs import switch_configs
from weft.clocks.switch_memory import with_memory
from weft.controller.ecn import scaled_profile
from weft.controller.identity import DATA_CLASS
from weft.controller.plan import Settings
from weft.scenario.options import FabricOptions
from weft.topologies import FabricSpec


def effective_parameters(
    fabric: FabricSpec,
    options: FabricOptions,
    settings: Settings,
    frame_bytes: int,
    transport: Mapping[str, Any],
) -> dict[str, Any]:
    """Return plain data for JSON.

    Args:
        fabric: whose links say what some defaults are.
        options: as given.
        settings: the controller's.
        frame_bytes: largest frame of a WRITE.
        transport: `weft.traffic.host.Host.transport_in_force` of a host; all hosts are alike.
    """
    configs = with_memory(
        switch_configs(fabric, options.faults, host_interfaces=False, fabric_interfaces=False),
        fabric,
        options,
        frame_bytes,
    )
    ports = [port for config in configs for port in config["ports"]]
    return {
        "largest_frame_bytes": frame_bytes,
        "transport": dict(transport),
        "ecn": _ecn(fabric, settings),
        "queues": _distinct(
            "ports",
            ({name: port[name] for name in ("rate_bps", "queue_capacity_bytes")} for port in ports),
        ),
        "buffer": _distinct("switches", (config["buffer"] for config in configs if "buffer" in config)),
        "pfc": _distinct("ports", _of_ports(ports, "pfc")),
        "credits": _distinct("ports", _of_ports(ports, "credits")),
        "quantum_bytes": options.scheduling.quantum_by_class if options.scheduling.quantum else None,
    }


def _ecn(fabric: FabricSpec, settings: Settings) -> list[dict[str, Any]]:
    """Thresholds by class and rate of the port."""
    rates_bps = sorted({port.link.rate_bps for switch in fabric.switches for port in switch.ports})
    return [
        {
            "priority_class": priority_class,
            "rate_bps": rate_bps,
            "at": settings.ecn_at,
            "kmin_bytes": profile.kmin_bytes,
            "kmax_bytes": profile.kmax_bytes,
            "pmax": profile.pmax,
        }
        for rate_bps in rates_bps
        for priority_class, profile in (settings.ecn or {DATA_CLASS: scaled_profile(rate_bps)}).items()
    ]


def _of_ports(ports: Iterable[Mapping[str, Any]], section: str) -> Iterable[dict[str, Any]]:
    """A flow control's settings of every port that has it, apart from the port's own address."""
    for port in ports:
        if section in port:
            own = {name: value for name, value in port[section].items() if name != "source_mac"}
            yield {"rate_bps": port["rate_bps"], "delay_ps": port["delay_ps"], **own}


def _distinct(what: str, sections: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each different section once, with how many there are of it."""
    counted: dict[str, int] = {}
    for section in sections:
        text = json.dumps(section, sort_keys=True)
        counted[text] = counted.get(text, 0) + 1
    return [{what: count, **json.loads(text)} for text, count in counted.items()]
