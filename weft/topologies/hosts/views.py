"""A host's inside as text and as plain values: what `weft topology show --host` prints.

Its first part is the matrix of accelerators and NICs as `nvidia-smi topo -m` prints it, with tabs between columns.
"""

from __future__ import annotations

from typing import Any

from weft.quantities.readable import format_rate
from weft.topologies.hosts.layout import MEANINGS, Accelerator, HostLayout, HostNic
from weft.topologies.hosts.routes import HostRoutes, Route

_NO_AFFINITY = ("", "", "", "")


def connections(layout: HostLayout) -> dict[str, dict[str, str]]:
    """Return what joins every part of a host to every other, by their names: GPU0 …, NIC0 …"""
    parts: list[tuple[str, Accelerator | HostNic]] = [
        *((f"GPU{number}", accelerator) for number, accelerator in enumerate(layout.accelerators)),
        *((f"NIC{number}", layout.nics[nic]) for number, nic in enumerate(layout.devices)),
    ]
    found: dict[str, dict[str, str]] = {}
    for name, part in parts:
        found[name] = {}
        for other_name, other in parts:
            if name == other_name:
                joined = "X"
            elif layout.nvlinks and name.startswith("GPU") and other_name.startswith("GPU"):
                joined = f"NV{layout.nvlinks}"
            else:
                joined = layout.distance(part, other).name
            found[name][other_name] = joined
    return found


def affinities(layout: HostLayout) -> dict[str, tuple[str, str]]:
    """Return the processors and the NUMA node of every accelerator."""
    nodes = [layout.numa_of(each.at) for each in layout.accelerators]
    return {f"GPU{number}": (layout.numa[node].cpus or "N/A", str(node)) for number, node in enumerate(nodes)}


def matrix(layout: HostLayout) -> str:
    """Return the rows of the matrix."""
    joined, near = connections(layout), affinities(layout)
    rows = [["", *joined, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]]
    for name, others in joined.items():
        cells = [" X " if each == "X" else each for each in others.values()]
        affinity = (*near[name], "", "N/A") if name in near else _NO_AFFINITY
        rows.append([name, *cells, *affinity])
    return "\n".join("\t".join(row) for row in rows)


def described(routes: HostRoutes) -> str:
    """Return the matrix, its legends, and the way of each rank's data to each of its NICs."""
    layout = routes.layout
    users = {device: "; ".join(routes.users(device)) for device in range(len(layout.devices))}
    return "\n".join(
        [
            matrix(layout),
            "",
            "Legend:",
            "",
            *(f"  {sign:<4} = {meaning}" for sign, meaning in MEANINGS.items()),
            "",
            "NIC Legend:",
            "",
            *(f"  NIC{device}: {of or 'no rank'}" for device, of in users.items()),
            "",
            "Ways of data to be sent:",
            "",
            *(f"  {line}" for rank in range(routes.ranks) for line in _ways(routes, rank)),
        ]
    )


def as_dict(routes: HostRoutes) -> dict[str, Any]:
    """Return the same as plain values.

    `connections` by row and column; `cpus` and `numa` of accelerators; `routes` by rank and number of a NIC, each with
    its device, distance, whether it is `staged` in host memory, the links that data to be sent cross, and `rate_bps`,
    the rate at which they can (None: unlimited).
    """
    near = affinities(routes.layout)
    return {
        "connections": connections(routes.layout),
        "cpus": {name: cpus for name, (cpus, _) in near.items()},
        "numa": {name: int(node) for name, (_, node) in near.items()},
        "routes": [[_route(route) for route in of_rank] for of_rank in routes.routes],
    }


def _route(route: Route) -> dict[str, Any]:
    return {
        "device": f"NIC{route.device}",
        "distance": route.distance.name,
        "staged": route.is_staged,
        "links": [link.name for link in route.fetched],
        "rate_bps": route.rate_bps,
    }


def _ways(routes: HostRoutes, rank: int) -> list[str]:
    lines = []
    for number, route in enumerate(routes.routes[rank]):
        how = "by way of host memory" if route.is_staged else "direct" if routes.layout.accelerators else "from memory"
        bound = ""
        if route.slowest is not None and route.rate_bps is not None:
            bound = f", at most {format_rate(route.rate_bps)} ({route.slowest.name})"
        lines.append(f"rank {rank}, NIC {number}: NIC{route.device}, {route.distance.name}, {how}{bound}")
    return lines
