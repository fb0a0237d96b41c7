"""Each paper's figures at reduced size: the orders and courses that its authors report."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from weft.cli import weft
from weft.papers import STUDIES, Scale, Verdict, read_paper


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_a_reduced_run_keeps_the_shapes(name: str, tmp_path: Path) -> None:
    arguments = ["paper", name, "--scale", "reduced", "--workers", "2", "--out", str(tmp_path)]
    done = CliRunner().invoke(weft, arguments, standalone_mode=False, catch_exceptions=False)
    found = read_paper(tmp_path)
    assert found.scale is Scale.REDUCED
    assert (found.verdict is Verdict.NOT_REPRODUCED) == (done.return_value == 1)
    # A claim that is known to miss has an explanation; any other one is a change of Weft's.
    assert [claim.title for claim in found.claims if claim.holds is False and not claim.explanation] == []
    assert f'"{STUDIES[name].title}"' in done.stdout


def test_papers_are_listed() -> None:
    done = CliRunner().invoke(weft, ["paper", "--list"], standalone_mode=False)
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(STUDIES)
