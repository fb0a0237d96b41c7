"""What limits a run: the cause that the scenario sets is the one that the run, its page and `weft why` name."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft.cli import weft
from weft.errors import BadInputError, InvalidValueError
from weft.paths import ROOT
from weft.report.page import report_page
from weft.report.run_directory import RunDirectory
from weft.results.fast_forward import fast_forward_results
from weft.results.limits import LIMIT_KINDS, Evidence, Limit, limits_of, sentences
from weft.results.model import Lateness
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import parse_scenario

FABRIC = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 4}
INCAST = {"incast": "h0", "bytes_per_sender": "128KiB"}

FAST_FORWARD_COUNTS = (
    "operations", "repeated", "resumed", "compared", "deviating", "disturbed", "largest_deviation", "skipped_packets",
    "skipped_bytes", "skipped_scale_up_bytes",
)  # fmt: skip


def evidence_of(traffic: dict[str, Any], **options: Any) -> Evidence:
    """Run one item in virtual time."""
    scenario = parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": [traffic], **options})
    result = run_scenario(scenario)
    return Evidence(result, run_spec(scenario).fabric, result.observations.tables)


def limits(traffic: dict[str, Any], **options: Any) -> list[Limit]:
    """Return what limited such a run."""
    return limits_of(evidence_of(traffic, **options))


def step(gradients: str, forward: str, backward: str) -> dict[str, Any]:
    """Return a training step of three layers."""
    layer = {"gradients": gradients, "forward": forward, "backward": backward, "count": 3}
    return {"training_step": "data-parallel", "algorithms": ["ring"], "layers": [layer], "bucket": "64KiB"}


def test_items_that_move_nothing_limit_nothing():
    fabric = {"cube": 2, "shapes": {"long": [2, 2, 4], "compact": [4, 2, 2]}, "planes": 1, "hosts_per_leaf": 1}
    evidence = evidence_of(
        {"circuits": "compact"}, fabric=fabric, routing={"kind": "dimension_order"}, circuits={"dark_time": "10us"}
    )
    assert evidence.steps is None
    assert limits_of(evidence) == []


def test_an_incast_is_limited_by_its_receivers_link():
    evidence = evidence_of(INCAST)
    first = limits_of(evidence)[0]
    assert (first.kind, first.place) == ("receiver", "p0l0:1")
    assert first.share == pytest.approx(evidence.loads["p0l0:1"])
    assert first.share > 0.9
    assert "h0" in first.sentence


def test_flows_that_collide_are_limited_by_a_link_between_switches():
    evidence = evidence_of({"permutation": "256KiB"})
    first = limits_of(evidence)[0]
    assert first.kind == "link"
    assert first.place == max(evidence.loads, key=lambda port: evidence.loads[port])
    assert not first.place.startswith("h")


def test_paths_that_hosts_took_for_failed_are_named():
    """What goes up to a spine of one plane is lost, and nobody notices but the hosts."""
    cut = [{"link": f"p1l{leaf} -> p1s0", "state": "down", "at": "20us"} for leaf in range(2)]
    found = limits(
        {"collective": "allreduce", "sizes": ["4MiB"], "algorithms": ["ring"]},
        fabric=FABRIC | {"planes": 2, "hosts_per_leaf": 1},
        transport={"protocol": "mrc"},
        int=False,
        events=cut,
    )
    (paths,) = (each for each in found if each.kind == "paths")
    assert "of plane 1 are out of use" in paths.sentence
    assert paths.place.startswith("h")
    assert 0.1 < paths.share < 0.9


def test_a_clean_run_is_limited_by_its_hosts_links():
    first, *others = limits({"collective": "allreduce", "sizes": ["256KiB"], "algorithms": ["ring"]})
    assert (first.kind, others) == ("host", [])
    assert first.share > 0.9


@pytest.mark.parametrize(("window", "kind"), [(4512, "window"), (100_000, "link")])
def test_a_window_below_the_bandwidth_delay_product_limits_and_a_larger_one_does_not(window, kind):
    transport = {"congestion_control": "fixed-window", "parameters": {"window": window}}
    found = limits({"permutation": "256KiB"}, transport=transport)
    assert found[0].kind == kind
    assert (kind == "window") is any(each.kind == "window" for each in found)


def test_a_congestion_control_that_leaves_the_full_link_idle_is_named_after_it():
    """DCQCN halves rates that it was right to halve once, and recovers slowly."""
    found = limits(INCAST | {"bytes_per_sender": "256KiB"}, transport={"congestion_control": "dcqcn"})
    assert [each.kind for each in found] == ["receiver", "window"]
    assert sum(each.share for each in found) == pytest.approx(1.0)


def test_a_host_that_its_nic_slows_down_says_nothing_of_windows():
    transport = {"congestion_control": "fixed-window", "parameters": {"window": 4512}}
    slow = limits({"permutation": "64KiB"}, transport=transport, nic={"per_packet_overhead": "10us"})
    assert all(each.kind != "window" for each in slow)


def test_flows_shorter_than_a_round_trip_say_nothing_of_windows():
    assert limits({"permutation": "512"}) == []


def test_a_step_is_limited_by_computation_if_that_hides_communication_and_else_by_links():
    hidden = evidence_of(step("16KiB", "500us", "1ms"))
    found = limits_of(hidden)
    assert found[0].kind == "compute"
    (result,) = hidden.results.as_dict()["training_steps"]
    assert found[0].share == pytest.approx(result["compute_ps"] / result["step_ps"])
    exposed = evidence_of(step("512KiB", "10us", "20us"))
    first = limits_of(exposed)[0]
    (result,) = exposed.results.as_dict()["training_steps"]
    assert first.kind == "host"
    assert first.share <= result["exposed_ps"] / result["step_ps"]


def test_links_explain_no_more_of_a_step_than_computation_leaves_exposed():
    by_kind = {each.kind: each for each in limits(step("64KiB", "100us", "200us"))}
    assert by_kind["compute"].share + by_kind["host"].share <= 1.0 + 1e-9


def test_a_pipeline_of_few_micro_batches_is_limited_by_ranks_that_wait_for_each_other():
    model = {"layers": 4, "hidden": 256, "heads": 4, "feed_forward": 512, "vocabulary": 500, "sequence": 128}
    slow = {"preset": "A100", "efficiency": 0.01}
    fabric = FABRIC | {"leaves": 1, "spines": 0}
    item = {"model": model, "parallel": {"pipeline": 4}, "micro_batches": 1, "accelerator": slow}
    evidence = evidence_of(item, fabric=fabric)
    found = {each.kind: each.share for each in limits_of(evidence)}
    (job,) = evidence.results.as_dict()["training_jobs"]
    assert found["waiting"] == pytest.approx((job["bubble_ps"] + job["stall_ps"]) / job["step_ps"], abs=1e-3)
    assert found["waiting"] == max(found.values())
    assert sum(found.values()) <= 1.0


def test_pauses_are_named_with_the_port_that_they_held():
    evidence = evidence_of(INCAST, buffer={"capacity": "1MiB"}, pfc={"classes": [3], "xoff": "20KB"})
    by_kind = {each.kind: each for each in limits_of(evidence)}
    memory = evidence.results.as_dict()["memory"][0]
    assert by_kind["pauses"].place == memory["longest_pause_port"]
    assert by_kind["pauses"].share == pytest.approx(memory["longest_pause_ps"] / evidence.traffic_ps)
    assert next(iter(by_kind)) == "receiver", "the link behind which senders are held comes first"


def test_a_receiver_that_holds_its_switch_is_named():
    evidence = evidence_of(INCAST, buffer={"capacity": "1MiB"}, pfc={"classes": [3], "xoff": "20KB"})
    memory = [dataclasses.replace(each, longest_pause_port="p0l0:1") for each in evidence.results.memory]
    held = dataclasses.replace(evidence, results=dataclasses.replace(evidence.results, memory=memory))
    found = next(each for each in limits_of(held) if each.kind == "pauses")
    assert (found.place, held.receiver_at(found.place)) == ("p0l0:1", "h0")
    assert "receiver h0" in found.sentence


def test_lost_packets_are_named_with_the_link_that_lost_most():
    evidence = evidence_of({"permutation": "128KiB"}, faults={"loss": 0.02})
    lost = next(each for each in limits_of(evidence) if each.kind == "losses")
    faults = {each["link"]: each["lost_packets"] for each in evidence.results.as_dict()["link_faults"]}
    assert faults[lost.place] == max(faults.values())


def test_a_full_queue_that_drops_is_named():
    evidence = evidence_of(INCAST, fabric=FABRIC | {"queue_capacity": "16KiB"})
    lost = next(each for each in limits_of(evidence) if each.kind == "losses")
    assert lost.place == "p0l0:1"


def test_routes_that_lead_over_a_failed_link_are_the_control_planes():
    events = [{"at": "50us", "link": "p0l0<->p0s1", "state": "down"}]
    control = {"detection": "100us", "latency": "100us"}
    evidence = evidence_of({"permutation": "256KiB"}, events=events, control=control)
    found = next(each for each in limits_of(evidence) if each.kind == "control")
    (event,) = evidence.results.as_dict()["link_events"]
    assert found.share == pytest.approx(event["recovery_ps"] / evidence.traffic_ps)


def test_missing_evidence_is_no_evidence():
    """Late events, no table of ports, ports that BMv2 does not count, operations that were repeated without packets."""
    evidence = evidence_of(INCAST)
    ports = dict(evidence.tables["ports"])
    late = dataclasses.replace(evidence.results, lateness=Lateness(10**6, 10**6, path_rtt_ps=1000, dilation=1.0))
    assert limits_of(dataclasses.replace(evidence, results=late)) == []
    assert limits_of(dataclasses.replace(evidence, tables={})) == []
    counts: Any = dict.fromkeys(FAST_FORWARD_COUNTS, 1)
    skipped = fast_forward_results(0.01, counts, (1, 1), [])
    repeated = dataclasses.replace(evidence.results, fast_forward=skipped)
    assert limits_of(dataclasses.replace(evidence, results=repeated)) == []
    ports["transmitted_bytes"] = ports["transmitted_bytes"].copy()
    ports["transmitted_bytes"][0] = -1
    assert limits_of(dataclasses.replace(evidence, tables={"ports": ports})) == []


def test_each_kind_says_what_decides_it_and_the_page_has_them_all():
    page = (ROOT / "docs" / "why.md").read_text(encoding="utf-8")
    for name, kind in LIMIT_KINDS.items():
        assert f"| {name} | {kind.figures} |" in page
    with refused(InvalidValueError, valid=", ".join(LIMIT_KINDS), problem="unknown limit of a run"):
        LIMIT_KINDS.named("luck")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Evidence]:
    evidence = evidence_of(INCAST)
    directory = tmp_path_factory.mktemp("limits")
    assert isinstance(evidence.results, RunResult)
    evidence.results.save(directory)
    return directory, evidence


def test_the_command_the_page_and_the_run_say_the_same(saved):
    directory, evidence = saved
    run = RunDirectory.read(directory)
    assert run.limits == limits_of(evidence)
    lines = sentences(run.limits)
    done = CliRunner().invoke(weft, ["why", str(directory)])
    assert (done.exit_code, done.output.splitlines()) == (0, lines)
    assert f"<li>{lines[0]}</li>" in report_page(run)


def test_a_run_says_it_only_where_something_was_lost_marked_held_or_waited_for(tmp_path):
    path = tmp_path / "scenario.yaml"
    for sender_bytes, says in (("256KiB", True), ("1KiB", False)):
        tree = {"clock": "virtual", "fabric": FABRIC, "traffic": [INCAST | {"bytes_per_sender": sender_bytes}]}
        path.write_text(json.dumps(tree))
        out = tmp_path / sender_bytes
        done = CliRunner().invoke(weft, ["run", str(path), "--out", str(out)])
        assert done.exit_code == 0, done.output
        assert any(line.startswith("limited by: p0l0:1") for line in done.output.splitlines()) is says


def test_the_command_says_that_it_does_not_know(tmp_path):
    evidence = evidence_of({"permutation": "512"})
    assert isinstance(evidence.results, RunResult)
    evidence.results.save(tmp_path)
    done = CliRunner().invoke(weft, ["why", str(tmp_path)])
    assert done.exit_code == 0
    assert done.output.startswith("unknown: no port was busy")
    tree = json.loads((tmp_path / "results.json").read_text())
    tree |= {"ok": False, "failures": [{"item": 1, "kind": "incast", "error": "none"}]}
    (tmp_path / "results.json").write_text(json.dumps(tree))
    assert "failed" in CliRunner().invoke(weft, ["why", str(tmp_path)]).output


def test_a_directory_that_is_no_runs_is_refused(tmp_path):
    for file, problem in ((None, "has no results.json"), ("sweep.json", "one of its points")):
        if file is not None:
            (tmp_path / file).write_text("{}")
        error = CliRunner().invoke(weft, ["why", str(tmp_path)]).exception
        assert isinstance(error, BadInputError)
        assert (error.exit_code, error.place) == (3, str(tmp_path))
        assert problem in str(error)
    assert CliRunner().invoke(weft, ["why", str(tmp_path / "nowhere")]).exit_code == 2
