"""Description of a fabric as text and as plain values: what `weft topology show` prints."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

from weft.quantities.readable import counted, format_rate, format_time
from weft.topologies.errors import TopologyError
from weft.topologies.fabric import FabricSpec, LinkSpec, PortSpec, SwitchSpec
from weft.topologies.int_rates import STANDARD_INT_RATES, int_rates
from weft.topologies.metrics import Bisection, PathDiversity, PlaneMetrics, fabric_metrics
from weft.topologies.paths import bandwidth_delay_product_bytes, base_rtt_ps, longest_path

_PLURALS = {"leaf": "leaves", "switch": "switches"}


def format_link(link: LinkSpec) -> str:
    """Rate, delay and queue of a link on one line."""
    return f"{format_rate(link.rate_bps)}, {format_time(link.delay_ps)}, queue {link.queue_capacity_bytes} B"


def describe(fabric: FabricSpec, ports: bool = True, frame_bytes: int = 1024) -> str:
    """Return several lines: size, RTT and bandwidth-delay product, the fabric's metrics, then switches and hosts."""
    lines = [
        _headline(fabric),
        *_circuits(fabric),
        *_figures(fabric, frame_bytes),
        *_own_int_rates(fabric),
        "",
    ]
    for plane in fabric_metrics(fabric).planes:
        lines += [*_metrics_table(plane, fabric.storage_plane in plane.planes), ""]
    for switch in fabric.switches:
        lines.append(_switch_line(switch))
        if ports:
            lines.extend(
                f"    {port.number:>3}  {port.interface:<15}  {port.peer.node:<8} {format_link(port.link)}"
                f"{_far_end(port)}"
                for port in switch.ports
            )
    lines.append("")
    for host in fabric.hosts:
        nics = ", ".join(f"{nic.interface} {nic.ipv4} {nic.mac}" for nic in host.nics)
        lines.append(f"{host.name:<6} {nics}")
    return "\n".join(lines)


def as_dict(fabric: FabricSpec) -> dict[str, Any]:
    """Return plain JSON values: `FabricSpec`'s fields and, under "metrics", `FabricMetrics`'; addresses as text."""
    values = asdict(fabric) | {"metrics": asdict(fabric_metrics(fabric))}
    plain: dict[str, Any] = json.loads(json.dumps(values, default=str))
    return plain


def plural_of(role: str) -> str:
    """Return the word for several switches or hosts of a role."""
    return _PLURALS.get(role, f"{role}s")


def _headline(fabric: FabricSpec) -> str:
    roles = dict(Counter(switch.role for switch in fabric.switches_of_plane(0)))
    if "leaf" in roles and fabric.circuits is None:
        roles = {"leaf": 0, "spine": 0} | roles
    tiers = [counted(count, role, plural_of(role)) for role, count in roles.items()]
    sizes = (
        counted(len(fabric.hosts), "host"),
        counted(len(fabric.switches), "switch", "switches"),
        counted(len(fabric.links), "link"),
    )
    storage = "" if fabric.storage_plane is None else " and a storage network"
    return f"{counted(len(fabric.training_planes), 'plane')} x ({' + '.join(tiers)}){storage}, {', '.join(sizes)}"


def _circuits(fabric: FabricSpec) -> list[str]:
    plan = fabric.circuits
    if plan is None:
        return []
    ports = [len(switch.ports) for switch in plan.switches]
    span = f"{min(ports)}" if min(ports) == max(ports) else f"{min(ports)} to {max(ports)}"
    lines = [f"{len(plan.switches)} circuit switches of {span} ports; configurations:"]
    for each in plan.configurations:
        here = " (present: the figures and ports below)" if each.name == plan.present else ""
        lines.append(f"  {each.name}: {len(each.circuits)} circuits{here}")
    return lines


def _far_end(port: PortSpec) -> str:
    if port.leads_to_controller:
        return ", to a controller"
    if port.circuit is None:
        return ""
    return ", dark" if port.is_dark else f", by {port.circuit}"


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


def _metrics_table(plane: PlaneMetrics, is_storage: bool) -> list[str]:
    numbers = ", ".join(map(str, plane.planes))
    fewest, most = plane.ports_per_switch
    rows = [
        ("switches", f"{plane.switches}"),
        ("cables", f"{plane.host_cables} to hosts, {plane.switch_cables} between switches"),
        ("ports used", f"{plane.ports}; {fewest} to {most} a switch"),
        ("hops between hosts", _hops(plane)),
        ("bisection bandwidth", _bisection(plane.bisection)),
        *(
            (
                f"oversubscription, tier {tier.tier}",
                f"{_span(tier.smallest, tier.largest)} ({', '.join(tier.roles)})",
            )
            for tier in plane.oversubscription
        ),
        ("shortest paths", _path_diversity(plane.path_diversity)),
    ]
    width = max(len(name) for name, _ in rows)
    title = f"plane {numbers}" if len(plane.planes) == 1 else f"planes {numbers}, each"
    if is_storage:
        title += " (the storage network)"
    return [f"{title}:", *(f"  {name:<{width}}  {value}" for name, value in rows)]


def _hops(plane: PlaneMetrics) -> str:
    apart = f"; {plane.pairs_without_path} pairs of hosts have no path" if plane.pairs_without_path else ""
    if plane.mean_hops is None:
        return f"none{apart}"
    return f"at most {plane.diameter} (diameter), mean {plane.mean_hops:.4g} over pairs of hosts{apart}"


def _bisection(found: Bisection | None) -> str:
    if found is None:
        return "none: no two hosts are joined"
    over = f" over {found.links} links" if found.links else ""
    apart = f"in {found.networks} networks that no link joins, halved each; " if found.networks > 1 else ""
    return (
        f"{'' if found.exact else 'at most '}{format_rate(found.bandwidth_bps)}{over} "
        f"between {found.hosts[0]} and {found.hosts[1]} hosts, {found.of_hosts:.4g} of what a half sends "
        f"({apart}{'exact' if found.exact else 'an upper bound'}: {found.method})"
    )


def _path_diversity(found: PathDiversity | None) -> str:
    if found is None:
        return "none: no two switches with hosts have a path"
    how = "exact" if found.exact else f"from {found.sources} of {found.switches} switches with hosts"
    return f"at least {found.smallest}, mean {found.mean:.4g} between hosts of different switches ({how})"


def _span(smallest: float, largest: float) -> str:
    return f"{smallest:.4g}" if smallest == largest else f"{smallest:.4g} to {largest:.4g}"


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
    return [f"INT rate codes of this fabric (Gb/s): {','.join(own)}"] if own else []


def _switch_line(switch: SwitchSpec) -> str:
    identity = f"{switch.name:<6} device {switch.device_id:<4} {switch.role:<5}"
    return f"{identity} {switch.address} {switch.ipv6} {switch.mac}"
