"""Items of a scenario's traffic: what all kinds of them share, and which kinds there are."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

from weft.quantities.units import shown
from weft.registry import modules_of
from weft.scenario.places import KeyProblem
from weft.scenario.values import Name, OfAnyKind, Section
from weft.topologies.kinds.base import TopologySection
from weft.traffic.collectives import algorithm_names, collectives

KINDS_PACKAGE = "weft.run.traffic_kinds"
"""Every module of it may define a kind. They say how they run, too, so they stand above scenarios."""

CollectiveName = Annotated[str, Name("collective", collectives, or_class=True)]
AlgorithmName = Annotated[str, Name("algorithm", algorithm_names)]

FLOW_DATA = ("zeros", "lengths")
FlowData = Literal["zeros", "lengths"]
"""What flows carry: bytes, all of them zero, or only the number of bytes, for large runs in virtual time."""


class TrafficSection(Section):
    """An item of the traffic. The key that is called as its kind tells it from others."""

    kind: ClassVar[str]

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check what no single key shows. Raises KeyProblem for a key below `key`, the item's own."""


@cache
def traffic_kinds() -> Mapping[str, type[TrafficSection]]:
    """Return the sections of all kinds by name: classes with a `kind` that the modules of `KINDS_PACKAGE` define."""
    found = {}
    for module in modules_of(KINDS_PACKAGE):
        for value in vars(module).values():
            if inspect.isclass(value) and issubclass(value, TrafficSection) and "kind" in vars(value):
                found[value.kind] = value
    return dict(sorted(found.items()))


def kind_of_item(item: Mapping[Any, Any], key: str) -> type[TrafficSection]:
    """Return the section that an item of the traffic is by its keys. Raises KeyProblem for `key`, the item's own."""
    kinds = [kind for kind in traffic_kinds() if kind in item]
    if len(kinds) != 1:
        keys = shown(", ".join(map(str, item)))
        raise KeyProblem(key, f"needs exactly one of {', '.join(traffic_kinds())}; has keys {keys}")
    return traffic_kinds()[kinds[0]]


def _item_of(value: object) -> TrafficSection:
    if isinstance(value, TrafficSection):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping, is {shown(value)}")
    try:
        return kind_of_item(value, "the item").model_validate(dict(value))
    except KeyProblem as problem:
        raise ValueError(str(problem)) from None


Traffic = Annotated[TrafficSection, OfAnyKind(_item_of, lambda: traffic_kinds().values())]
