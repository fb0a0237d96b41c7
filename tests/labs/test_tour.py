"""The tour's code in Python runs; its console example is one of the pages that tests/labs/test_pages.py runs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from weft.paths import ROOT

pytestmark = pytest.mark.slow
PROGRAM, PLUGIN = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs" / "tour.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)


def test_its_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    # As root it would take the real clock.
    exec(PROGRAM.replace("seed=1)", 'seed=1, clock="virtual")'), {})
    time_ps, bandwidth = capsys.readouterr().out.split()[:2]
    assert int(time_ps) > 0
    assert float(bandwidth) > 0


def test_its_test_passes(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "p4", tmp_path / "p4")
    shutil.move(tmp_path / "p4" / "fabric.p4", tmp_path / "p4" / "mine.p4")
    (tmp_path / "test_mine.py").write_text(PLUGIN, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
