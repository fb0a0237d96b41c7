"""Presets of fabrics: how they are merged, what errors say of them, and that each has sources, runs and lints clean."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.bench.subject import read_subject
from weft.bench.variants import Variant, with_variant
from weft.cli import run_guarded, weft
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.quantities.yaml_files import read_yaml
from weft.run.lint.checked import findings_in
from weft.run.runner import run_scenario
from weft.scenario import Change, Scenario, load_scenario, parse_scenario
from weft.scenario.fabric_presets import (
    ASSUMED,
    FabricPreset,
    example_text,
    fabric_preset,
    fabric_preset_names,
    preset_text,
)
from weft.scenario.presets import merged
from weft.sweeps.plan import SweepPlan

NAMES = fabric_preset_names()
VALID = ", ".join(NAMES)


def command(*arguments: object) -> int:
    return run_guarded(lambda: weft.main([*map(str, arguments)], standalone_mode=False))


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    return file


def values_of(scenario: Scenario) -> dict[str, Any]:
    return scenario.model_dump(exclude={"preset", "name"})


@pytest.fixture(params=NAMES)
def preset(request: pytest.FixtureRequest) -> FabricPreset:
    return fabric_preset(request.param)


def test_each_value_has_a_public_source_or_is_assumed(preset: FabricPreset) -> None:
    used = {each.source for each in preset.keys} - {ASSUMED}
    assert used <= set(preset.sources)
    # A source may also be named next to another one's.
    reasons = " ".join(each.because for each in preset.keys)
    assert all(name in used or name in reasons for name in preset.sources)
    assert all(source.title and source.url.startswith("https://") for source in preset.sources.values())
    assert all(each.because for each in preset.keys)
    keys = [each.key for each in preset.keys]
    assert len(set(keys)) == len(keys)


def test_its_text_is_a_scenario_with_the_same_keys_and_names_every_source(preset: FabricPreset) -> None:
    text = preset_text(preset)
    alone = parse_scenario(read_yaml(text, "text"), units_required=True)
    assert values_of(alone) == values_of(parse_scenario({"preset": preset.name}, units_required=True))
    assert all(source.url in text for source in preset.sources.values())
    assert text.count("# assumed: ") == sum(each.source == ASSUMED for each in preset.keys)


def test_its_example_has_no_finding(preset: FabricPreset, tmp_path: Path) -> None:
    file = written(tmp_path, example_text(preset, "mine.yaml"))
    assert findings_in(lambda: load_scenario(file)) == []


@pytest.mark.slow
def test_its_example_runs(preset: FabricPreset, tmp_path: Path) -> None:
    scenario = load_scenario(written(tmp_path, example_text(preset, "mine.yaml")))
    kinds = [item.kind for item in scenario.traffic]
    assert {"permutation", "collective"} <= set(kinds)
    result = run_scenario(scenario)
    assert result.ok
    assert sum(result.drops.values()) == 0


def test_the_page_has_a_row_for_each_preset() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", (ROOT / "docs" / "presets.md").read_text(), re.MULTILINE)
    assert [row for row in rows if row[1] == fabric_preset(row[0]).summary] == [
        (name, fabric_preset(name).summary) for name in NAMES
    ]


TREES = st.recursive(
    st.none() | st.integers(),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(below=st.dictionaries(st.sampled_from("abc"), TREES), above=st.dictionaries(st.sampled_from("abc"), TREES))
@settings(max_examples=200, deadline=None)
def test_above_counts_and_sections_are_merged(below: dict[str, Any], above: dict[str, Any]) -> None:
    found = merged(below, above)
    for key in below.keys() | above.keys():
        if key not in above:
            assert found[key] == below[key]
        elif key not in below:
            assert found[key] == above[key]
        elif above[key] is None:
            assert key not in found
        elif isinstance(below[key], dict) and isinstance(above[key], dict):
            assert found[key] == merged(below[key], above[key])
        else:
            assert found[key] == above[key]
    assert merged(below, {}) == below


def test_own_keys_count_and_null_takes_one_away(tmp_path: Path) -> None:
    scenario = load_scenario(
        written(tmp_path, "preset: roce-dcqcn\necn: null\ntransport: {preset: paper-2015}\nfabric: {leaves: 2}\n")
    )
    assert scenario.preset == "roce-dcqcn"
    assert (scenario.transport.congestion_control, scenario.transport.preset) == ("dcqcn", "paper-2015")
    assert scenario.pfc.classes == [3]
    assert scenario.ecn.kmin is None
    assert scenario.fabric.leaf_count == 2
    assert scenario.fabric.host_rate == 400 * 10**9


def test_no_preset_is_none(tmp_path: Path) -> None:
    assert load_scenario(written(tmp_path, "preset: null\nseed: 3\n")).preset is None


@pytest.mark.parametrize("name", ["mcr", "3", "[mrc]", "../presets/mrc"])
def test_an_unknown_name_is_refused_with_the_valid_ones(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, f"seed: 2\npreset: {name}\n")
    with refused(BadInputError, place="mine.yaml:2: preset", valid=VALID):
        load_scenario(file)


def test_an_error_about_a_key_of_the_preset_names_the_preset(tmp_path: Path) -> None:
    file = written(tmp_path, "seed: 2\npreset: roce-dcqcn\nfabric: {leavs: 2}\n")
    with pytest.raises(BadInputError) as own:
        load_scenario(file)
    assert "mine.yaml:3" in str(own.value)
    file = written(tmp_path, "seed: 2\npreset: mrc\npfc: {classes: [3]}\n")
    with pytest.raises(BadInputError) as caught:
        load_scenario(file)
    assert "mine.yaml:2 (preset mrc): trimming.classes" in str(caught.value)


def test_an_option_names_a_preset_and_is_named_by_errors(tmp_path: Path) -> None:
    file = written(tmp_path, "pfc: {classes: [3]}\n")
    change = Change("preset", "mrc", "--set preset")
    with pytest.raises(BadInputError) as caught:
        load_scenario(file, [change])
    assert str(caught.value).startswith("--set preset (preset mrc): trimming.classes")


def test_a_sweep_goes_over_presets(tmp_path: Path) -> None:
    scenario = "{fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 1}, traffic: [{permutation: 4KiB}]}"
    file = written(tmp_path, f"scenario: {scenario}\ngrid: {{preset: [roce-dcqcn, ultra-ethernet]}}\n")
    points = SweepPlan.read(file).points()
    assert [point.parameters["preset"] for point in points] == ["roce-dcqcn", "ultra-ethernet"]
    assert len({point.identity for point in points}) == 2


def test_a_variant_of_a_fabric_under_test_leaves_the_presets_keys_out(tmp_path: Path) -> None:
    subject = read_subject(written(tmp_path, "preset: roce-dcqcn\nfabric: {leaves: 2, spines: 2, hosts_per_leaf: 2}\n"))
    assert subject.is_lossless
    other = with_variant(subject, Variant("mrc"))
    assert not other.is_lossless
    assert other.spec.options.transport.protocol == "mrc"
    assert other.nic_rate_bps == subject.nic_rate_bps == 400 * 10**9


def test_commands_list_show_and_start_from_presets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("presets") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == NAMES
    assert command("presets", "mrc") == 0
    assert capsys.readouterr().out == preset_text(fabric_preset("mrc"))
    file = tmp_path / "mine.yaml"
    assert command("init", file, "--preset", "mrc") == 0
    assert load_scenario(file).preset == "mrc"
    assert command("init", tmp_path / "other.yaml", "--preset", "mcr") == 3
    assert not (tmp_path / "other.yaml").exists()
