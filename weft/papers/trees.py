"""Parts of scenarios that studies have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.paths import PACKAGE

SPRAYED_SWIFT: Mapping[str, Any] = {
    "congestion_control": "swift",
    "retransmission": "selective-repeat",
    "path": "spray",
    "ack_interval": 4,
}


def virtual(name: str, **keys: Any) -> dict[str, Any]:
    """Return a scenario under the virtual clock with seed 1, without INT."""
    return {"name": name, "clock": "virtual", "seed": 1, "int": False, **keys}


def listed_flows(flows: Iterable[Sequence[float]]) -> dict[str, Any]:
    """Return an item of the traffic: flows [source, destination, bytes] or with a start in us."""
    return {
        "pattern": f"{PACKAGE / 'papers' / 'listed_flows.py'}:ListedFlows",
        "parameters": {"flows": [list(each) for each in flows]},
    }


def star(hosts: int, rate: str, delay: str = "1us", **keys: Any) -> Mapping[str, Any]:
    """Return a fabric of one switch."""
    return {
        "planes": 1,
        "leaves": 1,
        "spines": 0,
        "hosts_per_leaf": hosts,
        "host_rate": rate,
        "delay": delay,
        **keys,
    }
