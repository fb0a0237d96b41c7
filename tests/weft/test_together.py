"""Items that run beside each other: when they begin, what they share, and what is refused."""

import numpy as np
import pytest

from tests.weft.scenario_mutations import TRAFFIC
from weft import Fabric, Flow
from weft.errors import BadInputError
from weft.results.collectives import COLLECTIVES
from weft.results.flows import FLOWS
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.run.traffic_kinds.base import JoinableItem
from weft.scenario import TRAFFIC_KINDS, parse_scenario
from weft.topologies import leaf_spine

FABRIC = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2}
REDUCTION = {"collective": "allreduce", "algorithms": ["ring"], "sizes": [262144]}
INCAST = {"incast": "h0", "bytes_per_sender": 262144}
# On links this slow few flows start.
LONG_WORKLOAD = {"workload": {"flow_sizes": "websearch", "load": 0.9, "duration": "2ms"}}


def run(*traffic):
    return run_scenario(parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": list(traffic)}))


def test_items_begin_when_they_are_to_and_slow_each_other_down():
    alone = run(REDUCTION, INCAST)
    beside = run({"together": [REDUCTION, INCAST | {"at": "20us"}]})
    reduction, incast = beside.phases
    assert incast.start_ps - reduction.start_ps == 20_000_000
    assert incast.start_ps < reduction.end_ps
    for kind in (COLLECTIVES, FLOWS):
        assert beside.of(kind)[0].time_ps > alone.of(kind)[0].time_ps
    assert beside.of(COLLECTIVES)[0].wrong == 0
    assert beside.of(COLLECTIVES)[0].verified


def test_items_that_share_no_link_do_not_notice_each_other():
    with Fabric(leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=4), clock="virtual") as fabric:
        first, second = [Flow(0, 1, 100_000)], [Flow(2, 3, 100_000)]
        alone = fabric.run_flows("alone", first)
        tasks = [fabric.tasks.flows("first", first), fabric.tasks.flows("second", second).at(1_000_000)]
        results = fabric.run_together(tasks)
    assert [each.time_ps for each in results] == [alone.time_ps] * 2


def test_an_item_may_be_over_before_another_begins():
    result = run({"together": [INCAST | {"bytes_per_sender": 1000}, REDUCTION | {"at": "1ms"}]})
    incast, reduction = result.phases
    assert incast.end_ps < reduction.start_ps == incast.start_ps + 1_000_000_000


@pytest.mark.parametrize("kind", [each for each in TRAFFIC_KINDS if issubclass(TRAFFIC_KINDS[each], JoinableItem)])
def test_every_kind_that_can_runs_beside_another(kind):
    item = TRAFFIC[kind] if kind != "workload" else LONG_WORKLOAD
    result = run({"together": [item, INCAST]})
    assert result.ok
    assert len(result.phases) == 2
    assert min(each.end_ps - each.start_ps for each in result.phases) > 0


def test_an_item_that_begins_late_has_its_time():
    """The limit of 300 s counts from an item's own start."""
    result = run({"together": [INCAST, INCAST | {"at": "400s"}]})
    assert result.phases[1].start_ps >= 400 * 10**12


@pytest.mark.parametrize(
    ("item", "what"),
    [
        ({"together": []}, r"traffic\[0\].together: \[\] is not valid"),
        (
            {"together": [{"incas": "h0"}]},
            r"together\[0\]\.incas: is no kind of traffic; did you mean 'incast'",
        ),
        ({"together": [{"together": [INCAST]}]}, r"together\[0\]: together only runs alone"),
        ({"together": [INCAST | {"incast": "h9"}]}, r"traffic\[0\].together\[0\].incast: no host 'h9'"),
        ({"together": [INCAST | {"at": -1}]}, r"traffic\[0\].together\[0\].at"),
        (INCAST | {"at": 5}, r"traffic\[0\].at: is for items of together"),
        (
            {"together": [REDUCTION | {"algorithms": None}]},
            "together.0..algorithms: together with other items",
        ),
        (
            {"together": [REDUCTION | {"sizes": [64, 128]}]},
            "together.0..sizes: together with other items there must be one",
        ),
        ({"together": [REDUCTION | {"repetitions": 2}]}, "together.0..repetitions: .* runs once"),
        (
            {"together": [{"inacst": "h0"}]},
            r"together\[0\]\.inacst: is no kind of traffic; did you mean 'incast'",
        ),
        ({"together": [INCAST | {"bytes": 4}]}, "unknown key 'traffic.0..together.0..bytes'"),
    ],
)
def test_what_cannot_run_beside_others_is_refused(item, what):
    with pytest.raises(BadInputError, match=what):
        parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": [item]})


def test_tasks_that_cannot_run_together_are_refused():
    buffers = [np.zeros(64, np.int32)] * 4
    with Fabric(leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2), clock="virtual") as fabric:
        repeated = fabric.tasks.collective(CollectiveRequest("allreduce", buffers, repetitions=2))
        in_network = fabric.tasks.collective(CollectiveRequest("allreduce", buffers, "in-network"))
        for tasks, what in (
            ([], "nothing"),
            ([repeated], "several times"),
        ):
            with pytest.raises(BadInputError, match=what):
                fabric.run_together(tasks)
        # Nothing was left behind: the next run works.
        assert fabric.run_together([in_network])[0].ok
