"""Services of switches over real interfaces, with packets lost and duplicated on the way."""

import pytest

from weft.results.parameter_stores import PARAMETER_STORES
from weft.results.synchronisation import BARRIERS, COUNTERS
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario


@pytest.mark.parametrize("ip_version", [4, 6])
def test_barriers_and_counters_are_exact_in_mininet(ip_version):
    tree = {
        "clock": "real",
        "dilation": 1000,
        "ip_version": ip_version,
        "fabric": {
            "leaves": 2,
            "spines": 1,
            "hosts_per_leaf": 2,
            "planes": 1,
            "host_rate": "10Gb/s",
            "delay": "1us",
        },
        "services": ["synchronisation"],
        "faults": {"loss": 0.02, "duplicate": 0.02},
        "traffic": [
            {"barrier": 20},
            {"counter": 20, "outstanding": 4},
            {"counter": 5, "operation": "compare_and_swap"},
        ],
    }
    result = run_scenario(parse_scenario(tree, "test"))
    (barrier,) = result.of(BARRIERS)
    added, swapped = result.of(COUNTERS)
    assert (barrier.rounds, barrier.ranks, barrier.early) == (20, 4, 0)
    assert (added.additions, added.wrong, swapped.additions, swapped.wrong) == (80, 0, 20, 0)


def test_a_parameter_store_and_its_cache_are_exact_in_mininet():
    tree = {
        "clock": "real",
        "dilation": 1000,
        "fabric": {
            "leaves": 2,
            "spines": 1,
            "hosts_per_leaf": 2,
            "planes": 1,
            "host_rate": "10Gb/s",
            "delay": "1us",
        },
        "services": ["parameter_cache"],
        "faults": {"loss": 0.02, "duplicate": 0.02},
        "traffic": [{"parameter_store": 3, "blocks": 10, "cached": 8, "requests": 40, "pushes": 0.1}],
    }
    (found,) = run_scenario(parse_scenario(tree, "test")).of(PARAMETER_STORES)
    assert (found.pulls + found.pushes, found.stale, found.wrong) == (120, 0, 0)
    assert found.hits > 0
