"""Every lab that both clocks can run, shortened: what is delivered, reduced and dropped, and how long it takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from weft.paths import ROOT
from weft.results.run_result import RunResult
from weft.results.training_runs import TRAINING_RUNS
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.scenario.parsing import anchor_paths, read_mapping

pytestmark = pytest.mark.every_part  # a lab runs under the real clock whatever the commit


@dataclass(frozen=True)
class Lab:
    """A scenario file, what is changed in it because real time is long, and how the clocks are compared.

    `changes` go by the path of a key. `is_lossless`: neither clock may drop or send anything twice.
    """

    scenario: str
    changes: dict[str, Any] = field(default_factory=dict)
    is_lossless: bool = True


LABS = [
    Lab("01-allreduce/scenario.yaml"),
    Lab(
        "02-congestion-control/scenario.yaml",
        {"dilation": 10000, "traffic.0.permutation": "32KiB", "traffic.1.bytes_per_sender": "32KiB"},
    ),
    Lab(
        "03-switch-memory/shared-buffer.yaml",
        {"dilation": 10000, "traffic.0.bytes_per_sender": "64KiB"},
        is_lossless=False,
    ),
    Lab(
        "03-switch-memory/pfc.yaml",
        {
            "dilation": 10000,
            "pfc.headroom": "250KB",  # a real pause is as late as the threads that send and obey it
            "traffic.0.parameters.victim_bytes": 131072,
            "traffic.1.parameters": {"incast_bytes": 131072, "victim_bytes": 131072},
        },
    ),
    Lab("04-training-step/scenario.yaml", {"traffic.0.layers.1.count": 2, "traffic.1.layers.1.count": 2}),
    Lab(
        "05-observing/scenario.yaml",
        {
            "dilation": 10000,
            "faults": {},
            "traffic.0.sizes": ["64KiB"],
            "traffic.1.bytes_per_sender": "32KiB",
            "traffic.2.permutation": "32KiB",
            "observe": {"flows": True, "timelines": True, "int": ["h15->h0"], "captures": ["p0l0:1"]},
        },
    ),
    Lab("06-collectives/scenario.yaml", {"traffic.0.sizes": ["4KiB", "64KiB"]}),
    Lab("18-training/scenario.yaml", {"traffic.0.steps": 3}),
]


def tree_of(lab: Lab, clock: str) -> dict[str, Any]:
    path = ROOT / "labs" / lab.scenario
    tree = read_mapping(path, "scenario")
    for key, value in (lab.changes | {"clock": clock}).items():
        *parents, last = (int(part) if part.isdigit() else part for part in key.split("."))
        at: Any = tree
        for parent in parents:
            at = at[parent]
        at[last] = value
    anchor_paths(tree, path.parent)
    return tree


@pytest.fixture(scope="module", params=LABS, ids=lambda lab: lab.scenario.removesuffix(".yaml"))
def compared(request, tmp_path_factory) -> tuple[Lab, RunResult, RunResult]:
    results = []
    for clock in ("real", "virtual"):
        scenario = parse_scenario(tree_of(request.param, clock))
        results.append(run_scenario(scenario, directory=tmp_path_factory.mktemp(clock)))
    return request.param, *results


def outcome(result: RunResult) -> dict[str, Any]:
    """Results that must not depend on how long anything takes."""
    return {
        "clock-free": {key: result.made_by.parameters[key] for key in ("seed", "scenario")},
        "collectives": [
            (each.collective, each.algorithm, each.size_bytes, each.wrong, each.identical, each.largest_error)
            for each in result.collectives
        ],
        "flows": [(each.pattern, each.flows, each.bytes_delivered) for each in result.flows],
        "training steps": [(each.algorithm, each.ok) for each in result.training_steps],
        "training": [(each.algorithm, each.losses, each.accuracy) for each in result.of(TRAINING_RUNS)],
        "phases": [phase.name for phase in result.phases],
    }


def test_results_and_bytes_are_the_same(compared):
    _, real, virtual = compared
    assert real.ok
    assert virtual.ok
    assert virtual.collectives or virtual.flows or virtual.training_steps or virtual.of(TRAINING_RUNS)
    assert outcome(real) == outcome(virtual)


def test_counters_are_the_same_where_nothing_is_lost(compared):
    lab, real, virtual = compared
    if not lab.is_lossless:
        assert virtual.retransmissions > 0
        assert sum(plane.tail_drops for plane in virtual.planes) > 0
        return
    assert (virtual.retransmissions, virtual.drops) == (0, {})
    if real.retransmissions:
        pytest.skip(f"this machine was too late for its times: {real.lateness}")
    assert real.drops == {}
    for mine, other in zip(real.planes, virtual.planes, strict=True):
        assert mine.packets_aggregated == other.packets_aggregated


def test_times_agree_where_the_emulation_kept_its_time(compared):
    """Host software adds time under the real clock, and one event of a phase may have been the latest of the run.

    Half and double are far beyond what a valid run may be off apart from that.
    """
    lab, real, virtual = compared
    if not lab.is_lossless:
        return
    if not real.lateness.valid or real.retransmissions:
        pytest.skip(f"this machine was too late for its times: {real.lateness}")
    for mine, other in zip(real.phases, virtual.phases, strict=True):
        took_ps, virtually_ps = mine.end_ps - mine.start_ps, other.end_ps - other.start_ps
        assert virtually_ps / 2 < took_ps < 2 * virtually_ps + real.lateness.largest_ps, mine.name
