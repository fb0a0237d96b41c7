"""Kueue's topology-aware scheduling: from the level that is asked for upwards, and down again with few domains.

Source: docs/concepts/topology_aware_scheduling.md of Kueue and findLevelWithFitDomains in
pkg/cache/scheduler/tas_flavor_snapshot.go (its best-fit algorithm). Waiting jobs that do not fit hold up no later ones
(BestEffortFIFO, the default of a ClusterQueue).
"""

from __future__ import annotations

import numpy as np

from weft.scheduling.placement import Placement, Room
from weft.scheduling.policy import Policy, Wish, best_fit, fewest_domains, hosts_in, in_domains


def _level_by_level(room: Room, wish: Wish) -> Placement | None:
    levels = room.cluster.levels
    fewest = room.need.hosts(room.cluster.accelerators_per_host)
    for number in range(wish.level, len(levels)):
        domains = room.fits(levels[number])
        if len(domains):
            return _descend(room, number, best_fit(room.of_domains(levels[number]), domains, room.count))
        if number == wish.level and wish.is_required and fewest <= levels[number].sizes.max():
            return None
    return None


def _descend(room: Room, number: int, domain: int) -> Placement:
    """Return the placement in a domain of a level: at each level below, in as few domains as hold it."""
    hosts = hosts_in(room, room.cluster.levels[number], domain)
    for level in reversed(room.cluster.levels[:number]):
        chosen = fewest_domains(room, level, hosts)
        hosts = np.concatenate([hosts[level.of_host[hosts] == each] for each in chosen])
    leaf = room.cluster.levels[0]
    return room.placement(in_domains(room, leaf, hosts, dict.fromkeys(leaf.of_host[hosts].tolist())))


KIND = Policy(
    "kueue", "whichever fits, in the fewest domains from the wanted level up", "best-effort", _level_by_level, True
)
