"""The page of the decision follows from its record, and its record from runs, of which small ones are repeated here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import decision_page
import decision_runs
import pytest
from decision_runs import FABRICS, FULL, REDUCED, FailureFigures

from weft.errors import WeftError
from weft.trials import TrialRunner

RECORD: dict[str, Any] = json.loads(decision_runs.RECORD.read_text(encoding="utf-8"))
STEP = "training step"


def test_the_page_and_its_drawings_are_those_of_the_record() -> None:
    assert decision_page.PAGE.read_text(encoding="utf-8") == decision_page.page(RECORD)
    for name, drawing in decision_page.drawings(RECORD).items():
        assert (decision_page.PICTURES / name).read_text(encoding="utf-8") == drawing


def test_the_record_has_all_fabrics_jobs_and_failures() -> None:
    assert list(RECORD["fabrics"]) == [each.name for each in FABRICS]
    assert RECORD["accelerators"] == FULL.accelerators
    for found in RECORD["fabrics"].values():
        assert list(found["jobs"]) == list(FULL.jobs())
        assert list(found["failures"]) == list(decision_runs.FAILURES)
    assert list(RECORD["balancing"]) == list(decision_runs.BALANCING)


@pytest.mark.parametrize("fabric", FABRICS, ids=lambda each: each.name)
def test_settings_ideal_times_and_money_are_still_those_of_the_record(fabric: decision_runs.DecisionFabric) -> None:
    found = RECORD["fabrics"][fabric.name]
    assert decision_runs.operator_keys(fabric.tree(FULL)) == found["operators"]
    assert {name: decision_runs.ideal_ps(name, FULL) for name in FULL.jobs()} == RECORD["ideal_ps"]
    effects = {kind: FailureFigures(**each) for kind, each in found["failures"].items()}
    assert decision_runs.goodput_of(effects) == pytest.approx(found["cost"]["kept_share"])


def test_no_job_beats_the_ideal_and_nothing_was_wrong() -> None:
    for found in RECORD["fabrics"].values():
        assert all(each["time_ps"] > RECORD["ideal_ps"][name] for name, each in found["jobs"].items())
        assert all(not each["wrong"] for each in found["failures"].values())


def test_a_failure_that_ends_jobs_leaves_less_of_a_clusters_time() -> None:
    harmless = {kind: FailureFigures("link", "", 0, 1.0, None, 0, 0) for kind in decision_runs.FAILURES}
    ending = {**harmless, "silent": FailureFigures("link", "it failed", 0, 0.0, None, 0, None)}
    assert decision_runs.goodput_of(ending) < decision_runs.goodput_of(harmless)


def reduced(tmp_path: Path, *names: str) -> dict[str, Any]:
    """Return what the procedures with these names find at the reduced size."""
    procedures = {name: each for name, each in decision_runs.procedures_of(REDUCED) if name in names}
    found = TrialRunner(tmp_path, 2).run(procedures)
    assert not [each for each in found.values() if isinstance(each, WeftError)]
    return found


@pytest.mark.slow
def test_small_runs_show_what_the_page_says_of_paths_and_of_switches_that_die(tmp_path: Path) -> None:
    fabrics = ("roce-pfc-dcqcn", "ultra-ethernet")
    names = [f"{fabric}/{which}" for fabric in fabrics for which in (f"job/{STEP}", "failure/switch")]
    found = reduced(tmp_path, *names, "ultra-ethernet/failure/silent")
    # Spraying is faster than ECMP; a spine that dies ends no step, nor does a silent link where senders choose paths.
    assert found[f"ultra-ethernet/job/{STEP}"].time_ps < found[f"roce-pfc-dcqcn/job/{STEP}"].time_ps
    for name in ("roce-pfc-dcqcn/failure/switch", "ultra-ethernet/failure/switch", "ultra-ethernet/failure/silent"):
        assert found[name].error == ""
        assert found[name].wrong == 0
        assert found[name].retransmissions > 0
    assert found["ultra-ethernet/failure/silent"].speed > 0.9


@pytest.mark.slow
def test_small_runs_show_what_queue_pair_scaling_needs(tmp_path: Path) -> None:
    names = {way: f"roce-pfc-dcqcn/balancing/{way}" for way in decision_runs.BALANCING}
    found = reduced(tmp_path, *names.values())
    times = [found[name].time_ps for name in names.values()]
    alone, _, _, _, scaled = times
    assert scaled < alone
