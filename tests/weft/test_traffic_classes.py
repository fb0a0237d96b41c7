"""Scenarios whose jobs have classes of traffic: what the example shows, what is refused, flow control by class."""

import io
from copy import deepcopy

import pytest
import yaml
from rich.console import Console

from tests.refusals import refused
from weft import topologies
from weft.errors import BadInputError
from weft.jobs.traffic_bytes import TRAINING_TRAFFIC
from weft.paths import ROOT
from weft.results.flows import FLOWS
from weft.results.link_loads import print_link_loads
from weft.results.training_jobs import TRAINING_JOBS
from weft.run.runner import run_scenario
from weft.run.traffic_kinds.base import items_of
from weft.scenario import parse_scenario

EXAMPLE = yaml.safe_load((ROOT / "examples" / "traffic_classes.yaml").read_text())
PAGE = ROOT / "docs" / "training.md"
MS = 10**9


def variant(classes=None, bulk=True, **options):
    """Return the example with other classes of its job, with or without the bulk."""
    changed = deepcopy(EXAMPLE) | options
    items = changed["traffic"][0]["together"]
    if classes is not None:
        items[0]["classes"] = classes
    if not bulk:
        del items[1]
    return parse_scenario(changed)


def row(name, result):
    """Return a run as a row of the page's table, in ms."""
    traffic = result.traffic
    [step] = traffic[TRAINING_JOBS.key]
    bulk = [f"{flows.largest_completion_ps / MS:.1f}" for flows in traffic.get(FLOWS.key, [])]
    exposed = [f"{step.exposed_ps[kind] / MS:.1f}" for kind in ("pipeline", "data")]
    return " | ".join(["", name, f"{step.step_ps / MS:.1f}", *exposed, *(bulk or [""]), ""]).strip()


def test_the_page_shows_what_classes_buy():
    strict = {"classes": [4, 5]}
    weighted = run_scenario(variant(observe={"loads": True}))
    rows = [
        row("the step alone", run_scenario(variant({}, bulk=False))),
        row("with bulk, in one class", run_scenario(variant({}))),
        row("in classes, gradients and bulk at 3 : 1", weighted),
        row("in classes, all by strict priority", run_scenario(variant(scheduling=strict))),
    ]
    assert "\n".join(rows) in PAGE.read_text()
    printed = io.StringIO()
    print_link_loads(Console(file=printed, width=120, highlight=False), weighted.link_loads)
    lines = [line.rstrip() for line in printed.getvalue().strip().splitlines()]
    assert "\n".join(lines) in PAGE.read_text()


@pytest.mark.parametrize(
    ("classes", "options", "what"),
    [
        (
            {"pipeline": 2},
            {},
            {
                "place": "scenario: traffic[0].together[0].classes.pipeline",
                "valid": "3, 4, 5; scheduling.classes: [2, 4, 5] has them do so",
            },
        ),
        (
            {"pipeline": 5},
            {"scheduling": {}},
            {
                "place": "scenario: traffic[0].together[0].classes.pipeline",
                "valid": "3; scheduling.classes: [5] has them do so",
            },
        ),
        (
            {"pipelines": 5},
            {},
            {"place": "scenario: traffic[0].together[0].classes", "problem": "did you mean 'pipeline'"},
        ),
        (
            {"pipeline": 6},
            {},
            {"place": "scenario: traffic[0].together[0].classes.pipeline", "valid": "0 to 5"},
        ),
        (
            {},
            {"transport": {"classes": {2: {}}}},
            {
                "place": "scenario: transport.classes.2",
                "valid": "3, 4, 5; scheduling.classes: [2, 4, 5] has them do so",
            },
        ),
        (
            {},
            {"transport": {"classes": {4: {"congestion_control": "hpcc"}}}, "int": False},
            {"place": "scenario: transport.congestion_control", "problem": "needs int"},
        ),
    ],
)
def test_classes_that_cannot_be_are_refused(classes, options, what):
    with refused(BadInputError, **what):
        variant(classes, **options)


def test_lanes_of_routes_are_no_classes_of_data():
    scenario = parse_scenario(
        {
            "clock": "virtual",
            "fabric": {"kind": "torus", "shape": [3, 3], "hosts_per_leaf": 1},
            "routing": {"kind": "dimension_order"},
            "scheduling": {"classes": [4]},
            "traffic": [{"incast": "h0"}],
        }
    )
    with refused(BadInputError, place="scenario: scheduling.classes", problem="class 4 is one of the 2 lanes"):
        run_scenario(scenario)


def small(**options):
    """Return a step whose pipeline and gradients share links."""
    model = {"layers": 2, "hidden": 256, "heads": 4, "feed_forward": 512, "vocabulary": 500, "sequence": 256}
    item = {
        "model": model,
        "parallel": {"pipeline": 2, "data": 2},
        "micro_batches": 2,
        "classes": {"pipeline": 5, "data": 4, "expert": 3},
    }
    fabric = {"leaves": 2, "spines": 1, "hosts_per_leaf": 2, "planes": 1, "host_rate": "100Gb/s"}
    base = {"clock": "virtual", "fabric": fabric, "scheduling": {"classes": [4, 5]}, "traffic": [item]}
    return parse_scenario(base | options)


@pytest.mark.parametrize(
    "options",
    [
        {"pfc": {"classes": [3, 4, 5]}, "buffer": {"capacity": "2MiB"}},
        {"credits": {"classes": [3, 4, 5, 6]}},
        {"transport": {"classes": {4: {"congestion_control": "dcqcn"}, 5: {"congestion_control": "swift"}}}},
        {"nic": {"pcie_rate": "200Gb/s", "dma_latency": "300ns"}},
    ],
    ids=["pfc", "credits", "congestion control by class", "costs of NICs"],
)
def test_a_step_in_classes_runs_with(options):
    result = run_scenario(small(**options))
    assert result.traffic[TRAINING_JOBS.key][0].step_ps > 0
    assert result.traffic[TRAINING_JOBS.key][0].retransmissions == 0


def test_kinds_of_a_model_are_those_that_its_ranks_send():
    [item] = items_of(small())
    job, _ = item.job(topologies.leaf_spine(), 1)
    assert job.traffic_classes == {"pipeline": 5, "data": 4}
    assert job.traffic_classes.keys() < set(TRAINING_TRAFFIC)
