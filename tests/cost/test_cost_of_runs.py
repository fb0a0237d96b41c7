"""What a run's steps and tokens cost: formulas by hand, and runs that are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from weft.cli import run_guarded, weft
from weft.cost import cost_figures, read_prices
from weft.cost.work import WorkCost, work_cost
from weft.quantities.units import PS_PER_S
from weft.results.work import Product, Work, tokens_of, training_products
from weft.topologies import leaf_spine

HOUR_PS = 3600 * PS_PER_S
TRAINING = """
name: small
clock: virtual
fabric: {planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 4, host_rate: 100Gb/s}
traffic:
  - model: {layers: 2, hidden: 256, heads: 4, feed_forward: 512, vocabulary: 1024, sequence: 128}
    parallel: {data: 2}
    accelerator: A100
"""
SERVING = """
name: serving
clock: virtual
fabric: {planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 4, host_rate: 100Gb/s}
traffic:
  - inference:
      model: {preset: 7B, layers: 2}
      requests: {rate: 1000, count: 4, prompt: {median: 64}, output: {median: 8}}
      prefill: {instances: 3}
      decode: {instances: 1}
"""


def run(*arguments: str | Path) -> tuple[int, str, str]:
    runner = CliRunner()
    found: list[int] = []
    with runner.isolation() as (out, err, _):
        found.append(run_guarded(lambda: weft.main([str(each) for each in arguments], "weft", standalone_mode=False)))
        texts = out.getvalue().decode(), err.getvalue().decode()
    return found[0], *texts


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A scenario of a training step, and its run."""
    directory = tmp_path_factory.mktemp("trained")
    scenario = directory / "small.yaml"
    scenario.write_text(TRAINING)
    assert run("run", scenario, "--out", directory / "run")[0] == 0
    return scenario, directory / "run"


def test_costs_are_those_by_hand() -> None:
    # Two hours of 8 accelerators (4 ranks with 2 each) at 3 an hour: 48. Ranks compute half of the time, at an MFU of
    # 0.4; 0.8 of all time is kept work.
    work = Work("training", 4, 2 * HOUR_PS, training_products(4, steps=6, tokens=24_000_000), 0.5, 0.4)
    cost = WorkCost(work, 2, 3.0, 0.8)
    assert (cost.accelerators, cost.total) == (8, 48)
    figures = {key: value for key, _, value in cost.figures()}
    assert figures == {
        "training_step": 8,
        "million_tokens": 2,
        "useful_hour": 6,
        "useful_hour_at_peak": 7.5,
    }
    assert [cost.kept(each) for each in figures.values()] == pytest.approx([10, 2.5, 7.5, 9.375])


def test_kinds_of_tokens_are_paid_by_the_ranks_that_make_them() -> None:
    # An hour of 3 ranks for 6 million input tokens, of 1 rank for half a million output tokens, at 2 an hour each.
    products = tokens_of("input tokens", 6_000_000, 3), tokens_of("output tokens", 500_000, 1)
    cost = WorkCost(Work("inference", 4, HOUR_PS, products), 1, 2.0, None)
    assert {key: value for key, _, value in cost.figures()} == {"million_input_tokens": 1, "million_output_tokens": 4}
    assert cost.kept(1.0) is None


def test_nothing_is_priced_that_was_not_made() -> None:
    nothing = Product("million_tokens", "a million tokens", 0, 4)
    assert list(WorkCost(Work("", 4, HOUR_PS, (nothing,), 0.0, 0.0), 1, 2.0, None).figures()) == []


def test_failures_do_not_undo_what_has_been_served() -> None:
    fabric = leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2, host_rate_bps=100e9)
    cost = cost_figures("", fabric, read_prices(), "H100", kept_share=0.9)
    served, trained = (Work("", 2, HOUR_PS, (), is_undone_by_failures=each) for each in (False, True))
    assert work_cost(served, cost, 1).kept_share is None
    assert work_cost(trained, cost, 1).kept_share == 0.9
    assert work_cost(trained, cost, 1).hourly == cost.whole_per_accelerator_hour
    assert work_cost(trained, cost_figures("", fabric, read_prices()), 1).hourly == cost.per_accelerator_hour


def test_a_training_runs_costs_follow_from_its_results(trained: tuple[Path, Path]) -> None:
    scenario, directory = trained
    code, text, _ = run("cost", scenario, "--run", directory, "--accelerator", "A100", "--json")
    assert code == 0
    (fabric,) = json.loads(text)["fabrics"]
    (step,) = json.loads((directory / "results.json").read_text())["training_jobs"]
    (work,) = fabric["work"]
    hourly = fabric["with_accelerators"]["per_accelerator_hour"]
    # The job has 2 of the fabric's 4 ranks, and pays for these alone.
    total = 2 * hourly * step["step_ps"] / HOUR_PS
    assert work["costs"] == {
        "training_step": pytest.approx(total),
        "million_tokens": pytest.approx(total / step["plan"]["tokens"] * 1e6),
        "useful_hour": pytest.approx(hourly * step["step_ps"] * 2 / sum(step["ranks"]["compute"])),
        "useful_hour_at_peak": pytest.approx(hourly / step["mfu"]),
    }
    assert work["costs_of_kept_work"] is None
    fails = "cluster={accelerators_per_host: 8, failures: [{mtbf: 500h}]}"
    code, text, _ = run("cost", scenario, "--run", directory, "--set", fails, "--json")
    (fabric,) = json.loads(text)["fabrics"]
    (kept,) = fabric["work"]
    assert kept["accelerators"] == 16
    step_cost = kept["costs"]["training_step"] / fabric["kept_share"]
    assert kept["costs_of_kept_work"]["training_step"] == pytest.approx(step_cost)
    code, text, _ = run("cost", scenario, "--run", directory, "--set", fails)
    assert (code, "kept work" in text, "a million tokens" in text) == (0, True, True)


def test_served_tokens_are_priced_by_kind(tmp_path: Path) -> None:
    scenario, out = tmp_path / "serving.yaml", tmp_path / "run"
    scenario.write_text(SERVING)
    assert run("run", scenario, "--out", out)[0] == 0
    code, text, _ = run("cost", scenario, "--run", out, "--json")
    assert code == 0
    (fabric,) = json.loads(text)["fabrics"]
    (result,) = json.loads((out / "results.json").read_text())["inference"]
    (work,) = fabric["work"]
    assert (result["prefill_ranks"], result["decode_ranks"]) == (3, 1)
    of_a_rank = fabric["per_accelerator_hour"] * result["time_ps"] / HOUR_PS
    assert work["costs"]["million_input_tokens"] == pytest.approx(3 * of_a_rank / result["prompt_tokens"] * 1e6)
    assert work["costs"]["million_output_tokens"] == pytest.approx(of_a_rank / result["output_tokens"] * 1e6)
    busy = sum(result["prefill_utilisation"]) + result["decode_utilisation"][0]
    assert work["computing_share"] == pytest.approx(busy / 4)
    # Results of before there was a number of ranks have no price.
    results = json.loads((out / "results.json").read_text())
    del results["inference"][0]["prefill_ranks"], results["inference"][0]["decode_ranks"]
    (out / "results.json").write_text(json.dumps(results))
    code, _, problem = run("cost", scenario, "--run", out)
    assert (code, "neither steps nor tokens" in problem) == (3, True)


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("fabric.hosts_per_leaf=8", "made_by.fabric.hosts_per_leaf is '4', the scenario says '8'"),
        ("mtu=4096", "made_by.mtu_bytes is '1024', the scenario says '4096'"),
        ("name=other", "made_by.scenario is 'small', the scenario says 'other'"),
        ("transport.congestion_control=swift", "congestion_control is 'fixed-window', the scenario says 'swift'"),
    ],
)
def test_a_run_of_another_scenario_is_refused(trained: tuple[Path, Path], setting: str, problem: str) -> None:
    code, _, text = run("cost", trained[0], "--run", trained[1], "--set", setting)
    assert code == 3
    assert problem in text


def test_chance_and_records_may_differ(trained: tuple[Path, Path]) -> None:
    changes = "--set", "seed=7", "--set", "observe.interval=1us"
    assert run("cost", trained[0], "--run", trained[1], *changes)[0] == 0


def test_runs_without_a_price_are_refused(tmp_path: Path, trained: tuple[Path, Path]) -> None:
    scenario, directory = trained
    assert run("cost", scenario, "--run", tmp_path)[0] == 3
    assert run("cost", scenario, "--run", tmp_path / "none")[0] == 2
    assert run("cost", scenario, scenario, "--run", directory)[0] == 2
    assert run("cost", "--table", "--run", directory)[0] == 2
    failed = json.loads((directory / "results.json").read_text())
    failed["failures"], failed["ok"] = [{"item": 0, "kind": "model", "error": "late"}], False
    (tmp_path / "results.json").write_text(json.dumps(failed))
    code, _, text = run("cost", scenario, "--run", tmp_path)
    assert (code, "the run failed" in text) == (3, True)
    incast = tmp_path / "incast.yaml"
    incast.write_text(TRAINING.split("traffic:")[0] + "traffic: [{incast: h0, bytes_per_sender: 4KiB}]\n")
    assert run("run", incast, "--out", tmp_path / "incast")[0] == 0
    code, _, text = run("cost", incast, "--run", tmp_path / "incast")
    assert (code, "neither steps nor tokens" in text) == (3, True)


MEASURED = """
name: measured
fabric: {planes: 2, leaves: 2, spines: 1, hosts_per_leaf: 2, host_rate: 100Gb/s}
int: false
traffic:
  - {collective: allreduce, algorithms: [ring], sizes: [64KiB], data: lengths}
cluster:
  failures: [{part: plane, mtbf: 10d, effect: measured}]
  checkpoint: {interval: 1h}
"""


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A scenario with a measured failure, and what `weft goodput` has found."""
    directory = tmp_path_factory.mktemp("lived")
    scenario = directory / "measured.yaml"
    scenario.write_text(MEASURED)
    assert run("goodput", scenario, "--histories", 5, "--workers", 1, "--out", directory / "found")[0] == 0
    return scenario, directory / "found"


def test_an_hour_of_kept_work_is_priced_with_what_packets_have_shown(lived: tuple[Path, Path]) -> None:
    scenario, found = lived
    share = json.loads((found / "goodput.json").read_text(encoding="utf-8"))["goodput"]["mean"]
    status, out, _ = run("cost", scenario, "--goodput", found, "--json")
    assert status == 0
    (figures,) = json.loads(out)["fabrics"]
    assert figures["kept_share"] == share
    assert figures["per_kept_accelerator_hour"] == pytest.approx(figures["per_accelerator_hour"] / share)
    status, _, err = run("cost", scenario)
    assert status != 0
    assert "--goodput" in err


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ("cluster.failures[0].mtbf=20d", "made_by.cluster.failures[0].mtbf"),
        ("cluster.spares=1", "made_by.cluster.spares"),
        ("fabric.spines=2", "made_by.fabric.spines"),
    ],
)
def test_histories_of_another_cluster_are_refused(lived: tuple[Path, Path], change: str, place: str) -> None:
    scenario, found = lived
    status, _, err = run("cost", scenario, "--goodput", found, "--set", change)
    assert status != 0
    assert place in err


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 5000, '{"goodput": {"mean": 2}, "made_by": {}}', "\0"])
def test_files_of_others_are_refused(lived: tuple[Path, Path], tmp_path: Path, text: str) -> None:
    scenario, _ = lived
    status, _, err = run("cost", scenario, "--goodput", tmp_path)
    assert status != 0
    assert "has no goodput.json" in err
    (tmp_path / "goodput.json").write_text(text)
    status, _, err = run("cost", scenario, "--goodput", tmp_path)
    assert status != 0
    assert "weft goodput of this version" in err
    status, _, err = run("cost", scenario, scenario, "--goodput", tmp_path)
    assert "1 --goodput for 2 files" in err
