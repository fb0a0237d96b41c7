"""Every kind of topology in Mininet under its own routing, and every general kind of routing: verified all-reduces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from example_fabrics import EXAMPLES, example, routings_of, scenario_of

from rail_sum import RANKS_OF_A_RAIL, mates
from weft import Fabric
from weft.controller.features.kind import DEFAULT_ROUTING
from weft.errors import BadInputError, EnvironmentLacksError
from weft.run.runner import run_scenario
from weft.scenario import load_scenario
from weft.scenario.parsing import read_mapping
from weft.topologies.kinds.rail_only import rail_only

pytestmark = [pytest.mark.mininet, pytest.mark.slow]
RAILS = example("rail_only")
THREE_TIERS = example("three_tiers")
FEWEST_HOSTS = {"pods": 2, "leaves": 1, "spines": 1, "hosts_per_leaf": 2}
"""Of three tiers with a leaf that two hosts share: k-ary fat trees, of the same kind, run as the example has them."""
RAIL_SUM = f"{Path(__file__).parent / 'rail_sum.py'}:RailSum"
GENERAL = example("file")
"""A graph without structure: kinds of routing that can do with it are for any fabric, so they run on this one."""


OTHERS = [
    (example("torus"), DEFAULT_ROUTING),
    (example("dragonfly"), DEFAULT_ROUTING),
    (example("dragonfly"), "dragonfly_ugal"),
]
"""Real time is long: what is left out here runs in tests/topologies/test_examples.py."""


def _cases() -> list[tuple[Path, str]]:
    own = [(path, load_scenario(path).routing.kind) for path in EXAMPLES]
    chosen = [case for case in own if case[0] not in (RAILS, GENERAL)]
    return [*chosen, *OTHERS, *((GENERAL, each) for each in routings_of(GENERAL))]


@pytest.mark.parametrize(
    ("path", "routing"), [pytest.param(*case, id=f"{case[0].stem}-{case[1]}") for case in _cases()]
)
def test_all_reduces_are_right(path: Path, routing: str) -> None:
    sections = {}
    if path == THREE_TIERS:
        sections["fabric"] = read_mapping(path, "scenario")["fabric"] | FEWEST_HOSTS
    result = run_scenario(scenario_of(path, "real", routing, **sections))
    assert result.ok
    assert all(each.wrong == 0 and each.identical for each in result.collectives)
    assert {each.algorithm for each in result.collectives} >= {"ring", "in-network"}


def test_rails_alone_reduce_along_each_and_ranks_of_a_host_are_refused() -> None:
    """Links inside hosts exist under the virtual clock; without them a rail reaches itself alone."""
    section = load_scenario(RAILS).fabric
    with pytest.raises(EnvironmentLacksError, match="scale_up"):
        run_scenario(scenario_of(RAILS, "real", "shortest_paths"))
    buffers = [np.arange(1024, dtype=np.int32) << rank for rank in range(2 * RANKS_OF_A_RAIL)]
    fabric = rail_only(rails=2, hosts_per_leaf=RANKS_OF_A_RAIL, host_rate_bps=section.host_rate)
    with Fabric(fabric, clock="real", dilation=1000) as lab:
        run = lab.collective(RAIL_SUM, buffers, "everybody")
        assert run.result.ok
        for rank, reduced in enumerate(run.buffers):
            assert np.array_equal(reduced, sum(buffers[mate] for mate in mates(rank)))
        with pytest.raises(BadInputError, match="h0 and h4 have no path in plane 0"):
            lab.incast("h0", 4096)
