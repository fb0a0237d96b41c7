"""The classes of users that a scenario names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from topologies import FabricSpec
from traffic.class_reference import is_class_reference
from traffic.extensions import ClassSpec, TrafficPattern, flows_of, make
from weft.scenario import CollectiveTraffic, PatternTraffic, Scenario
from weft.told_errors import told_as_weft_errors


@told_as_weft_errors()
def make_pattern(traffic: PatternTraffic) -> TrafficPattern:
    """Make the pattern that a scenario's traffic names. BadInputError: it cannot be used."""
    spec = ClassSpec(traffic.pattern, traffic.parameters)
    return make(spec, TrafficPattern)  # type: ignore[type-abstract]


@told_as_weft_errors()
def check_extensions(scenario: Scenario, topology: FabricSpec) -> None:
    """Check all classes that a scenario names, and the flows of its patterns, before anything is built.

    Raises:
        BadInputError: one cannot be used; says which and why.
    """
    flows = [traffic for traffic in scenario.traffic if not isinstance(traffic, CollectiveTraffic)]
    for number, traffic in enumerate(flows):
        if isinstance(traffic, PatternTraffic):
            flows_of(make_pattern(traffic), topology, scenario.seed, number)


def extension_hashes(scenario: Scenario) -> dict[str, str]:
    """Return the content (SHA-256) of each file whose classes a scenario names."""
    files = {reference.rpartition(":")[0] for reference in _references(scenario.model_dump(mode="json"))}
    return {file: hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in sorted(files)}


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if is_class_reference(value):
            yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _references(each)
