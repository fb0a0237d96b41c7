"""Training over a fabric: the same as that of one process, whatever adds up its gradients, and whatever fails."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.refusals import refused
from weft import BadInputError, CheckFailedError
from weft.jobs.digits_mlp import DigitsMlp
from weft.results.results_file import read_results
from weft.results.run_result import RunResult
from weft.results.training_runs import TRAINING_RUNS, TrainingRunResult, problems_of
from weft.run.runner import run_scenario
from weft.run.training_runs import finite_loss
from weft.scenario import parse_scenario

US = 10**6
FABRIC = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "10Gb/s"}
TRAINING: dict[str, Any] = {
    "training_run": "digits",
    "mlp": {"hidden": 16, "batch": 16},
    "steps": 12,
    "compute": "20us",
    "optimizer": "1us",
    "algorithms": ["ring", "in-network"],
}


def run_of(training: dict[str, Any], **scenario: Any) -> RunResult:
    return run_scenario(
        parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": [TRAINING | training], **scenario})
    )


def test_training_over_a_fabric_is_that_of_one_process(tmp_path: Path) -> None:
    run = run_of({})
    ring, in_network = run.of(TRAINING_RUNS)
    assert (ring.algorithm, in_network.algorithm) == ("ring", "in-network")
    for each in (ring, in_network):
        assert each.ok
        assert each.single_losses == ring.single_losses
        assert 0 < each.loss_difference < each.loss_bound
        assert len(each.steps_ps) == 12
        assert each.losses[-1] < each.losses[0]
        assert min(each.steps_ps) > each.compute_ps == 21 * US
        assert each.repeated == 0
    assert in_network.mean_step_ps < ring.mean_step_ps
    path = run.save(tmp_path)
    assert read_results(path).of(TRAINING_RUNS) == [ring, in_network]
    assert json.loads(path.read_text())["training_runs"][0]["mean_step_ps"] == ring.mean_step_ps


def test_training_by_one_process_is_that_of_a_step_by_step_mean() -> None:
    """Also where shards, and so batches, differ in size."""
    model = DigitsMlp(4, seed=3, hidden_units=8, batch=1000)
    mean = np.mean([model.gradient(model.initial, rank, 0).astype(np.float64) for rank in range(4)], axis=0)
    np.testing.assert_allclose(model.mean_gradient(model.initial, 0), mean, rtol=0, atol=1e-7)


def test_switches_that_die_change_nothing_of_what_is_learnt() -> None:
    events = [
        {"at": f"{at_us}us", "link": f"p0s{spine}<->*", "state": state}
        for at_us, spine, state in ((100, 0, "down"), (250, 0, "up"), (400, 1, "down"))
    ]
    run = run_of({"algorithms": ["in-network"], "steps": 20}, events=events)
    (training,) = run.of(TRAINING_RUNS)
    assert training.ok
    assert all(event.happened_ps for event in run.link_events)


def test_a_step_that_a_failing_link_ends_is_made_again() -> None:
    """A connection gives up while the link is dark; the weights are still those of the step before."""
    link = {"link": "h0<->p0l0"}
    events = [link | {"at": "100us", "state": "down"}, link | {"at": "100ms", "state": "up"}]
    (training,) = run_of({"algorithms": ["ring"], "steps": 8}, events=events).of(TRAINING_RUNS)
    assert training.ok
    assert training.repeated > 0
    assert max(training.steps_ps) > 99_000 * US


def test_a_step_that_cannot_succeed_is_an_error() -> None:
    with refused(CheckFailedError, problem="p0l0"):
        run_of(
            {"algorithms": ["in-network"]},
            events=[{"link": "p0l0<->p0s0", "state": "down"}, {"link": "p0l0<->p0s1", "state": "down"}],
        )


def test_a_loss_that_is_no_number_is_an_error() -> None:
    model = DigitsMlp(1, seed=1, hidden_units=1)
    weights = np.full_like(model.initial, np.inf)
    with (
        refused(CheckFailedError, problem="after step 3: a smaller"),
        np.errstate(all="ignore"),
    ):
        finite_loss(model, weights, 2)


def result_like(**change: Any) -> TrainingRunResult:
    same = TrainingRunResult(
        algorithm="ring", ranks=2, parameters=10, buckets=1, compute_ps=5, steps_ps=[7, 9], repeated=0,
        losses=[2.0, 1.0, 0.5], single_losses=[2.0, 1.0, 0.5], loss_bound=1e-4, accuracy=0.5,
        single_accuracy=0.5, accuracy_bound=0.005, target_loss=1.0, wrong=0, identical=True, retransmissions=0,
    )  # fmt: skip
    return replace(same, **change)


def test_figures_of_a_result() -> None:
    result = result_like()
    assert (result.mean_step_ps, result.exposed_ps) == (8, 3)
    assert (result.target_steps, result.target_ps) == (1, 7)
    assert result_like(target_loss=0.1).target_ps is None


@pytest.mark.parametrize(
    "change",
    [{"losses": [2.0, 1.0, 0.6]}, {"accuracy": 0.6}, {"wrong": 1}, {"identical": False}],
    ids=lambda change: next(iter(change)),
)
def test_training_beyond_its_bounds_is_not_ok(change: dict[str, Any]) -> None:
    assert result_like().ok
    assert not result_like(**change).ok


def test_lists_that_were_read_back_fit_together() -> None:
    assert list(problems_of(result_like())) == []
    assert [key for key, _ in problems_of(result_like(losses=[1.0]))] == ["losses"]
    assert "steps_ps" in dict(problems_of(result_like(steps_ps=[], losses=[], single_losses=[])))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"training_run": "letters"}, ["training_run", "digits"]),
        ({"algorithms": ["direct"]}, ["algorithms[0]", "ring"]),
        ({"steps": 0}, ["steps"]),
        ({"mlp": {"learning_rate": 0}}, ["learning_rate"]),
    ],
    ids=["model", "algorithm", "steps", "rate"],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(BadInputError) as refused:
        run_of(change)
    assert all(word in str(refused.value) for word in words), refused.value
