"""The switches' counters, each part from the process that serves it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weft.clocks.virtual.processes import Processes, of_all
from weft.switch.daemon.stats import SwitchesStats
from weft.topologies import FabricSpec

_OF_HOST = ("uplink", "uplink_link")
"""Parts of a port that are in its host's partition."""


def stats_of_all(
    fabric: FabricSpec, local: SwitchesStats, owners: Mapping[str, int], processes: Processes
) -> SwitchesStats:
    """Return the counters of all processes: `local` are this process's counters, `owners` the process of each node."""
    if processes.count == 1:
        return local
    of_host_ports = {
        (switch.name, str(port.number)): port.peer.node for switch in fabric.switches for port in switch.host_ports
    }

    def served_here() -> Iterator[tuple[tuple[str, ...], Any]]:
        for name, stats in local["switches"].items():
            if owners[name] == processes.number:
                yield (name,), stats
        for (name, number), host in of_host_ports.items():
            if owners[host] == processes.number:
                port: Mapping[str, Any] = local["switches"][name]["ports"][number]
                yield (name, number), {part: port[part] for part in _OF_HOST if part in port}

    found = [item for each in of_all(processes, "the switches' counters", list(served_here())) for item in each]
    switches: dict[str, Any] = {place[0]: stats for place, stats in found if len(place) == 1}
    for place, parts in found:
        if len(place) > 1:
            switches[place[0]]["ports"][place[1]].update(parts)
    return {**local, "switches": {name: switches[name] for name in local["switches"]}}
