"""`weft bench` and `weft compare` of its reports, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.fabrics import LEAF_SPINE, LOSSLESS, written
from weft.paths import ROOT


def weft(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "weft", *map(str, arguments)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_report_is_written_and_two_are_compared(tmp_path: Path) -> None:
    fabric = written(tmp_path, LEAF_SPINE, **LOSSLESS)
    first = weft("bench", "training", fabric, "--test", "8.3", "--out", "first", folder=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "Spray Efficacy" in first.stdout
    assert "1 measured" in first.stdout
    assert {"bench.json", "bench.md", "bench.html", "points"} <= {path.name for path in (tmp_path / "first").iterdir()}
    page = tmp_path / "first" / "bench.html"
    made = page.read_bytes()
    page.unlink()
    assert weft("report", "first", folder=tmp_path).returncode == 0
    assert page.read_bytes() == made
    options = ["--test", "8.3", "--set", "fabric.spines=5", "--out", "second", "--json"]
    second = weft("bench", "training", fabric, *options, folder=tmp_path)
    assert json.loads(second.stdout)["topology"]["Links between switches"] == "10"
    files = ["--markdown", "both.md", "--csv", "both.csv", "-o", "both.html"]
    compared = weft("compare", "first", "second", *files, folder=tmp_path)
    assert compared.returncode == 0, compared.stderr
    assert "Spray Efficacy" in compared.stdout
    assert all((tmp_path / name).stat().st_size for name in ("both.md", "both.csv", "both.html"))


def test_tests_are_listed_without_a_fabric(tmp_path: Path) -> None:
    done = weft("bench", "training", "--list", folder=tmp_path)
    assert done.returncode == 0
    assert "baseline-throughput" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["training"], 2, "FABRIC.yaml"),
        (["serving", "fabric.yaml"], 2, "training"),
        (["training", "fabric.yaml", "--test", "flowlets"], 3, "flowlet"),
        (["training", "fabric.yaml", "--transport", "tcp"], 3, "uet-rud"),
        (["training", "fabric.yaml", "--load-balancing", "magic"], 3, "spray"),
        (["training", "fabric.yaml", "--set", "fabric.planes=0"], 3, "fabric.planes"),
        (["training", "nothing.yaml"], 2, "nothing.yaml"),
    ],
)
def test_bad_input_is_refused_with_its_place(tmp_path: Path, arguments: list[str], status: int, said: str) -> None:
    written(tmp_path, LEAF_SPINE, **LOSSLESS)
    done = weft("bench", *arguments, folder=tmp_path)
    assert done.returncode == status, done.stderr
    assert said in done.stderr


def test_a_directory_without_a_report_is_not_compared_with_one(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "bench.json").write_text("{}", encoding="utf-8")
    done = weft("compare", "one", "two", folder=tmp_path)
    assert done.returncode == 3
    assert "bench.json" in done.stderr
