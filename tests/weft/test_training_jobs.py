"""Steps of training a model, run: what they take, what ranks' time goes to, and what is refused."""

import csv
import json
from functools import cache

import pytest
import yaml
from click.testing import CliRunner

from tests.refusals import refused
from weft.cli import weft
from weft.errors import BadInputError
from weft.jobs.compute_times import ComputeTimes
from weft.jobs.traffic_bytes import sent_bytes
from weft.jobs.training_job import training_job
from weft.paths import ROOT
from weft.results.results_file import read_results
from weft.results.training_jobs import TRAINING_JOBS, TrainingJobResult
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import parse_scenario

EXAMPLE = ROOT / "examples" / "training.yaml"
PAGE = ROOT / "docs" / "training.md"
MODEL = {
    "layers": 4,
    "hidden": 512,
    "heads": 8,
    "feed_forward": 1024,
    "vocabulary": 1000,
    "sequence": 256,
}
MIXED = MODEL | {"layers": 2, "experts": {"count": 16, "top_k": 4, "feed_forward": 512}}
SLOW = {"preset": "A100", "efficiency": 0.02}
"""Its computation takes long beside what ranks send."""
FABRIC = {
    "leaves": 4,
    "spines": 2,
    "hosts_per_leaf": 2,
    "planes": 1,
    "host_rate": "400Gb/s",
    "ranks_per_host": 4,
    "rail_optimised": True,
    "queue_capacity": "4MiB",
}


def scenario(*items, options=None, **fabric):
    described = {key: value for key, value in (FABRIC | fabric).items() if value is not None}
    return parse_scenario({"clock": "virtual", "fabric": described, "traffic": list(items)} | (options or {}))


def steps(*items, **fabric) -> list[TrainingJobResult]:
    return run_scenario(scenario(*items, **fabric)).traffic[TRAINING_JOBS.key]


def step(item, **fabric) -> TrainingJobResult:
    (found,) = steps(item, **fabric)
    return found


@cache
def printed(*arguments: str) -> list[str]:
    done = CliRunner().invoke(weft, [*arguments, str(EXAMPLE)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return [line.rstrip() for line in done.stdout.splitlines()]


def shown_in(lines: list[str], first: str, last: str) -> str:
    """Return the lines from one that begins so to one that contains this."""
    begin = next(number for number, line in enumerate(lines) if line.startswith(first))
    end = next(number for number, line in enumerate(lines) if number >= begin and last in line)
    return "\n".join(lines[begin : end + 1])


def test_the_page_shows_what_the_example_prints(tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    assert shown_in(printed("job", "show"), "training llama", "ideal step") in page
    assert shown_in(printed("run", "--out", str(tmp_path)), "a step of", "MFU") in page
    (item,) = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))["traffic"]
    assert f"{item['micro_batches']} micro-batches" in page


@pytest.mark.parametrize(
    "shape",
    [
        {"parallel": {"tensor": 4, "sequence": True, "pipeline": 2}},
        {"parallel": {"pipeline": 4, "schedule": "zero-bubble", "data": 2, "zero": 1}, "micro_batches": 4},
        {"parallel": {"data": 8, "zero": 3}},
        {"parallel": {"data": 2, "pipeline": 4, "zero": 2}, "micro_batches": 4},
        {"parallel": {"data": 4, "pipeline": 2, "zero": 3}, "micro_batches": 2},
        {"parallel": {"context": 2, "pipeline": 2, "data": 2}, "stragglers": {1: 3}, "jitter": 0.1},
    ],
)
def test_all_time_of_every_rank_is_accounted_for(shape, tmp_path):
    result = run_scenario(scenario({"model": MODEL} | shape))
    (found,) = result.traffic[TRAINING_JOBS.key]
    assert found.ok
    for rank in range(8):
        assert sum(values[rank] for values in found.ranks.values()) == found.step_ps
    assert found.step_ps > found.plan.ideal_ps
    assert found.exposed_ps.keys() <= {"tensor", "pipeline", "data", "context"}
    assert sum(found.compute_ps.values()) == pytest.approx(sum(found.ranks["compute"]) / 8, abs=3)
    assert 0 < found.mfu < found.plan.ideal_utilisation
    saved = result.save(tmp_path)
    assert read_results(saved).traffic[TRAINING_JOBS.key] == [found]
    written = json.loads(saved.read_text())["training_jobs"][0]
    assert written["mfu"] == found.mfu
    assert found.mfu < written["mfu_with_all_scores"] == found.mfu_with_all_scores
    assert written["tokens_per_s"] == pytest.approx(found.plan.tokens / (found.step_ps / 1e12))


def test_a_fast_fabric_comes_close_to_the_ideal_step():
    item = {"model": MODEL, "parallel": {"pipeline": 4, "data": 2}, "micro_batches": 4, "accelerator": SLOW}
    fast = step(item, host_rate="2Tb/s", delay="1ns")
    assert fast.plan.ideal_ps < fast.step_ps < 1.02 * fast.plan.ideal_ps
    slow = step(item, host_rate="40Gb/s")
    assert slow.step_ps > fast.step_ps
    assert slow.exposed_ps["pipeline"] > 5 * fast.exposed_ps["pipeline"]


def test_stragglers_hold_the_others_back():
    item = {"model": MODEL, "parallel": {"data": 8}, "micro_batches": 2, "accelerator": SLOW}
    even, late = step(item), step(item | {"stragglers": {5: 2}})
    assert even.stall_ps == 0 < late.stall_ps
    assert late.ranks["stall"][5] == 0
    assert late.ranks["compute"][5] == pytest.approx(2 * even.ranks["compute"][5], rel=1e-6)


def test_links_carry_what_the_formulas_say(tmp_path):
    """A host sends and receives the same here, on one link: payload, headers of about 6 %, acknowledgements.

    One switch has all hosts, so that no flows share an uplink by their hashes and lose packets there.
    """
    item = {"model": MODEL, "parallel": {"tensor": 2, "pipeline": 2, "data": 2}, "micro_batches": 2}
    single = {"fabric": {"leaves": 1, "spines": 0, "hosts_per_leaf": 8, "planes": 1, "host_rate": "400Gb/s"}}
    run = run_scenario(parse_scenario({"clock": "virtual", "traffic": [item]} | single))
    run.save(tmp_path)
    with (tmp_path / "ports.csv").open(encoding="utf-8") as file:
        came = {row["peer"]: int(row["transmitted_bytes"]) for row in csv.DictReader(file)}
    (training,) = run_spec(parse_scenario({"clock": "virtual", "traffic": [item]} | single)).traffic
    job = training_job(training.plan(ranks_per_host=1))
    for rank in range(8):
        payload_bytes = sum(sent_bytes(job, rank).values())
        assert 1.03 * payload_bytes < came[f"h{rank}:0"] < 1.12 * payload_bytes


def test_jitter_follows_the_seed():
    item = {"model": MODEL, "parallel": {"data": 8}, "jitter": 0.2}
    base = {"clock": "virtual", "fabric": FABRIC, "traffic": [item]}
    drawn = [run_scenario(parse_scenario(base | {"seed": seed})) for seed in (1, 1, 2)]
    first, again, other = (run.traffic[TRAINING_JOBS.key][0] for run in drawn)
    assert first == again
    assert first.ranks["compute"] != other.ranks["compute"]


def test_interleaving_trades_bubbles_for_messages():
    """Parts of stages make bubbles smaller and messages more (Narayanan et al. 2021, section 2.2.2)."""
    item = {"model": MODEL | {"layers": 8}, "micro_batches": 4, "accelerator": SLOW}
    plain = step(item | {"parallel": {"pipeline": 4, "data": 2}})
    interleaved = step(item | {"parallel": {"pipeline": 4, "data": 2, "schedule": "interleaved", "virtual_stages": 2}})
    assert interleaved.bubble_ps < 0.6 * plain.bubble_ps
    sent = [each.plan.sent_bytes["pipeline"] for each in (plain, interleaved)]
    assert sent[1] == 2 * sent[0]
    assert interleaved.step_ps < plain.step_ps


@pytest.mark.parametrize(
    ("schedule", "parts", "stages", "micro_batches"),
    [("gpipe", 1, 4, 4), ("1f1b", 1, 8, 8), ("1f1b", 1, 4, 12), ("interleaved", 2, 4, 8), ("interleaved", 4, 2, 4)],
)  # fmt: skip
def test_bubbles_on_a_fabric_are_those_of_the_schedule(monkeypatch, schedule, parts, stages, micro_batches):
    """(p - 1)/m of the ideal time, with v parts (p - 1)/(m·v), where messages take a millionth of the step.

    Narayanan et al. 2021, section 2.2. Neither the output nor the optimizer takes any time, so stages are equal.
    """
    monkeypatch.setattr(ComputeTimes, "output", lambda self: 0)
    monkeypatch.setattr(ComputeTimes, "optimizer", lambda self, stage: 0)
    virtual = {"virtual_stages": parts} if parts > 1 else {}
    item = {
        "model": MODEL | {"layers": 8},
        "parallel": {"pipeline": stages, "data": 8 // stages, "schedule": schedule} | virtual,
        "micro_batches": micro_batches,
        "accelerator": {"preset": "A100", "efficiency": 1e-5},
    }
    found = step(item, host_rate="400Gb/s")
    ideal_ps = found.ranks["compute"][0]
    assert set(found.ranks["compute"]) == {ideal_ps}
    bubble_ps = (stages - 1) * ideal_ps / (micro_batches * parts)
    assert found.step_ps - ideal_ps == pytest.approx(bubble_ps, rel=1e-3)
    assert found.step_ps - ideal_ps > bubble_ps
    assert found.bubble_ps == pytest.approx(bubble_ps, rel=1e-3)


def test_tokens_that_cross_the_network_once_a_host_arrive_sooner():
    """DeepSeek-V3, section 2.1.2 and 3.2.2."""
    item = {"model": MIXED, "parallel": {"data": 8, "expert": 8}, "precisions": {"dispatch": "fp8"}}
    direct, by_host = step(item), step(item | {"routing": {"hosts_per_token": 1}})
    assert by_host.exposed_ps["expert"] < direct.exposed_ps["expert"]
    for routing in ({"skew": 1.0}, {"skew": 1.0, "hosts_per_token": 2}):
        skewed = step(item | {"routing": routing})
        assert max(skewed.ranks["compute"]) > 1.05 * max(direct.ranks["compute"])
        assert skewed.stall_ps + skewed.bubble_ps > 0


def test_two_jobs_share_a_fabric():
    item = {"model": MODEL, "parallel": {"data": 4}}
    alone = step(item)
    together = {"together": [item, item | {"ranks": [4, 5, 6, 7], "at": "10us"}]}
    first, second = steps(together)
    assert first.plan.ranks == second.plan.ranks == 4
    assert first.step_ps >= alone.step_ps


def test_summaries_as_json():
    done = CliRunner().invoke(weft, ["job", "show", "--json", str(EXAMPLE)], catch_exceptions=False)
    (plan,) = json.loads(done.stdout)
    assert plan["ranks"] == 16
    assert plan["ideal_ps"] > 0


def test_a_scenario_without_a_training_job(tmp_path):
    path = tmp_path / "none.yaml"
    path.write_text("clock: virtual\ntraffic: [{incast: h0}]\n")
    done = CliRunner().invoke(weft, ["job", "show", str(path)])
    assert isinstance(done.exception, BadInputError)
    assert "has no training job" in str(done.exception)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"model": "8B"}, r"traffic\[0\].model: no model '8B'; valid: 405B, 70B, 7B"),
        ({"model": {"preset": "7B", "layer": 2}}, r"unknown key 'traffic\[0\].model.layer'; did you mean 'layers'"),
        ({"model": {"preset": 7}}, r"traffic\[0\].model: no model 7; "),
        ({"model": {"layers": 2}}, r"traffic\[0\].model.hidden: is missing"),
        ({"model": MODEL | {"heads": 7}}, r"hidden: 512 over 7 heads"),
        ({"model": MODEL | {"kv_heads": 3}}, r"kv_heads: 3 for 8 heads"),
        ({"model": MODEL, "accelerator": "H1000"}, r"no accelerator 'H1000'; did you mean"),
        ({"model": MODEL, "parallel": {"data": 9}}, r"9 ranks on a fabric of 8 \(valid: a product .* up to 8\)"),
        ({"model": MODEL, "parallel": {"data": 2}, "ranks": [3, 3]}, "2 ranks, 1 distinct, for a job of 2"),
        ({"model": MODEL, "ranks": [8]}, r"ranks: rank 8 \(valid: 0 to 7\)"),
        ({"model": MODEL, "parallel": {"tensor": 3}}, r"parallel.tensor: 3 does not divide the model's heads, 8"),
        ({"model": MODEL, "stragglers": {1: 2}}, r"stragglers: rank 1 \(valid: 0 to 0\)"),
        ({"model": MODEL, "routing": {"skew": 1}}, r"routing: of a model without experts"),
        ({"model": "70B"}, r"accelerator: a rank of stage 0 needs .* GiB"),
        ({"model": MODEL, "parallel": {"schedule": "2f2b"}}, r"no pipeline schedule '2f2b'; "),
        ({"model": MODEL, "jitter": float("nan")}, r"jitter"),
        (
            {"model": MODEL, "accelerator": {"preset": "A100", "efficiency": 1e-300}},
            r"traffic\[0\].accelerator: the slowest rank computes for .* \(valid: up to 53.376 d\)",
        ),
        (
            {"model": MODEL, "accelerator": {"preset": "A100", "efficiency": 1e-8}, "stragglers": {0: 1000}},
            r"traffic\[0\].accelerator: the slowest rank computes for .* d in a step",
        ),
        ({"model": MODEL | {"layers": 4000}, "micro_batches": 1000}, r"micro_batches: 1000 of 4000 .* up to 50\)"),
        (
            {"model": MIXED, "parallel": {"data": 8, "expert": 8}, "routing": {"skew": 1}, "micro_batch": 99_999},
            r"routing: 25599744 tokens of 8 ranks choose among 16 experts",
        ),
        (
            {"model": MIXED, "parallel": {"data": 8, "expert": 8}, "routing": {"skew": 1}, "micro_batches": 9_999},
            r"micro_batches: 9999 of 2 layers, with messages between 8 ranks \(valid: up to 1562\)",
        ),
        (
            {"model": MODEL, "accelerator": {"preset": "A100", "peak_tflops": {"bf99": 1}}},
            r"unknown key 'traffic\[0\].accelerator.peak_tflops.bf99'; valid: bf16, fp16, fp32, fp8, tf32",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_refused(item, message):
    with pytest.raises(BadInputError, match=message):
        run_spec(scenario(item))


def test_a_preset_may_differ_in_parts():
    item = {
        "model": {"preset": "DeepSeek-V3", "layers": 4, "experts": {"count": 8}},
        "accelerator": {"preset": "H800", "memory": "1000GiB"},
    }
    (found,) = run_spec(scenario(item)).traffic
    assert (found.model.layers, found.model.hidden) == (4, 7168)
    assert (found.model.experts.count, found.model.experts.top_k) == (8, 8)
    assert found.accelerator.memory == 1000 * 2**30
    assert found.accelerator.peak_tflops["fp8"] == 1979


FLAT = {
    "leaves": 2,
    "hosts_per_leaf": 4,
    "host_rate": "100Gb/s",
    "ranks_per_host": None,
    "rail_optimised": False,
}


def test_gradients_summed_by_switches_take_the_step_of_theory():
    """S / B in place of 2(n - 1)/n · S / B, with headers: 256 B in 342, and 1,024 B in 1,110."""
    shape = {"layers": 1, "hidden": 256, "heads": 8, "feed_forward": 512, "vocabulary": 1000, "sequence": 64}
    item = {"model": shape, "parallel": {"data": 8}}
    ring, summed = (
        step(item | {"algorithms": {"data": name}}, **FLAT | {"host_rate": "10Gb/s"}) for name in ("ring", "in-network")
    )
    saved = 2 * 7 / 8
    assert summed.plan.sent_bytes["data"] * saved == pytest.approx(ring.plan.sent_bytes["data"])
    expected = saved * (256 / 342) / (1024 / 1110)
    assert ring.exposed_ps["data"] / summed.exposed_ps["data"] == pytest.approx(expected, rel=0.03)
    least_ps = summed.plan.sent_bytes["data"] * (342 / 256) * 8 * 10**12 / 10e9
    assert summed.exposed_ps["data"] == pytest.approx(least_ps, rel=0.03)


TINY = MODEL | {"layers": 1, "hidden": 128, "feed_forward": 256, "vocabulary": 500, "sequence": 64}


@pytest.mark.parametrize(
    "item",
    [
        {"parallel": {"data": 8, "zero": 3}, "algorithms": {"data": "in-network"}},
        {
            "parallel": {"data": 4, "pipeline": 2, "zero": 3},
            "algorithms": {"data": "in-network"},
            "model": TINY | {"layers": 2},
        },
        {
            "parallel": {"data": 2, "tensor": 2, "sequence": True, "pipeline": 2},
            "algorithms": {"data": "in-network", "tensor": "in-network", "pipeline": "in-network"},
            "model": TINY | {"layers": 2, "preset": "GPT-3"},
            "classes": {"tensor": 2},
        },
    ],
)
def test_groups_of_every_kind_reduce_in_the_network_beside_each_other(item):
    """ZeRO 3 gathers weights while gradients are summed: the network does one after the other."""
    found = step(
        {"model": TINY} | item,
        **FLAT,
        options={"scheduling": {"classes": [2, 3]}, "aggregation": {"lanes": 256}},
    )
    assert found.ok
    assert found.step_ps > found.plan.ideal_ps


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        (
            {"algorithms": {"dat": "ring"}},
            {"place": "scenario: traffic[0].algorithms", "problem": "no kind of traffic 'dat'"},
        ),
        (
            {"algorithms": {"data": "in-netwrk"}},
            {"place": "scenario: traffic[0].algorithms.data", "problem": "allreduce has no algorithm"},
        ),
        (
            {"algorithms": {"data": "tree"}, "parallel": {"data": 8, "zero": 1}},
            {"place": "scenario: traffic[0].algorithms.data", "problem": "allgather has no algorithm"},
        ),
        (
            {"algorithms": {"data": "hierarchical"}},
            {"place": "scenario: traffic[0].algorithms.data", "problem": "hosts of 1 rank"},
        ),
        (
            {"algorithms": {"data": "ring"}, "tenant": "red"},
            {
                "place": "scenario: traffic[0].tenant",
                "valid": "leave it out, or give it a share (tenants.red.share)",
            },
        ),
    ],
)
def test_algorithms_that_cannot_be_are_refused(keys, what):
    scenario_keys = {"tenants": {"red": {"slots": 512}}}
    with refused(BadInputError, **what):
        steps({"model": MODEL, "parallel": {"data": 8}} | keys, **FLAT, options=scenario_keys)


@pytest.mark.slow
def test_the_page_says_what_communication_takes_from_compute() -> None:
    tree = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    found = []
    for share in (0.0, 0.15):
        tree["traffic"][0]["communication_share"] = share
        (result,) = run_scenario(parse_scenario(tree)).traffic[TRAINING_JOBS.key]
        times_ps = (
            result.step_ps, result.compute_ps["backward"], result.compute_ps["forward"], result.exposed_ps["data"],
        )  # fmt: skip
        found.append([f"{time_ps / 10**9:.3f}" for time_ps in times_ps])
    titles = ("step", "compute: backward", "compute: forward", "exposed: data")
    page = PAGE.read_text(encoding="utf-8")
    for title, without, with_share in zip(titles, *found, strict=True):
        assert f"| {title} (ms) | {without} | {with_share} |" in page


def test_fast_forward_repeats_nothing_where_communication_takes_compute() -> None:
    item = {"model": MODEL, "parallel": {"data": 4}, "communication_share": 0.2}
    result = run_scenario(scenario(item, options={"fidelity": {"fast_forward": 0.01}, "int": False}))
    (counted,) = result.fast_forward
    assert counted.repeated == 0
    assert any("takes a share of accelerators" in reason for reason in counted.reasons)
