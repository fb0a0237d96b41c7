"""`auto`: the algorithm that is predicted to be the fastest, and what is said of the choice."""

import numpy as np
import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft import BadInputError, Fabric, topologies
from weft.cli import weft
from weft.errors import CheckFailedError
from weft.run.algorithms import objections
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.run.spec import fabric_run_spec
from weft.run.tuner import Point, Question, Tuner, between, extended
from weft.scenario import FidelitySection, RoutingSection, parse_scenario
from weft.scenario.tenants import TenantSection
from weft.topologies import with_scale_up
from weft.topologies.kinds.torus import torus
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.costs import Cost
from weft.traffic.training import Layer, TrainingStep

WITHIN = 1.1
"""How much longer than the fastest algorithm the chosen one may take."""
RATE_BPS = 100e9


def two_tiers(**arguments):
    return topologies.leaf_spine(leaves=2, spines=2, hosts_per_leaf=4, host_rate_bps=RATE_BPS, **arguments)


FABRICS = {
    "one plane": two_tiers(planes=1),
    "two planes": two_tiers(planes=2),
    "six hosts": topologies.leaf_spine(planes=1, leaves=3, spines=1, hosts_per_leaf=2),
    "scale-up": with_scale_up(two_tiers(planes=1), 4, rail_optimised=False),
}


def times_of_all(fabric, collective, size_bytes):
    """How long a collective takes by each algorithm that can run it, and by `auto`."""
    known = COLLECTIVE_KINDS[collective].algorithms
    found = {}
    for name in [each.name for each in known] + ["auto"]:
        try:
            found[name] = fabric.run(CollectiveRequest(collective, size_bytes, name)).result.time_ps
        except BadInputError:
            assert name != "auto"
    return found


@pytest.mark.parametrize(
    "name",
    ["scale-up", *(pytest.param(name, marks=pytest.mark.slow) for name in FABRICS if name != "scale-up")],
)
def test_the_choice_is_about_as_fast_as_the_fastest(name):
    with Fabric(FABRICS[name], clock="virtual", int_telemetry=False) as fabric:
        for collective in ("allreduce", "allgather", "broadcast", "alltoall"):
            for size_bytes in (200, 6000, 100_000):
                found = times_of_all(fabric, collective, size_bytes)
                assert found["auto"] <= WITHIN * min(found.values()), (collective, size_bytes, found)


@pytest.mark.slow
@pytest.mark.parametrize("size_bytes", [4, 1024, 64 << 10, 1 << 20, 64 << 20])
def test_the_choice_among_algorithms_of_hosts_is_as_fast(size_bytes, monkeypatch):
    """Switches reduce faster at every size here, so there is more to choose without them."""
    monkeypatch.setattr("weft.run.algorithms._objection_to_trees", lambda *_: "no trees")
    with Fabric(two_tiers(planes=1), clock="virtual", int_telemetry=False, mtu_bytes=4096) as fabric:
        found = times_of_all(fabric, "allreduce", size_bytes)
        del found["in-network"]
        assert found["auto"] <= WITHIN * min(found.values())


@pytest.mark.parametrize("ranks", [(5, 0, 3), (6, 4, 7, 5)])
def test_a_group_has_a_choice_of_its_own(ranks):
    """Of all ranks but those, and of those in another order, there may be another one."""
    with Fabric(FABRICS["one plane"], clock="virtual", int_telemetry=False) as fabric:
        for collective, size_bytes in (("allreduce", 200), ("allgather", 60_000), ("alltoall", 6000)):
            found = {
                name: fabric.run(CollectiveRequest(collective, size_bytes, name, ranks=ranks)).result.time_ps
                for name in choices(fabric, collective, ranks)
            }
            chosen = fabric.run(CollectiveRequest(collective, size_bytes, "auto", ranks=ranks)).result
            assert chosen.ranks == len(ranks)
            assert chosen.time_ps == found[chosen.choice.algorithm] <= WITHIN * min(found.values())
        inputs = [np.arange(1000, dtype=np.int32)] * len(ranks)
        run = fabric.run(CollectiveRequest("allreduce", inputs, "auto", ranks=ranks))
        assert (run.result.algorithm, run.result.wrong) == ("auto", 0)
        with refused((BadInputError, ValueError), valid="0 to 7", problem="rank 9"):
            fabric.run(CollectiveRequest("allreduce", inputs, "auto", ranks=[*ranks[1:], 9]))


def choices(fabric, collective, ranks):
    found = objections(fabric.topology, COLLECTIVE_KINDS[collective], ranks)
    return [name for name, objection in found.items() if not objection]


def test_a_choice_says_what_and_why():
    with Fabric(FABRICS["one plane"], clock="virtual") as fabric:
        inputs = [np.arange(1000, dtype=np.int32)] * 8
        run = fabric.run(CollectiveRequest("allreduce", inputs, "auto"))
        named = fabric.run(CollectiveRequest("allreduce", inputs, run.result.choice.algorithm))
    choice = run.result.choice
    assert run.result.ok
    assert run.result.algorithm == "auto"
    assert choice.algorithm == "in-network"
    assert choice.runner_up == "recursive-doubling"
    assert choice.predicted_ps == pytest.approx(run.result.time_ps, rel=0.05)
    assert choice.predicted_ps < choice.runner_up_ps
    assert choice.reason.startswith("in-network")
    assert "recursive-doubling" in choice.reason
    assert named.result.time_ps == run.result.time_ps


def test_what_needs_lanes_never_gets_a_graph():
    """Recursive doubling is the fastest of hosts' algorithms here, except that averages and steps cannot have it."""
    step = TrainingStep((Layer(64, 0, 0),), bucket_bytes=1024)
    segments = FidelitySection(segment=65536)
    with Fabric(FABRICS["one plane"], clock="virtual", fidelity=segments, int_telemetry=False) as fabric:
        chosen = {
            operation: fabric.run(CollectiveRequest("allreduce", 256, "auto", operation=operation)).result.choice
            for operation in ("sum", "average")
        }
        trained = fabric.training_step(step, "auto").algorithm
        for run, what in (
            (lambda: fabric.training_step(step, "recursive-doubling"), "a training step"),
            (
                lambda: fabric.run(CollectiveRequest("allreduce", 256, "recursive-doubling", operation="average")),
                "an average",
            ),
        ):
            with pytest.raises(BadInputError, match=f"recursive-doubling has no lanes, which {what} needs"):
                run()
    assert chosen["sum"].algorithm == "recursive-doubling"
    assert "recursive-doubling" not in (chosen["average"].algorithm, trained)


def test_probes_leave_no_trace():
    """What a fabric does and counts is the same whether `auto` or a name chose."""
    scenario = {
        "clock": "virtual",
        "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
        "faults": {"loss": 0.01},
    }

    def results_of(algorithm):
        item = {"collective": "allreduce", "algorithms": [algorithm], "sizes": ["8KiB"]}
        result = run_scenario(parse_scenario(scenario | {"traffic": [item]})).as_dict()
        (collective,) = result["collectives"]
        chosen = collective.pop("choice", None)
        for name in ("phases", "collectives"):
            result[name][0].pop("name" if name == "phases" else "algorithm")
        result.pop("wall_times_s", None)
        return result, chosen

    by_auto, chosen = results_of("auto")
    assert results_of(chosen["algorithm"]) == (by_auto, None)


def test_the_command_prints_the_choice():
    command = "collective broadcast --clock virtual --algorithm auto --algorithm ring --sizes 1K --planes 1"
    result = CliRunner().invoke(weft, command.split())
    assert result.exit_code == 0, result.output
    assert "auto: in-network 1024" in " ".join(result.stdout.split())
    assert "auto, 1024 B: in-network," in result.stdout
    assert "predicted" in result.stdout


def test_a_training_step_chooses_by_its_largest_bucket():
    step = {
        "training_step": "data-parallel",
        "layers": [{"gradients": "4KiB", "forward": "1us", "backward": "1us"}],
        "algorithms": ["auto"],
    }
    fabric = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2}
    result = run_scenario(parse_scenario({"clock": "virtual", "fabric": fabric, "traffic": [step]}))
    assert [each.algorithm for each in result.traffic["training_steps"]] == ["in-network"]


def test_segments_leave_the_switches_out():
    with Fabric(
        FABRICS["one plane"], clock="virtual", fidelity=FidelitySection(segment=65536), int_telemetry=False
    ) as fabric:
        choice = fabric.run(CollectiveRequest("allreduce", 4096, "auto")).result.choice
    assert "in-network" not in (choice.algorithm, choice.runner_up)


def test_a_tenant_s_choice_knows_its_promise():
    tenants = {"blue": TenantSection(bandwidth=0.02)}
    with Fabric(FABRICS["one plane"], clock="virtual", tenants=tenants) as fabric:
        for size_bytes in (100_000, 200):
            found = {
                tenant: fabric.run(CollectiveRequest("allreduce", size_bytes, "auto", tenant=tenant)).result
                for tenant in ("blue", "")
            }
            assert found[""].choice.algorithm == "in-network"
            for each in found.values():
                assert each.choice.predicted_ps == pytest.approx(each.time_ps, rel=0.1)
            slow = fabric.run(CollectiveRequest("allreduce", size_bytes, "in-network", tenant="blue")).result
            assert found["blue"].time_ps <= slow.time_ps
            if size_bytes > 200:
                assert slow.time_ps > 5 * found["blue"].time_ps


def test_an_algorithm_that_has_no_slots_is_left_out():
    """A tenant for whom all slots are set aside has them for its probes, too; for others there are none."""
    tenants = {"blue": TenantSection(slots=4096)}
    reasons = []
    with Fabric(FABRICS["one plane"], clock="virtual", tenants=tenants, progress=reasons.append) as fabric:
        blue, nobody = (
            fabric.run(CollectiveRequest("allreduce", 4096, "auto", tenant=tenant)).result for tenant in ("blue", "")
        )
        with pytest.raises(BadInputError, match="no tenant 'red'; valid: blue"):
            fabric.run(CollectiveRequest("allreduce", 4096, "auto", tenant="red"))
    assert blue.choice.algorithm == "in-network"
    assert "in-network" not in (nobody.choice.algorithm, nobody.choice.runner_up)
    (reason,) = (each for each in reasons if "left out" in each)
    assert reason.startswith("auto: in-network left out: job 1 wants")
    assert "aggregation slots on p0s0 (valid: at most 0" in reason


@pytest.mark.parametrize("kind", ["collective", "training_step"])
def test_an_item_s_choice_is_its_tenant_s(kind):
    items = {
        "collective": {"collective": "allreduce", "sizes": ["4KiB"]},
        "training_step": {
            "training_step": "data-parallel",
            "layers": [{"gradients": "4KiB", "forward": "1us", "backward": "1us"}],
        },
    }
    item = items[kind] | {"algorithms": ["auto"], "tenant": "blue"}
    scenario = {
        "clock": "virtual",
        "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
        "tenants": {"blue": {"slots": 4096}},
        "traffic": [item, {"together": [item, {"permutation": "4KiB"}]}],
    }
    result = run_scenario(parse_scenario(scenario))
    assert result.ok
    results = result.traffic[f"{kind}s"]
    chosen = [found.choice.algorithm if kind == "collective" else found.algorithm for found in results]
    assert chosen == ["in-network"] * 2
    with refused(
        BadInputError,
        place="scenario: traffic[0].tenant",
        valid="leave it out, or give it a share (tenants.blue.share)",
    ):
        parse_scenario(scenario | {"traffic": [item | {"algorithms": ["ring"]}]})


def test_an_algorithm_may_not_be_named_auto(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import weft\nfrom weft.traffic.collectives.allreduce import AllReduce\n"
        "class Mine(AllReduce):\n    name = 'mine'\n    algorithms = (weft.Algorithm('auto', print),)\n"
    )
    with (
        Fabric(FABRICS["six hosts"], clock="virtual") as fabric,
        refused(BadInputError, problem="named 'auto'"),
    ):
        fabric.run(CollectiveRequest(f"{path}:Mine", 4096, "auto"))


def test_algorithms_without_a_cost_are_predicted_by_their_probes(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import weft\nfrom weft.traffic.collectives.allreduce import AllReduce\n"
        "from weft.traffic.schedules.ring import ring_all_reduce\n"
        "from weft.traffic.schedules.tree import tree_all_reduce\n"
        "class Mine(AllReduce):\n    name = 'mine'\n"
        "    algorithms = (weft.Algorithm('one', ring_all_reduce), weft.Algorithm('two', tree_all_reduce))\n"
    )
    monkeypatch.chdir(tmp_path)
    with Fabric(two_tiers(planes=1), clock="virtual", int_telemetry=False) as fabric:
        small, large = (fabric.run(CollectiveRequest("mine.py:Mine", size, "auto")).result for size in (256, 4 << 20))
    assert (small.choice.algorithm, large.choice.algorithm) == ("two", "one")
    assert small.choice.predicted_ps == pytest.approx(small.time_ps, rel=0.05)


# --- what is predicted

MEASURED_PS = {
    "ring": {1 << 20: 362_552_640, 1 << 21: 708_613_120, 1 << 22: 1_402_714_240},
    "tree": {1 << 20: 253_354_560, 1 << 21: 443_579_040, 1 << 22: 1_338_511_680},
}
"""All-reduces of float32 on a torus of 3 × 5 at 100 Gb/s with links of 2 µs."""


@pytest.mark.parametrize(("size_bytes", "within"), [(1 << 21, 0.0), (1_700_000, 0.1)])
def test_links_that_a_ring_s_neighbours_share_are_predicted_as_measured(size_bytes, within):
    """The ring's steps hide the transfer on idle links; three flows on one link show it. The tree is 60 % faster."""
    spec = fabric_run_spec(torus(planes=1, shape=(3, 5), host_rate_bps=RATE_BPS, delay_ps=2_000_000), clock="virtual")

    def probe(_question, algorithm, size_bytes):
        if algorithm not in MEASURED_PS:
            raise CheckFailedError("not asked")
        return MEASURED_PS[algorithm][size_bytes]

    tuner = Tuner(spec.fabric, spec.options, probe, lambda _: None)
    choice = tuner.choose(Question(COLLECTIVE_KINDS["allreduce"], "float32", "sum", 0), size_bytes // 4)
    assert (choice.algorithm, choice.runner_up) == ("tree", "ring")
    ring_ps = MEASURED_PS["ring"][1 << 21] * size_bytes / (1 << 21)
    assert choice.runner_up_ps == pytest.approx(ring_ps, rel=within)


@pytest.mark.slow
@pytest.mark.parametrize("routing", ["shortest_paths", "dimension_order"])
def test_the_choice_over_a_torus_is_about_as_fast_as_the_fastest(routing):
    spec = torus(planes=1, shape=(3, 5), host_rate_bps=RATE_BPS, delay_ps=2_000_000)
    with Fabric(spec, clock="virtual", routing=RoutingSection(kind=routing)) as fabric:
        for size_bytes in (100_000, 2 << 20):
            found = times_of_all(fabric, "allreduce", size_bytes)
            assert found["auto"] <= WITHIN * min(found.values()), (size_bytes, found)


def points(*pairs):
    return [Point(*pair) for pair in pairs]


@pytest.mark.parametrize(
    ("probes", "count", "total_ps"),
    [
        (((10, 100), (20, 300)), 15, 200.0),
        (((10, 100),), 10, 100.0),
        (((10, 100),), 3, 100.0),
        (((10, 100), (20, 50)), 15, 75.0),
        (((10, 100), (10, 100)), 10, 100.0),
    ],
    ids=["between", "the size itself", "below the smallest", "faster with more", "two of one size"],
)
def test_a_time_lies_on_the_line_between_probes(probes, count, total_ps):
    found = between(points(*probes), Cost(3, 30.0, 10.0), count)
    assert (found.steps, found.total_ps) == (3, pytest.approx(total_ps))
    assert found.latency_ps == pytest.approx(3 * found.transfer_ps)


def test_one_rank_takes_no_time():
    assert between(points((1, 0)), Cost(0, 0.0, 0.0), 1).total_ps == 0.0


def test_beyond_the_largest_probe_time_grows_as_between_the_last_two():
    found = extended(points((100, 10), (200, 30)), Cost(3, 5.0, 99.0), 1000)
    assert (found.steps, found.total_ps) == (3, pytest.approx(200.0))
