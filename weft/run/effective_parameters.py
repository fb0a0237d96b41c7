"""The effective parameters of a run for its results: every default of hosts and switches spelled out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from weft.controller.features import Settings
from weft.controller.features.ecn import EcnSettings
from weft.controller.features.identity import TrafficClassSettings
from weft.controller.features.load_balancing import LoadBalancingSettings
from weft.switch.daemon.config import CreditsConfig, PfcConfig, PortConfig, SwitchConfig
from weft.topologies import FabricSpec


def effective_parameters(
    fabric: FabricSpec,
    configs: Sequence[SwitchConfig],
    settings: Settings,
    frame_bytes: int,
    transport: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the parameters as plain data for JSON.

    Args:
        fabric: the fabric; its links determine some defaults.
        configs: configurations of the embedded switches.
        settings: settings of the controller.
        frame_bytes: largest frame of a WRITE or of in-network aggregation.
        transport: transport of queue pairs, the same on all hosts.
    """
    ports = [port for config in configs for port in config.ports]
    trimming = _distinct("ports", (port.trimming.model_dump() for port in ports if port.trimming))
    return {
        "largest_frame_bytes": frame_bytes,
        "transport": transport,
        "ecn": _ecn(fabric, settings),
        "hash_seed": settings.hash_seed,
        "load_balancing": asdict(settings.of(LoadBalancingSettings)),
        "queues": _distinct(
            "ports",
            ({"rate_bps": port.rate_bps, "queue_capacity_bytes": port.queue_capacity_bytes} for port in ports),
        ),
        "buffer": _distinct("switches", (config.buffer.model_dump() for config in configs if config.buffer)),
        **({"trimming": trimming} if trimming else {}),
        "pfc": _distinct("ports", _flow_control(ports, lambda port: port.pfc)),
        "credits": _distinct("ports", _flow_control(ports, lambda port: port.credits)),
        "quantum_bytes": next((list(port.quantum_bytes) for port in ports if any(port.quantum_bytes)), None),
    }


def _ecn(fabric: FabricSpec, settings: Settings) -> list[dict[str, Any]]:
    """Return the ECN thresholds by class and port rate."""
    chosen, data = settings.of(EcnSettings), settings.of(TrafficClassSettings).data
    rates_bps = sorted({port.link.rate_bps for switch in fabric.switches for port in switch.ports})
    return [
        {
            "priority_class": priority_class,
            "rate_bps": rate_bps,
            "at": chosen.at,
            "kmin_bytes": profile.kmin_bytes,
            "kmax_bytes": profile.kmax_bytes,
            "pmax": profile.pmax,
        }
        for rate_bps in rates_bps
        for priority_class, profile in (chosen.profiles_at(rate_bps, data)).items()
    ]


def _flow_control(
    ports: Iterable[PortConfig], section_of: Callable[[PortConfig], PfcConfig | CreditsConfig | None]
) -> Iterator[dict[str, Any]]:
    """Yield the flow control settings of every port that has it, without the port's address."""
    for port in ports:
        section = section_of(port)
        if section is not None:
            own = section.model_dump(exclude={"source_mac"})
            yield {"rate_bps": port.rate_bps, "delay_ps": port.delay_ps, **own}


def _distinct(what: str, sections: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each distinct section once, with its number of occurrences."""
    counted: dict[str, int] = {}
    for section in sections:
        text = json.dumps(section, sort_keys=True)
        counted[text] = counted.get(text, 0) + 1
    return [{what: count, **json.loads(text)} for text, count in counted.items()]
