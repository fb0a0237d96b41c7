"""Text description of a fabric: what `weft topology show` prints."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

from weft.topologies.errors import TopologyError
from weft.topologies.fabric import FabricSpec, LinkSpec, SwitchSpec
from weft.topologies.int_rates import STANDARD_INT_RATES, int_rates
from weft.topologies.paths import bandwidth_delay_product_bytes, base_rtt_ps, longest_path

_RATE_UNITS = ((10**12, "Tb/s"), (10**9, "Gb/s"), (10**6, "Mb/s"), (10**3, "kb/s"))
_PLURALS = {"leaf": "leaves", "switch": "switches"}
_TIME_UNITS = ((10**12, "s"), (10**9, "ms"), (10**6, "µs"), (10**3, "ns"))


def format_rate(rate_bps: int) -> str:
    """Rate with its unit: `10 Gb/s`."""
    return _format(rate_bps, _RATE_UNITS, "b/s")


def format_time(time_ps: int) -> str:
    """Time with its unit: `1 µs`."""
    return _format(time_ps, _TIME_UNITS, "ps")


def format_link(link: LinkSpec) -> str:
    """Rate, delay and queue of a link on one line."""
    return f"{format_rate(link.rate_bps)}, {format_time(link.delay_ps)}, queue {link.queue_capacity_bytes} B"


def describe(fabric: FabricSpec, ports: bool = True, frame_bytes: int = 1024) -> str:
    """Return several lines: size, links, RTT and bandwidth-delay product, then switches and hosts."""
    lines = [_headline(fabric), *_figures(fabric, frame_bytes), *_own_int_rates(fabric), ""]
    for switch in fabric.switches:
        lines.append(_switch_line(switch))
        if ports:
            lines.extend(
                f"    {port.number:>3}  {port.interface:<15}  {port.peer.node:<8} {format_link(port.link)}"
                for port in switch.ports
            )
    lines.append("")
    for host in fabric.hosts:
        nics = ", ".join(f"{nic.interface} {nic.ipv4} {nic.mac}" for nic in host.nics)
        lines.append(f"{host.name:<6} {nics}")
    return "\n".join(lines)


def as_dict(fabric: FabricSpec) -> dict[str, Any]:
    """Return plain JSON values: the fields of `FabricSpec` and of all it holds, addresses as text."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(fabric), default=str))
    return plain


def _headline(fabric: FabricSpec) -> str:
    roles = dict(Counter(switch.role for switch in fabric.switches_of_plane(0)))
    if "leaf" in roles:
        roles = {"leaf": 0, "spine": 0} | roles
    tiers = [f"{count} {_PLURALS.get(role, f'{role}s')}" for role, count in roles.items()]
    return (
        f"{fabric.planes} plane(s) x ({' + '.join(tiers)}), "
        f"{len(fabric.hosts)} hosts, {len(fabric.switches)} switches, {len(fabric.links)} links"
    )


def _figures(fabric: FabricSpec, frame_bytes: int) -> list[str]:
    try:
        path = longest_path(fabric, frame_bytes)
    except TopologyError:
        return []
    return [
        f"longest path {' '.join(path.nodes)}: base RTT {format_time(base_rtt_ps(path, frame_bytes))}, "
        f"bandwidth-delay product {bandwidth_delay_product_bytes(path, frame_bytes)} B "
        f"({frame_bytes} B frames)"
    ]


def _own_int_rates(fabric: FabricSpec) -> list[str]:
    try:
        rates = int_rates(fabric)
    except TopologyError:
        return []  # reported where INT is asked for
    own = [
        f"{code}={rate_bps / 10**9:.6g}"
        for code, (rate_bps, standard_bps) in enumerate(zip(rates, STANDARD_INT_RATES, strict=True))
        if rate_bps != standard_bps
    ]
    return [f"INT rate codes of its own (Gb/s): {','.join(own)}"] if own else []


def _switch_line(switch: SwitchSpec) -> str:
    identity = f"{switch.name:<6} device {switch.device_id:<4} {switch.role:<5}"
    return f"{identity} {switch.address} {switch.ipv6} {switch.mac}"


def _format(value: int, units: tuple[tuple[int, str], ...], base: str) -> str:
    for factor, unit in units:
        if value >= factor:
            return f"{value / factor:g} {unit}"
    return f"{value} {base}"
