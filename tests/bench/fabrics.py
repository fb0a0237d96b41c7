"""Fabrics under test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ruamel.yaml

from weft.bench.subject import Subject, read_subject

LEAF_SPINE = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 5, "host_rate": "100Gb/s", "delay": "500ns"}
LOSSLESS = {"int": False, "mtu": 4096, "transport": {"congestion_control": "dcqcn"}, "pfc": {"classes": [3]}}
RAILS = {
    "planes": 1,
    "leaves": 4,
    "spines": 2,
    "hosts_per_leaf": 3,
    "ranks_per_host": 4,
    "rail_optimised": True,
    "host_rate": "100Gb/s",
}
PLANES = {"planes": 4, "leaves": 2, "spines": 2, "hosts_per_leaf": 5, "host_rate": "100Gb/s"}


def subject(folder: Path, fabric: dict[str, Any], **keys: Any) -> Subject:
    """Return a fabric as `weft bench` reads it."""
    return read_subject(written(folder, fabric, **keys))


def written(folder: Path, fabric: dict[str, Any], **keys: Any) -> Path:
    """Return the file of a fabric."""
    path = folder / "fabric.yaml"
    with path.open("w", encoding="utf-8") as file:
        ruamel.yaml.YAML().dump({"name": "under-test", "fabric": fabric, **keys}, file)
    return path
