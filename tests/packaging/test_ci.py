"""Workflows, the container for CI and the development container: what of them can be checked without their services."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.packaging.test_vm import provisioned
from weft.paths import ROOT

WHEELS = ROOT / ".github" / "workflows" / "wheels.yml"
USERS = ROOT / "examples" / "ci" / "github.yml"
# Major versions that are known to exist.
ACTIONS = {"actions/cache@v4", "actions/checkout@v4", "actions/setup-python@v5", "actions/upload-artifact@v4"}


def steps(path: Path) -> list[dict[str, Any]]:
    workflow = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    # YAML 1.1 reads `on` as true, GitHub and YAML 1.2 do not.
    assert {"name", "on", "permissions", "jobs"} == set(workflow)
    assert workflow["permissions"] == {"contents": "read"}
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", [WHEELS, USERS], ids=lambda path: path.stem)
def test_a_step_uses_a_known_action_or_runs_a_command(path: Path) -> None:
    for step in steps(path):
        assert ("uses" in step) != ("run" in step), step
        if "uses" in step:
            assert step["uses"] in ACTIONS
        else:
            assert step["run"].split()[0] in {"python", "weft", "plain/bin/python", "cd"}


@pytest.mark.parametrize("path", [WHEELS, USERS], ids=lambda path: path.stem)
def test_the_commands_of_a_workflow_are_shell(path: Path) -> None:
    for command in (step["run"] for step in steps(path) if "run" in step):
        done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)


def test_a_job_uploads_what_its_commands_wrote() -> None:
    jobs = YAML(typ="safe").load(WHEELS.read_text(encoding="utf-8"))["jobs"]
    for name, job in jobs.items():
        written = re.findall(r"--(?:outdir|output-dir) (\S+)", "\n".join(step.get("run", "") for step in job["steps"]))
        uploaded = [step["with"]["path"] for step in job["steps"] if step.get("uses", "").startswith("actions/upload")]
        assert [path.split("/")[0] for path in uploaded] == written, name
        assert len(written) == 1, name


def test_wheels_and_the_source_distribution_are_tried_with_a_lab_that_is_there() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]
    commands = [settings["test-command"], *(step.get("run", "") for step in steps(WHEELS))]
    tried = [found for each in commands for found in re.findall(r'weft"? (run lab:(\S+) .*?) --out', each)]
    assert len(tried) == 2
    assert tried[0] == tried[1]
    assert (ROOT / "labs" / tried[0][1] / "scenario.yaml").is_file()


def test_wheels_are_for_all_pythons_that_weft_names() -> None:
    cfg = configparser.ConfigParser()
    cfg.read(ROOT / "setup.cfg")
    named = re.findall(r"Python :: (3\.\d+)", cfg["metadata"]["classifiers"])
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert built["build"] == [f"cp{version.replace('.', '')}-*" for version in named]
    assert cfg["options"]["python_requires"] == f">={named[0]}"
    assert {built["manylinux-x86_64-image"], built["manylinux-aarch64-image"]} == {"manylinux_2_28"}


def test_the_container_for_ci_has_no_root_and_a_fixed_base() -> None:
    text = (ROOT / "examples" / "ci" / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    assert [name for name, _ in lines] == ["ARG", "FROM", "COPY", "RUN", "USER", "WORKDIR", "CMD"]
    assert dict(lines)["FROM"].startswith("docker.io/library/python:")
    assert dict(lines)["USER"] == "weft"


def test_the_development_container_runs_the_set_up() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    # Debian 12, on which the container for users stands, too.
    assert container["image"].endswith(":bookworm")
    assert "debian:12" in (ROOT / "vagrant" / "Containerfile").read_text(encoding="utf-8")
    script, *parts = container["postCreateCommand"].split()
    assert (ROOT / script).samefile(ROOT / "vagrant" / "provision.sh")
    assert provisioned(f"choose {' '.join(parts)}").returncode == 0
