"""A strict reader of the exposition format, and the hosts of a virtual fabric."""

from __future__ import annotations

import re

from weft.clocks.virtual.lab import VirtualLab
from weft.run.fabric import Fabric
from weft.traffic.host import Host

SAMPLE = re.compile(r"([a-z_:][a-z0-9_:]*)(?:\{(.*)\})? (\S+)\Z")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\.)*)"(?:,|\Z)')
ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


SUFFIXES = {
    "counter": [""],
    "gauge": [""],
    "summary": ["_sum", "_count"],
    "histogram": ["_bucket", "_sum", "_count"],
}


def parsed(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Read the exposition format strictly: each family once, with help and type before its samples."""
    found, described, kind = {}, [], ""
    assert text == "" or text.endswith("\n")
    lines = iter(text.split("\n")[:-1])
    for line in lines:
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in described
            described.append(name)
            kind = next(lines).removeprefix(f"# TYPE {name} ")
            assert kind in SUFFIXES
            assert (kind == "counter") == name.endswith("_total")
            continue
        match = SAMPLE.match(line)
        assert match, line
        assert match[1] in {described[-1] + suffix for suffix in SUFFIXES[kind]}
        labels = match[2] or ""
        pairs = [(each[1], re.sub(r"\\.", lambda m: ESCAPES[m[0]], each[2])) for each in LABEL.finditer(labels)]
        assert "".join(each[0] for each in LABEL.finditer(labels)) == labels
        key = match[1], frozenset(pairs)
        assert key not in found
        found[key] = float(match[3])
    return found


def hosts_of(fabric: Fabric) -> dict[str, Host]:
    assert isinstance(fabric.lab, VirtualLab)
    return {endpoint.name: endpoint.host for endpoint in fabric.lab._endpoints}
