"""The reference of scenarios is the sections', and the committed pages are the reference."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from weft.cli import run_guarded, weft
from weft.paths import ROOT
from weft.scenario import load_scenario
from weft.scenario.congestion_reference import congestion_reference, path_reference
from weft.scenario.reference import json_schema, markdown
from weft.scenario.schema import sections

DOCS = ROOT / "docs"


def test_the_committed_reference_is_current() -> None:
    assert (DOCS / "scenario.md").read_text(encoding="utf-8") == markdown(), "write it anew: make generated"


@pytest.mark.parametrize(("options", "made"), [(["--markdown"], markdown), ([], json_schema)])
def test_the_command_prints_the_reference(options: list[str], made: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(lambda: weft.main(["schema", *options], standalone_mode=False)) == 0
    assert capsys.readouterr().out == made()


def test_every_key_has_a_description_a_type_and_an_example() -> None:
    controls = {*congestion_reference(), *path_reference()}
    rows = [line for line in markdown().splitlines() if line.startswith("| `") and line not in controls]
    assert len(rows) == sum(len(section.keys) for section in sections())
    for row in rows:
        name, description, kind, _default, example = re.split(r" \| ", row.strip().strip("|"))
        assert kind.strip(), name
        assert example.strip() not in ("", "``", "`any`"), name
        assert description.strip(), name


def test_the_schema_knows_every_key_of_every_section() -> None:
    schema = json.loads(json_schema())
    definitions = [*schema["$defs"].values(), *schema["properties"]["fabric"]["anyOf"], schema]
    definitions += schema["properties"]["traffic"]["items"]["anyOf"]
    definitions += [each for each in schema["properties"].values() if "properties" in each]  # SectionOnUse
    for section in sections():
        names = {key.path.rpartition(".")[2] for key in section.keys}
        assert any(names <= set(each["properties"]) for each in definitions), section.path
    fabric = schema["properties"]["fabric"]["anyOf"][0]
    assert fabric["properties"]["host_rate"]["default"] == "10Gb/s"
    assert all(each["additionalProperties"] is False for each in definitions)


def test_quantities_in_the_schema_are_those_that_files_take() -> None:
    rate = json.loads(json_schema())["properties"]["fabric"]["anyOf"][0]["properties"]["host_rate"]["anyOf"][0]
    assert all(re.search(rate["pattern"], text) for text in ("100Gb/s", "100 Gbps", "0.1Tbit/s"))
    assert not any(re.search(rate["pattern"], text) for text in ("100", "100G", "100GB/s"))


def test_the_comment_for_editors_is_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text("# yaml-language-server: $schema=scenario.schema.json\nseed: 2\n")
    assert load_scenario(path).seed == 2
