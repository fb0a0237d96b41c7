"""Slurm's topology/tree: the lowest switch that can satisfy a job, and below it best fit by leaves.

Source: doc/html/topology.shtml of Slurm ("identify the lowest level switch in the hierarchy that can satisfy a job's
request and then allocate resources on its underlying leaf switches using a best-fit algorithm") and
src/plugins/topology/tree/eval_nodes_tree.c. Jobs are backfilled, as by Slurm's default (sched/backfill).
"""

from __future__ import annotations

from weft.scheduling.placement import Placement, Room
from weft.scheduling.policy import Policy, Wish, best_fit, fewest_domains, hosts_in, in_domains


def _lowest_switch(room: Room, wish: Wish) -> Placement | None:
    leaf = room.cluster.levels[0]
    highest = len(room.cluster.levels)
    if (
        wish.is_required
        and room.need.hosts(room.cluster.accelerators_per_host) <= room.cluster.levels[wish.level].sizes.max()
    ):
        highest = wish.level + 1
    for level in room.cluster.levels[:highest]:
        domains = room.fits(level)
        if len(domains):
            hosts = hosts_in(room, level, best_fit(room.of_domains(level), domains, room.count))
            return room.placement(in_domains(room, leaf, hosts, fewest_domains(room, leaf, hosts)))
    return None


KIND = Policy("slurm-tree", "EASY backfill, under the lowest switch that suffices", "easy", _lowest_switch, True)
