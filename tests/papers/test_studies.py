"""Each paper's figures at reduced size: the orders and courses that its authors report."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from weft.cli import weft
from weft.papers import STUDIES, Scale, Verdict, read_paper, run_paper


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


@pytest.mark.slow
def test_hpcc_takes_its_authors_list_of_flows(tmp_path: Path) -> None:
    """As traffic_gen.py writes it: sizes of a few packets, from every host to the one after it, and an incast."""
    flows = [(host, (host + 1) % 32, 5_000, 2 + host * 1e-6) for host in range(32)]
    flows += [(host, 0, 500_000, 2.00001) for host in range(1, 32)]
    lines = [f"{source} {destination} 3 100 {size} {start:.9f}" for source, destination, size, start in flows]
    listed = tmp_path / "theirs.txt"
    listed.write_text("\n".join([str(len(lines)), *lines]) + "\n", encoding="utf-8")
    found = run_paper(STUDIES["hpcc-2019"], tmp_path / "out", Scale.REDUCED, 2, listed)
    assert listed.name in " ".join(found.notes)
    # No flow of theirs is between 40 and 61 KB.
    assert "websearch 30%, ≤ 6.7 KB, HPCC" in found.measured
    assert "websearch 30%, 50 KB, HPCC" not in found.measured
