"""Inference on a fabric: transfers against closed forms, what contention moves, results and what is refused."""

import csv
import itertools
from functools import cache

import pytest
import yaml
from click.testing import CliRunner

from tests.refusals import refused
from weft.cli import weft
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.results.inference import INFERENCE
from weft.results.inference_model import InferenceResult
from weft.results.results_file import read_results
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import Change, load_scenario, parse_scenario

EXAMPLE = ROOT / "examples" / "inference.yaml"
PAGE = ROOT / "docs" / "inference.md"
MODEL = {
    "layers": 4,
    "hidden": 1024,
    "heads": 8,
    "kv_heads": 4,
    "feed_forward": 2048,
    "vocabulary": 1000,
    "sequence": 256,
}
FABRIC = {"leaves": 2, "spines": 1, "hosts_per_leaf": 4, "planes": 1, "host_rate": "100Gb/s"}
HOSTS = FABRIC | {"ranks_per_host": 4, "rail_optimised": False}
ONE = {"arrivals": ["1ms"], "prompt": {"median": 500}, "output": {"median": 3}}
APART = {
    "arrivals": [f"{5 * n}ms" for n in range(5)],
    "prompt": {"median": 500, "sigma": 0.5},
    "output": {"median": 4},
}
AT_ONCE = APART | {"arrivals": ["0ms"] * 5}


def item(requests=ONE, **others):
    return {"inference": {"model": MODEL, "requests": requests} | others}


def scenario(*items, **fabric):
    return parse_scenario({"clock": "virtual", "fabric": FABRIC | fabric, "traffic": list(items)})


def served(*items, **fabric) -> list[InferenceResult]:
    found: list[InferenceResult] = run_scenario(scenario(*items, **fabric)).traffic[INFERENCE.key]
    return found


def column(result: InferenceResult, name: str) -> list[int]:
    values: list[int] = result.records[name].tolist()
    return values


@cache
def printed(*options: str) -> str:
    done = CliRunner().invoke(weft, ["run", str(EXAMPLE), *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_page_shows_what_the_example_prints(tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    out = printed("--out", str(tmp_path))
    begin, end = out.index("latency (ms)"), out.index(" requests/s\n\n")
    lines = [line.rstrip() for line in out[begin:end].splitlines()]
    assert "\n".join(lines) in "\n".join(line.rstrip() for line in page.splitlines())


@pytest.mark.mininet
def test_both_clocks_serve_alike():
    """Prompts and outputs take the same times; messages take those of packets that threads serve, some µs later."""
    tiny = {"layers": 2, "hidden": 256, "heads": 4, "feed_forward": 512, "vocabulary": 1000, "sequence": 64}
    times = {"arrivals": ["0us", "100us", "150us"], "prompt": {"median": 100}, "output": {"median": 3}}
    pair = FABRIC | {"hosts_per_leaf": 1, "host_rate": "10Gb/s"}
    tree = {"fabric": pair, "traffic": [item(times, kv_transfer="by-layer", model=tiny)]}
    real, virtual = (
        run_scenario(parse_scenario(tree | clock)).traffic[INFERENCE.key][0]
        for clock in ({"clock": "real", "dilation": 1000}, {"clock": "virtual"})
    )
    for name in (
        "arrival_ps",
        "prefill_queue_ps",
        "prefill_ps",
        "transfer_ideal_ps",
        "decode_ps",
        "per_token_ps",
    ):
        assert column(real, name) == column(virtual, name)
    assert real.sent_bytes == virtual.sent_bytes
    assert min(column(real, "first_token_ps")) > 0


@pytest.mark.slow
def test_the_page_compares_fabrics_and_ways_of_transfer():
    page = PAGE.read_text(encoding="utf-8")
    for rate, transfer in (("25Gb/s", "after-prefill"), ("25Gb/s", "by-layer"), ("100Gb/s", "after-prefill")):
        keys = {"fabric.host_rate": rate, "traffic[0].inference.kv_transfer": transfer}
        changes = [Change(key, value, "--set") for key, value in keys.items()]
        (found,) = run_scenario(load_scenario(EXAMPLE, changes)).traffic[INFERENCE.key]
        ideal_ps, contention_ps = (found.stages_ps[f"transfer_{part}"].mean for part in ("ideal", "contention"))
        figures = [ideal_ps + contention_ps, contention_ps, found.latency_ps["first_token"].percentiles[2]]
        shown = " | ".join(f"{each / 1e9:.3f}" for each in figures)
        assert f"| `{transfer}`, {rate.replace('Gb', ' Gb')} | {shown} |" in page


def test_a_prefix_is_sent_once():
    """All prompts are sent from one instance to another, and all of the prefix with the first of them."""
    tokens = 400
    requests = APART | {"prefix": {"share": 1, "tokens": tokens}}
    (plain,), (cached,) = (served(item(requests, prefix_caching=caching)) for caching in (False, True))
    assert cached.prefill_prefix_hits == cached.decode_prefix_hits == 4
    assert cached.prefixed_requests == plain.prefixed_requests == 5
    assert plain.decode_prefix_hits == 0
    assert plain.sent_bytes - cached.sent_bytes == 4 * tokens * plain.kv_bytes_per_token
    for name in ("prefill_ps", "transfer_ideal_ps", "first_token_ps"):
        assert column(cached, name)[0] == column(plain, name)[0]
        assert all(
            after < before for after, before in zip(column(cached, name)[1:], column(plain, name)[1:], strict=True)
        )
    assert set(column(cached, "transfer_contention_ps")) == {0}


def test_a_lone_transfer_takes_its_closed_form():
    """All frames follow each other on the first of two links of 100 Gb/s and 1 µs; the second is behind by the longest.

    A frame has 1,024 B and 104 B around them, with INT; the first has 16 B of RETH, too, the last 4 B of immediate.
    """
    (found,) = served(item())
    size_bytes = 500 * 2 * 4 * 4 * 128 * 2
    assert found.kv_bytes_per_token * 500 == found.sent_bytes == size_bytes
    frames_bytes = size_bytes + size_bytes // 1024 * 104 + 16 + 4
    assert column(found, "transfer_ideal_ps") == [2 * 10**6 + (frames_bytes + 1024 + 104 + 16) * 80]
    assert column(found, "transfer_contention_ps") == [0]
    assert column(found, "prefill_queue_ps") == column(found, "decode_queue_ps") == [0]


SHAPES = [
    ({"prefill": {"tensor": 4}, "decode": {"tensor": 4}}, HOSTS),
    ({"prefill": {"tensor": 2}, "decode": {"tensor": 4}}, HOSTS),
    ({"prefill": {"tensor": 4}, "decode": {"tensor": 1}}, HOSTS),
    ({}, FABRIC | {"planes": 2}),
    ({"model": {"preset": "DeepSeek-V3", "layers": 4, "experts": {"count": 8}}}, FABRIC),
]


@pytest.mark.parametrize(
    ("shape", "transfer"), list(itertools.product(range(len(SHAPES)), ["after-prefill", "by-layer"]))
)
def test_requests_far_apart_meet_no_contention(shape, transfer):
    """Equal to the picosecond where ports at both ends serve one rank each, else within what QPs' turns cost."""
    changes, fabric = SHAPES[shape]
    (found,) = served(item(APART, kv_transfer=transfer, **changes), **fabric)
    transfers = [
        ideal + more
        for ideal, more in zip(column(found, "transfer_ideal_ps"), column(found, "transfer_contention_ps"), strict=True)
    ]
    shared = shape in (1, 2)
    for took_ps, more_ps in zip(transfers, column(found, "transfer_contention_ps"), strict=True):
        assert more_ps <= (0.03 * took_ps + 10**6 if shared else 0)
    if transfer == "after-prefill":
        assert min(transfers) > 0


def test_contention_moves_the_first_token_and_nothing_else():
    """Requests far apart decode alone; other traffic into the decode host makes their caches late."""
    own = item(APART)
    (alone,) = served(own)
    beside = {
        "together": [
            own,
            *({"incast": "h1", "bytes_per_sender": "8MiB", "at": f"{5 * n}ms"} for n in range(5)),
        ]
    }
    (crowded,) = served(beside)
    for name in (
        "prefill_queue_ps",
        "prefill_ps",
        "transfer_ideal_ps",
        "decode_ps",
        "per_token_ps",
        "decode_queue_ps",
    ):
        assert column(crowded, name) == column(alone, name)
    assert column(alone, "transfer_contention_ps") == [0] * 5
    added = column(crowded, "transfer_contention_ps")
    assert max(added) > 10**8
    first, before = column(crowded, "first_token_ps"), column(alone, "first_token_ps")
    assert [late - early for late, early in zip(first, before, strict=True)] == added


def test_caches_in_a_class_of_their_own_pass_other_traffic():
    """Their class goes first at each port; congestion control, which sees the load of all, holds them back a little."""
    beside = [{"incast": "h1", "bytes_per_sender": "8MiB", "at": f"{5 * n}ms"} for n in range(5)]
    found = []
    for classes in ({}, {"KV cache": 5}):
        tree = {"clock": "virtual", "fabric": FABRIC, "scheduling": {"classes": [5]}}
        together = {"together": [item(APART) | {"classes": classes}, *beside]}
        (result,) = run_scenario(parse_scenario(tree | {"traffic": [together]})).traffic[INFERENCE.key]
        found.append(result.stages_ps["transfer_contention"].mean)
    assert found[1] < found[0] / 5
    with refused(BadInputError, place="scenario: traffic[0].classes", problem="no kind of traffic 'data'"):
        run_spec(scenario(item() | {"classes": {"data": 3}}))


def test_caches_at_once_contend_for_the_port_of_a_decode_instance():
    (one,) = served(item(AT_ONCE, prefill={"instances": 5}))
    (many,) = served(item(AT_ONCE, prefill={"instances": 3}, decode={"instances": 3}))
    assert one.stages_ps["transfer_contention"].mean > 2 * many.stages_ps["transfer_contention"].mean
    (queued,) = served(item(AT_ONCE))
    assert queued.stages_ps["prefill_queue"].mean > 0 == one.stages_ps["prefill_queue"].mean


def test_layers_sent_early_hide_the_transfer():
    (late,) = served(item(kv_transfer="after-prefill"))
    (early,) = served(item(kv_transfer="by-layer"))
    assert column(late, "prefill_ps") == column(early, "prefill_ps")
    assert column(early, "transfer_ideal_ps") < column(late, "transfer_ideal_ps")
    assert early.sent_bytes == late.sent_bytes


def test_results_are_written_and_read_back(tmp_path):
    slo = {"first_token": "2ms", "per_token": "1ms"}
    result = run_scenario(scenario(item(AT_ONCE, slo=slo)))
    (found,) = result.traffic[INFERENCE.key]
    saved = result.save(tmp_path)
    assert read_results(saved).traffic[INFERENCE.key] == [found]
    with (tmp_path / "inference-0-requests.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == found.requests == 5
    met = [row for row in rows if int(row["first_token_ps"]) <= 2 * 10**9 and int(row["per_token_ps"]) <= 10**9]
    assert found.within_slo == len(met)
    assert 0 < len(met) < 5
    assert found.requests_per_s == pytest.approx(len(met) / (found.time_ps / 1e12))
    stages = ("prefill_queue", "prefill", "transfer_ideal", "transfer_contention", "decode_queue", "decode")
    for row in rows:
        assert sum(int(row[f"{stage}_ps"]) for stage in stages) == int(row["end_to_end_ps"])
    assert 0 < found.prefill_utilisation[0] <= 1
    assert 0 < found.decode_utilisation[0] <= 1
    assert 1 <= found.decode_batch[0] <= 5
    report = CliRunner().invoke(weft, ["report", str(tmp_path)], catch_exceptions=False)
    assert report.exit_code == 0, report.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Parts of the time to the first token" in page
    first, *others = (tmp_path / "inference-0-requests.csv").read_text(encoding="utf-8").splitlines()
    damaged = others[0].rsplit(",", 1)[0] + ",7"
    (tmp_path / "inference-0-requests.csv").write_text("\n".join([first, damaged]) + "\n", encoding="utf-8")
    refused = CliRunner().invoke(weft, ["report", str(tmp_path)])
    assert "inference-0-requests.csv:2: end_to_end_ps: is not the sum of the stages" in str(refused.exception)


def test_requests_of_a_file_stand_beside_the_scenario(tmp_path):
    (tmp_path / "requests.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n0,100,2\n0.001,200,1\n")
    tree = {"clock": "virtual", "fabric": FABRIC, "traffic": [item({"file": "requests.csv"})]}
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    done = CliRunner().invoke(weft, ["run", str(path), "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "2 requests of 300 prompt and 3 output tokens" in done.output


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"requests": {}},
            {"place": "scenario: traffic[0].inference.requests", "valid": "one of rate, arrivals, file"},
        ),
        (
            {"requests": ONE | {"rate": 3}},
            {"place": "scenario: traffic[0].inference.requests", "valid": "one of rate, arrivals, file"},
        ),
        (
            {"requests": {"rate": 3, "prompt": {"median": 3}, "output": {"median": 3}}},
            {"place": "scenario: traffic[0].inference.requests.count", "problem": "is missing"},
        ),
        (
            {"requests": {"rate": 3, "count": 3, "prompt": {"median": 3}}},
            {
                "place": "scenario: traffic[0].inference.requests.output",
                "valid": "{median: TOKENS}, or requests from a file",
            },
        ),
        (
            {"requests": ONE | {"prompt": {"median": 3, "most": 2}}},
            {"place": "scenario: traffic[0].inference.requests.prompt", "valid": "`least` to `most`, 1 to 2"},
        ),
        (
            {"requests": {"file": "nowhere.csv"}},
            {
                "place": "scenario: traffic[0].inference.requests.file: nowhere.csv",
                "problem": "cannot be read",
            },
        ),
        (
            {"requests": {"file": "/dev/zero"}},
            {"place": "scenario: traffic[0].inference.requests.file: zero", "problem": "not a regular file"},
        ),
        (
            {"requests": {"file": "x.csv", "prompt": {"median": 3}}},
            {"place": "scenario: traffic[0].inference.requests.prompt", "valid": "not given"},
        ),
        (
            {"requests": ONE | {"rate": 1e-9, "arrivals": None, "count": 9999}},
            {"place": "scenario: traffic[0].inference.requests", "valid": "up to 1152921504606846976"},
        ),
        ({"model": "8B"}, {"place": "scenario: traffic[0].inference.model", "problem": "no model '8B'"}),
        (
            {"model": "405B"},
            {
                "place": "scenario: traffic[0].inference.prefill.accelerator",
                "valid": "more memory, a larger prefill.tensor, or shorter requests",
            },
        ),
        (
            {"prefill": {"tensor": 5}},
            {"place": "scenario: traffic[0].inference.prefill.tensor", "valid": "1, 2, 4, 8"},
        ),
        (
            {"decode": {"tensor": 2}},
            {
                "place": "scenario: traffic[0].inference.decode.tensor",
                "problem": "2 ranks in hosts of 1 (valid on",
            },
        ),
        (
            {"prefill": {"instances": 8}},
            {
                "place": "scenario: traffic[0].inference.decode.instances",
                "problem": "1 behind 8 prefill instances",
            },
        ),
        (
            {"decode_assignment": "random"},
            {
                "place": "scenario: traffic[0].inference.decode_assignment",
                "problem": "no assignment 'random'; valid",
            },
        ),
        (
            {"slo": {"first_token": "0s", "per_token": "1ms"}},
            {"place": "scenario: traffic[0].inference.slo.first_token", "valid": "1ps to 1000s"},
        ),
    ],
)
def test_what_cannot_be_served_is_refused(changes, message):
    with refused(BadInputError, **message):
        run_spec(scenario(item(**changes)))


def test_ranks_that_are_named():
    (found,) = served(item() | {"ranks": [7, 2]})
    assert found.requests == 1
    with refused(BadInputError, place="scenario: traffic[0].ranks", valid="3"):
        run_spec(scenario(item(prefill={"instances": 2}) | {"ranks": [7, 2]}))
    with refused(BadInputError, place="scenario: traffic[0].ranks", valid="one host"):
        run_spec(scenario(item(prefill={"tensor": 2}) | {"ranks": [3, 4, 0]}, **HOSTS))
    single = ONE | {"output": {"median": 1}}
    assert "per_token" not in served(item(single))[0].latency_ps
    (within,) = served(item() | {"ranks": [0, 1]}, **HOSTS)
    assert column(within, "transfer_contention_ps") == [0]
    assert column(within, "transfer_ideal_ps")[0] < column(found, "transfer_ideal_ps")[0]
