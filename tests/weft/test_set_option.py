"""`--set KEY=VALUE`: any key of a scenario, checked as if it stood in the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from weft.cli import run_guarded, weft
from weft.scenario import Change, load_scenario

SCENARIO = """
clock: virtual
seed: 1
fabric: {planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 2}
traffic:
  - permutation: 4KiB
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return path


def weft_run(*arguments: object) -> int:
    return run_guarded(lambda: weft.main([*map(str, arguments)], standalone_mode=False))


def test_keys_sections_and_items_of_lists_are_set(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["fabric.host_rate=40 Gb/s", "traffic[0].permutation=64KiB", "nic.dma_latency=2us"]
    options.append("buffer={capacity: 1MB}")
    sets = [part for option in options for part in ("--set", option)]
    assert weft_run("run", scenario, *sets, "--out", out) == 0
    results = json.loads((out / "results.json").read_text())
    assert results["made_by"]["fabric"]["host_rate_bps"] == 40 * 10**9
    assert results["made_by"]["nic"]["dma_latency"] == 2 * 10**6
    assert results["made_by"]["buffer"]["capacity"] == 10**6
    assert results["flows"][0]["bytes_delivered"] == 2 * 65536


def test_a_section_that_another_item_shares_by_an_alias_is_changed_alone(tmp_path: Path) -> None:
    path = tmp_path / "shared.yaml"
    path.write_text(
        "traffic:\n  - &step\n    training_step: data-parallel\n    layers: [{gradients: 64}]\n"
        "    algorithms: [ring]\n  - {<<: *step, bucket: 4MiB}\n"
        "  - &model\n    model: {preset: 7B, layers: 2}\n    parallel: &parallel {data: 2}\n"
        "  - {<<: *model, micro_batches: 2}\n"
    )
    changed = load_scenario(path, [Change("traffic[3].parallel.zero", 1, "--set")])
    assert [item.parallel.zero for item in changed.traffic[2:]] == [0, 1]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("fabric.host_rate=100", ["--set fabric.host_rate: 100 has no unit", "100Gb/s?"]),
        ("fabric.planes=999", ["--set fabric.planes: 999 is out of range (valid: 1 to 256)"]),
        ("fabrik.planes=1", ["--set fabrik.planes: unknown key 'fabrik'; did you mean 'fabric'?"]),
        ("fabric.plane=1", ["--set fabric.plane: unknown key 'fabric.plane'; did you mean 'planes'?"]),
        ("traffic[3].incast=h0", ["--set traffic[3].incast: traffic has no [3]; valid: 0 to 0"]),
        ("traffic[0].permutation=3GiB", ["--set traffic[0].permutation: ", "valid: 1B to 2GiB"]),
        ("seed=[1", ["--set seed:1: is not YAML"]),
        ("seed", ["--set 'seed': is not KEY=VALUE"]),
        ("transport.path=spray", ["--set transport.path: transport: path: spray", "selective-repeat"]),
        ("seed.x=1", ["--set seed.x: seed is 1, no section; set seed as a whole"]),
        ("p4=none.p4", ["--set p4: ", "none.p4", "no such P4 program"]),
        ("observe.queues=[p9l9:1]", ["--set observe.queues: no port 'p9l9:1'"]),
    ],
)  # fmt: skip
def test_errors_name_the_option(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, words: list[str]
) -> None:
    assert weft_run("run", scenario, "--set", option, "--out", tmp_path / "out") == 3
    stderr = capsys.readouterr().err
    for word in words:
        assert word in stderr


def test_errors_of_the_file_keep_their_line(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario.write_text(SCENARIO + "  - incast: h7\n")
    assert weft_run("run", scenario, "--set", "seed=2", "--out", tmp_path / "out") == 3
    assert f"{scenario}:7: traffic[1].incast: no host 'h7'" in capsys.readouterr().err


def test_a_link_down_is_named_as_in_a_file(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for link in ("h0-p0l9", "h0->p0l9", "h0"):
        assert weft_run("run", scenario, "--link-down", link, "--out", tmp_path / "out") == 3
        assert f"--link-down {link}: events[0].link: " in capsys.readouterr().err


def test_alltoall_by_ring_says_which_algorithms_it_has(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traffic = "traffic=[{collective: alltoall, algorithms: [ring]}]"
    assert weft_run("run", scenario, "--set", traffic, "--out", tmp_path / "out") == 3
    assert "alltoall has no algorithm 'ring' (valid: direct, pairwise, hierarchical)" in capsys.readouterr().err
