"""The fabric of ranks that name no scenario."""

from __future__ import annotations

from importlib import resources
from typing import Any

from weft.quantities.readable import counted
from weft.quantities.yaml_files import read_mapping
from weft.scenario import Scenario, parse_scenario

HOST_RATE, FABRIC_RATE = "400Gb/s", "800Gb/s"


def default_scenario(rank_count: int) -> Scenario:
    """Return the scenario that `weft init` writes, at 400 Gb/s and with as many hosts as ranks, without its traffic.

    Its leaves have equally many hosts, at most as many as there: the largest divisor of the ranks that leaves two
    leaves, so that ranks also meet over a spine.
    """
    return parse_scenario(_tree(rank_count), "the default fabric", units_required=True)


def description(rank_count: int) -> str:
    """Return in words how large that fabric is."""
    fabric = _tree(rank_count)["fabric"]
    return (
        f"{counted(rank_count, 'host')} at {HOST_RATE}, {fabric['hosts_per_leaf']} below each of "
        f"{counted(fabric['leaves'], 'leaf', 'leaves')}, {counted(fabric['spines'], 'spine')}"
    )


def _tree(rank_count: int) -> dict[str, Any]:
    with resources.as_file(resources.files("weft").joinpath("templates/scenario.yaml")) as path:
        tree = read_mapping(path, "the default fabric")
    del tree["traffic"]
    # Marking begins at depths that grow with the rate; so must the memory of ports, as it does by default.
    del tree["fabric"]["queue_capacity"]
    most = min(tree["fabric"]["hosts_per_leaf"], max(1, rank_count // 2))
    hosts = max(each for each in range(1, most + 1) if rank_count % each == 0)
    tree["name"] = "default"
    tree["fabric"] |= {
        "leaves": rank_count // hosts,
        "hosts_per_leaf": hosts,
        "host_rate": HOST_RATE,
        "fabric_rate": FABRIC_RATE,
    }
    return tree
