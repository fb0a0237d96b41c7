"""Every kind of topology in virtual time, under every kind of routing that it can have: verified all-reduces."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_fabrics import EXAMPLES, routings_of, scenario_of

from weft.controller.routing import ROUTING_KINDS
from weft.run.runner import run_scenario
from weft.scenario import load_scenario
from weft.topologies.kinds import TOPOLOGY_KINDS

CASES = [pytest.param(path, routing, id=f"{path.stem}-{routing}") for path in EXAMPLES for routing in routings_of(path)]


def test_every_kind_has_an_example_of_8_to_16_hosts() -> None:
    sections = [load_scenario(path).fabric for path in EXAMPLES]
    assert {section.kind for section in sections} == set(TOPOLOGY_KINDS)
    assert all(8 <= section.host_count <= 16 for section in sections)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_names_a_routing_that_its_fabric_can_have(path: Path) -> None:
    assert load_scenario(path).routing.kind in routings_of(path)


@pytest.mark.parametrize(("path", "routing"), CASES)
def test_all_reduces_are_right_and_every_packet_arrives(path: Path, routing: str) -> None:
    result = run_scenario(scenario_of(path, "virtual", routing))
    assert result.ok
    assert result.collectives
    assert all(each.wrong == 0 and each.identical for each in result.collectives)
    assert result.drops == {}
    # Ways through several intermediates differ in length, and what a packet overtakes is sent again by go-back-N.
    if ROUTING_KINDS[routing].intermediates is None:
        assert result.retransmissions == 0
