"""Kueue's Topology (topology-aware scheduling), with Kubernetes' nodes and their labels.

Source: Kueue's documentation, docs/concepts/topology.md and topology_aware_scheduling.md: `spec.levels` name labels of
nodes from the highest level to the lowest, `kubernetes.io/hostname` only as the last; labels need not be unique over
domains of a higher level. Nodes are as `kubectl get nodes -o yaml` prints them: a List, or documents of kind Node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.errors import BadInputError
from weft.quantities.units import shown
from weft.quantities.yaml_files import read_yaml
from weft.scheduling.cluster import WHOLE, Cluster, level_of
from weft.scheduling.imports.hostlists import MOST_NAMES

HOSTNAME = "kubernetes.io/hostname"
_GROUP = "kueue.x-k8s.io/"
_MOST_LEVELS = 16
_MOST_NODES = 400_000
"""Keys and values of a file of nodes."""
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")


def read_kueue(
    topology: Path, topology_text: str, nodes: Path, nodes_text: str, accelerators_per_host: int | None
) -> Cluster:
    """Return the cluster of a Topology and nodes; at its highest level, jobs may span domains, as in Kueue.

    Nodes without all labels take no jobs, nor do those that are unschedulable. Raises BadInputError.
    """
    labels = _levels(topology, topology_text)
    places: list[tuple[str, ...]] = []
    names: dict[str, str] = {}
    gpus: dict[int, str] = {}
    left_out = 0
    for place, node in _nodes(nodes, nodes_text):
        name, own = _name_and_labels(place, node, labels)
        if own is None:
            left_out += 1
            continue
        if name in names:
            raise BadInputError(f"node {name} is described twice, first at {names[name]}", place=place)
        names[name] = place
        if len(names) > MOST_NAMES:
            raise BadInputError("too many nodes", place=place, valid=f"up to {MOST_NAMES:,}")
        places.append(own)
        if accelerators_per_host is None:
            gpus.setdefault(_gpus(place, node), place)
    if not names:
        raise BadInputError("no node has all labels of the topology", place=nodes, valid=labels)
    if len(gpus) > 1:
        (few, first), (more, second) = sorted(gpus.items())[:2]
        raise BadInputError(
            f"nodes have {few} GPUs ({first}) and {more} ({second})",
            place=nodes,
            valid="as many for all, or accelerators_per_host",
        )
    levels = [
        level_of(
            labels[depth],
            [own[: depth + 1] for own in places],
            {own[: depth + 1]: "/".join(own[: depth + 1]) for own in places},
        )
        for depth in range(len(labels) - 1, -1, -1)
    ]
    levels.append(level_of(WHOLE, [WHOLE] * len(places)))
    notes = (
        [f"{left_out} nodes lack a label of the topology, or are unschedulable: they take no jobs."] if left_out else []
    )
    return Cluster(tuple(names), accelerators_per_host or next(iter(gpus)), tuple(levels), notes=tuple(notes))


def _levels(path: Path, text: str) -> list[str]:
    """Return the labels of the levels above hosts, the highest first."""
    found = [
        (place, tree)
        for place, tree in _documents(path, text)
        if isinstance(tree, Mapping) and tree.get("kind") == "Topology"
    ]
    if len(found) != 1:
        raise BadInputError(f"has {len(found)} objects of kind Topology", place=path, valid="one")
    place, tree = found[0]
    version = tree.get("apiVersion")
    if not isinstance(version, str) or not version.startswith(_GROUP):
        raise BadInputError(
            f"apiVersion {shown(version)} is not Kueue's", place=place, valid=f"{_GROUP}v1beta1 and others"
        )
    spec = tree.get("spec")
    levels = spec.get("levels") if isinstance(spec, Mapping) else None
    if not isinstance(levels, Sequence) or isinstance(levels, str) or not 1 <= len(levels) <= _MOST_LEVELS:
        raise BadInputError("is no list of levels", place=f"{place}: spec.levels", valid=f"1 to {_MOST_LEVELS} levels")
    labels: list[str] = []
    for number, level in enumerate(levels):
        own = f"{place}: spec.levels[{number}]"
        label = level.get("nodeLabel") if isinstance(level, Mapping) else None
        if not isinstance(label, str) or not label:
            raise BadInputError("has no nodeLabel", place=own, valid="the key of a label")
        if label in labels:
            raise BadInputError(f"{label} is two levels", place=own, valid="each label once")
        if label == HOSTNAME and number + 1 < len(levels):
            raise BadInputError(f"{HOSTNAME} is not the last level", place=own, valid="only as the last")
        labels.append(label)
    above = [label for label in labels if label != HOSTNAME]
    if not above:
        raise BadInputError(f"has no level above {HOSTNAME}", place=f"{place}: spec.levels", valid="racks, say")
    return above


def _documents(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yield the documents of a file, which lines of --- part, with their places."""
    begin, part = 1, list[str]()
    for number, line in enumerate([*text.splitlines(), "---"], 1):
        if line.rstrip() == "---":
            if any(each.strip() and not each.lstrip().startswith("#") for each in part):
                yield f"{path}:{begin}", read_yaml("\n".join(part), f"{path}, from line {begin}", _MOST_NODES)
            begin, part = number + 1, []
        else:
            part.append(line)


def _nodes(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for place, tree in _documents(path, text):
        is_list = isinstance(tree, Mapping) and tree.get("kind") in ("List", "NodeList")
        items = tree.get("items") if is_list else tree if isinstance(tree, list) else [tree]
        if not isinstance(items, list):
            raise BadInputError("has no items", place=place, valid="a list of nodes")
        for number, node in enumerate(items):
            own = place if items == [tree] else f"{place}: items[{number}]"
            if not isinstance(node, Mapping) or node.get("kind", "Node") != "Node":
                raise BadInputError("is no node", place=own, valid="kind: Node")
            yield own, node


def _name_and_labels(place: str, node: Mapping[str, Any], labels: Sequence[str]) -> tuple[str, tuple[str, ...] | None]:
    """Return a node's name and its labels; None for the labels if it takes no jobs."""
    about = node.get("metadata")
    name = about.get("name") if isinstance(about, Mapping) else None
    if not isinstance(about, Mapping) or not isinstance(name, str) or not name:
        raise BadInputError("has no name", place=f"{place}: metadata.name")
    own = about.get("labels") or {}
    if not isinstance(own, Mapping):
        raise BadInputError("is no mapping", place=f"{place}: metadata.labels", valid="labels with their values")
    spec = node.get("spec") or {}
    if isinstance(spec, Mapping) and spec.get("unschedulable") is True:
        return name, None
    values = [own.get(label) for label in labels]
    for label, value in zip(labels, values, strict=True):
        if value is not None and not isinstance(value, str):
            raise BadInputError(f"{shown(value)} is no text", place=f"{place}: metadata.labels.{label}", valid="a text")
    return name, tuple(map(str, values)) if all(values) else None


def _gpus(place: str, node: Mapping[str, Any]) -> int:
    status = node.get("status")
    allocatable = status.get("allocatable") if isinstance(status, Mapping) else None
    if isinstance(allocatable, Mapping):
        for name in _GPUS:
            value = str(allocatable.get(name, ""))
            if value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= 1024:
                return int(value)
    raise BadInputError(
        "has no allocatable GPUs",
        place=f"{place}: status.allocatable",
        valid=f"{' or '.join(_GPUS)}, 1 to 1024; or accelerators_per_host in the scenario",
    )
